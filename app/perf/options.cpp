// SPDX-License-Identifier: BSD-3-Clause
#include "options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "failure.h"
#include "sizes.h"

namespace tagwire::perf {
namespace {

constexpr const char* kDescription =
    "Measures tagged messages between two peers and sends files as tagged messages.\n"
    "Start a server, then a client with the server's address:\n"
    "  tagwire-perf [EAL arguments] -- server\n"
    "  tagwire-perf [EAL arguments] -- client 10.0.0.1 pingpong -s 8\n"
    "Without a card, start both under softcx-run --wire switch:NAME.";

constexpr const char* kFooter =
    "Options before '--' are DPDK's EAL arguments (--vdev, -a, -l, -m, --no-huge ...).\n"
    "What is not given there is chosen and printed. Exit status: 0 right, 1 failed,\n"
    "2 wrong usage, 130 interrupted.";

struct SizeTexts {
    std::string pingpong = "8";
    std::string stream = "8";
    std::string max_message = "1M";
};

void add_common(CLI::App& app, Options& options) {
    app.add_option("--ip", options.ip,
                   "this side's IP address (default: 10.x.y.z, the last bytes of the MAC address)")
        ->type_name("ADDRESS");
    app.add_option("-p,--udp-port", options.udp_port, "UDP port, of both sides")
        ->capture_default_str()
        ->check(CLI::Range(1, 65535))
        ->type_name("PORT");
    app.add_option("-P,--port", options.port, "number of the ethdev port")
        ->capture_default_str()
        ->type_name("N");
    app.add_option("-m,--mtu", options.mtu, "MTU to set on the port (default: the port's)")
        ->check(CLI::Range(1280, 9600))
        ->type_name("BYTES");
    app.add_option("--timeout", options.timeout_s, "seconds until a silent peer is an error")
        ->capture_default_str()
        ->check(CLI::Range(0.1, 3600.0))
        ->type_name("SECONDS");
    app.add_option("--json", options.json,
                   "write the results as JSON to FILE ('-': standard output)")
        ->type_name("FILE");
    app.add_flag_callback(
        "--no-progress", [&options] { options.progress = false; }, "no progress display");
    app.add_option("--dir", options.directory, "folder for received files")
        ->capture_default_str()
        ->type_name("FOLDER");
}

void add_pingpong(CLI::App& client, Options& options, SizeTexts& texts) {
    CLI::App* app = client.add_subcommand("pingpong", "latency: one message there, one back");
    app->add_option("-s,--size", texts.pingpong, "message sizes: 8 or 8,64,4K or 1:64K")
        ->capture_default_str()
        ->type_name("SIZE");
    app->add_option("-n,--iters", options.pingpong.iterations, "round trips per size")
        ->capture_default_str()
        ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 28))
        ->type_name("N");
    app->add_option("-W,--warmup", options.pingpong.warmup, "round trips before measuring")
        ->capture_default_str()
        ->type_name("N");
}

void add_stream(CLI::App& client, Options& options, SizeTexts& texts) {
    CLI::App* app = client.add_subcommand("stream", "message rate and bandwidth, one way");
    app->add_option("-s,--size", texts.stream, "message sizes: 8 or 8,64,4K or 1:64K")
        ->capture_default_str()
        ->type_name("SIZE");
    app->add_option("-n,--iters", options.stream.iterations, "messages per size")
        ->capture_default_str()
        ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 36))
        ->type_name("N");
    app->add_option("-W,--warmup", options.stream.warmup, "messages before measuring")
        ->capture_default_str()
        ->type_name("N");
    app->add_option("-w,--window", options.stream.window, "messages outstanding")
        ->capture_default_str()
        ->check(CLI::Range(1, 4096))
        ->type_name("N");
    app->add_flag("-c,--check", options.stream.check, "fill and verify every message");
}

void add_file(CLI::App& client, Options& options, SizeTexts& texts) {
    CLI::App* app = client.add_subcommand("file", "send files; both sides compare SHA-256");
    app->add_option("paths", options.file.paths, "files and folders to send")->type_name("PATH");
    app->add_flag("--fetch", options.file.fetch,
                  "then receive what the server shares (into --dir)");
    app->add_option("--max-message", texts.max_message,
                    "longest message (sizes are mixed up to it)")
        ->capture_default_str()
        ->type_name("SIZE");
}

void check_combination(const Options& options) {
    if (options.role == Role::kClient && options.test == TestKind::kFile &&
        options.file.paths.empty() && !options.file.fetch) {
        throw Failure("no file to send", "name files or folders, or --fetch what the server shares",
                      ExitCode::kUsage);
    }
    if (options.file.max_message == 0 || options.file.max_message > (uint64_t{1} << 26)) {
        throw Failure("--max-message must be between 1 and 64M", {}, ExitCode::kUsage);
    }
}

}  // namespace

const char* name_of(TestKind kind) {
    switch (kind) {
        case TestKind::kPingpong:
            return "pingpong";
        case TestKind::kStream:
            return "stream";
        case TestKind::kFile:
            return "file";
    }
    return "unknown";
}

Options parse_options(int argc, char** argv) {
    Options options;
    SizeTexts texts;
    CLI::App app(kDescription, "tagwire-perf [EAL arguments] --");
    app.footer(kFooter);
    app.require_subcommand(1);
    app.set_version_flag("--version", std::string("tagwire-perf ") + TAGWIRE_VERSION);

    CLI::App* server = app.add_subcommand("server", "wait for a client and do what it asks");
    add_common(*server, options);
    server->add_flag("-k,--keep", options.keep,
                     "serve client after client until interrupted, which is exit status 0 then");
    server->add_option("--share", options.share, "files and folders that clients may fetch")
        ->type_name("PATH");

    CLI::App* client = app.add_subcommand("client", "run one test against a server");
    client->add_option("address", options.server, "the server's address: IP or IP:PORT")
        ->required()
        ->type_name("ADDRESS");
    add_common(*client, options);
    client->require_subcommand(1);
    client->fallthrough();
    add_pingpong(*client, options, texts);
    add_stream(*client, options, texts);
    add_file(*client, options, texts);
    for (CLI::App* test : client->get_subcommands({})) {
        test->fallthrough();
    }

    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& asked) {
        app.exit(asked);
        throw Failure("", {}, ExitCode::kSuccess);
    } catch (const CLI::ParseError& error) {
        throw Failure(error.what(), "tagwire-perf -- server --help, or client --help",
                      ExitCode::kUsage);
    }

    options.role = server->parsed() ? Role::kServer : Role::kClient;
    if (client->parsed()) {
        options.test = client->got_subcommand("pingpong") ? TestKind::kPingpong
                       : client->got_subcommand("stream") ? TestKind::kStream
                                                          : TestKind::kFile;
    }
    options.pingpong.sizes = parse_sizes(texts.pingpong, TW_MAX_MESSAGE_SIZE);
    options.stream.sizes = parse_sizes(texts.stream, TW_MAX_MESSAGE_SIZE);
    options.file.max_message = parse_size(texts.max_message);
    check_combination(options);
    return options;
}

}  // namespace tagwire::perf
