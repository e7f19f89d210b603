// SPDX-License-Identifier: BSD-3-Clause
#include "server.h"

#include <fmt/format.h>

#include <optional>

#include "addresses.h"
#include "failure.h"
#include "file_list.h"
#include "file_receiver.h"
#include "file_sender.h"
#include "pingpong.h"
#include "session.h"
#include "stream.h"

namespace tagwire::perf {
namespace {

// A client's hello, checked as far as needed to answer it.
struct Hello {
    tw_address address{};
    uint16_t session = 0;
    int version = 0;
    std::string test;
    Json parameters;
};

// Nothing for a message that is no hello: who sent it is unknown, so nobody can be told.
std::optional<Hello> parse_hello(const std::byte* data, size_t length) {
    const auto* text = reinterpret_cast<const char*>(data);
    const Json json = Json::parse(text, text + length, nullptr, false);
    if (!json.is_object() || json.value("program", "") != "tagwire-perf") {
        return std::nullopt;
    }
    Hello hello;
    hello.address = parse_address(json.value("address", ""), kDefaultUdpPort);
    hello.session = json.value("session", uint16_t{0});
    hello.version = json.value("version", 0);
    hello.test = json.value("test", "");
    hello.parameters = json.value("parameters", Json::object());
    return hello;
}

class Server {
  public:
    Server(Fabric& fabric, const Options& options, Report& report)
        : fabric_(fabric), options_(options), report_(report), shared_(list_files(options.share)) {}

    void run();

  private:
    std::optional<Hello> wait_for_hello();
    void serve(const Hello& hello);
    void run_test(Session& session, const Hello& hello);
    void run_file(Session& session, const Hello& hello);

    Fabric& fabric_;
    const Options& options_;
    Report& report_;
    std::vector<SourceFile> shared_;
    std::optional<uint16_t> last_session_;  // its hello may arrive once more
};

void Server::run() {
    report_.say(fmt::format("server at {}, waiting for {}", fabric_.name(),
                            options_.keep ? "clients (Ctrl-C ends)" : "one client"));
    for (;;) {
        const std::optional<Hello> hello = wait_for_hello();
        if (!hello || hello->session == last_session_) {
            continue;
        }
        last_session_ = hello->session;
        try {
            serve(*hello);
        } catch (const Interrupted&) {
            throw;
        } catch (const std::exception& error) {
            if (!options_.keep) {
                throw;
            }
            report_.say(fmt::format("error: {}; waiting for the next client", error.what()));
        }
        if (!options_.keep) {
            return;
        }
        fabric_.reset();
    }
}

std::optional<Hello> Server::wait_for_hello() {
    Operation* op = fabric_.operations(1);
    std::byte* data = fabric_.buffer(kControlBytes);
    fabric_.receive(*op, data, kControlBytes, TW_ADDR_UNSPEC, make_tag(TagKind::kHello, 0));
    while (op->pending) {
        fabric_.progress();
    }
    if (op->error != 0) {
        return std::nullopt;
    }
    try {
        return parse_hello(data, op->length);
    } catch (const std::exception& error) {
        report_.say(fmt::format("a hello that cannot be answered: {}", error.what()));
        return std::nullopt;
    }
}

void Server::serve(const Hello& hello) {
    const std::string peer = format_address(hello.address);
    report_.set("peer", peer);
    report_.set("test", hello.test);
    report_.say(fmt::format("client {}: {}", peer, hello.test));
    Session session(fabric_, fabric_.insert(hello.address), peer, hello.session);
    if (hello.version != kProtocolVersion) {
        const std::string reason =
            fmt::format("this server speaks version {} of tagwire-perf's protocol, the client {}",
                        kProtocolVersion, hello.version);
        session.send({{"type", "refused"}, {"reason", reason}});
        throw Failure(reason, "start the same version of tagwire-perf on both sides");
    }
    session.send({{"type", "welcome"}, {"version", kProtocolVersion}});
    try {
        run_test(session, hello);
        session.expect("bye");
        session.send({{"type", "bye"}});
    } catch (const PeerGaveUp&) {
        throw;
    } catch (const std::exception& error) {
        session.abort(error.what());
        throw;
    }
    report_.say(fmt::format("client {}: {} done", peer, hello.test));
}

void Server::run_test(Session& session, const Hello& hello) {
    if (hello.test == name_of(TestKind::kPingpong)) {
        run_pingpong_server(session, hello.parameters);
    } else if (hello.test == name_of(TestKind::kStream)) {
        run_stream_server(session, hello.parameters);
    } else if (hello.test == name_of(TestKind::kFile)) {
        run_file(session, hello);
    } else {
        throw Failure(fmt::format("unknown test '{}'", hello.test));
    }
}

void Server::run_file(Session& session, const Hello& hello) {
    if (hello.parameters.value("send", false)) {
        receive_files(session, options_.directory, report_, options_.progress);
    }
    if (hello.parameters.value("fetch", false)) {
        if (shared_.empty()) {
            throw Failure("the server shares no files", "start it with --share PATH");
        }
        send_files(session, shared_, options_.file.max_message, report_, options_.progress);
    }
}

}  // namespace

void run_server(Fabric& fabric, const Options& options, Report& report) {
    Server(fabric, options, report).run();
}

}  // namespace tagwire::perf
