// SPDX-License-Identifier: BSD-3-Clause
#include "file_receiver.h"

#include <fmt/format.h>

#include <algorithm>

#include "failure.h"
#include "file_sender.h"
#include "file_table.h"
#include "progress.h"
#include "safe_file.h"
#include "sha256.h"

namespace tagwire::perf {
namespace {

constexpr const char* kWhat = "receiving a file";
constexpr uint64_t kLongestMessage = uint64_t{1} << 26;

class Receiver {
  public:
    Receiver(Session& session, const std::string& directory)
        : session_(session),
          directory_(directory),
          ops_(session.fabric().operations(kFileWindow)) {}

    FileRow receive(const Json& offer, bool show_progress);

  private:
    void provide_buffers(uint64_t max_message);
    void post(uint64_t sequence);
    // Writes the messages in order, and returns the SHA-256 of them.
    std::string receive_contents(SafeFile& file, const std::string& name, uint64_t size,
                                 uint64_t messages, bool show_progress);

    Session& session_;
    const std::string& directory_;
    Operation* ops_;
    std::byte* data_ = nullptr;
    uint64_t max_message_ = 0;
    uint64_t sequence_ = 0;
};

FileRow Receiver::receive(const Json& offer, bool show_progress) {
    const auto name = offer.at("name").get<std::string>();
    const auto size = offer.at("size").get<uint64_t>();
    const auto messages = offer.at("messages").get<uint64_t>();
    provide_buffers(offer.at("max_message").get<uint64_t>());
    SafeFile file(directory_, name, offer.at("mode").get<unsigned int>());
    for (uint64_t i = 0; i < std::min<uint64_t>(messages, kFileWindow); ++i) {
        post(sequence_ + i);
    }
    const auto start = Clock::now();
    session_.send({{"type", "ready"}});
    const std::string digest = receive_contents(file, name, size, messages, show_progress);
    const Json sent = session_.expect("sent");
    const std::chrono::duration<double> seconds = Clock::now() - start;
    if (sent.at("sha256") == digest) {
        file.commit();
    }
    session_.send({{"type", "received"}, {"sha256", digest}});
    if (sent.at("sha256") != digest) {
        throw Failure(fmt::format("{} arrived with other contents: SHA-256 {} there, {} here", name,
                                  sent.at("sha256").get<std::string>(), digest));
    }
    return {name, size, messages, seconds.count(), digest};
}

void Receiver::provide_buffers(uint64_t max_message) {
    if (max_message == 0 || max_message > kLongestMessage) {
        throw Failure(fmt::format("the sender announces messages of {} bytes", max_message));
    }
    if (max_message > max_message_) {
        max_message_ = max_message;
        data_ = session_.fabric().buffer(kFileWindow * max_message);
    }
}

void Receiver::post(uint64_t sequence) {
    const uint64_t slot = sequence % kFileWindow;
    session_.receive_data(ops_[slot], data_ + slot * max_message_, max_message_,
                          session_.tag(TagKind::kData, sequence));
}

std::string Receiver::receive_contents(SafeFile& file, const std::string& name, uint64_t size,
                                       uint64_t messages, bool show_progress) {
    Sha256 sha256;
    Progress progress("receiving " + name, size, Progress::Unit::kBytes, show_progress);
    uint64_t written = 0;
    const uint64_t end = sequence_ + messages;
    for (; sequence_ < end; ++sequence_) {
        const uint64_t slot = sequence_ % kFileWindow;
        session_.wait(ops_[slot], max_message_, kWhat);
        session_.require_success(ops_[slot], kWhat);
        const std::byte* message = data_ + slot * max_message_;
        const size_t length = ops_[slot].length;
        sha256.update(message, length);
        file.write(message, length);
        written += length;
        progress.update(written);
        if (sequence_ + kFileWindow < end) {
            post(sequence_ + kFileWindow);
        }
    }
    if (written != size) {
        throw Failure(fmt::format("{} arrived with {} bytes instead of {}", name, written, size));
    }
    return sha256.finish();
}

}  // namespace

void receive_files(Session& session, const std::string& directory, Report& report,
                   bool show_progress) {
    report.say("receiving files from " + session.peer_text());
    begin_file_table(report);
    Receiver receiver(session, directory);
    uint64_t files = 0;
    uint64_t bytes = 0;
    for (;;) {
        const Json message = session.expect_any({"file", "end"});
        if (message["type"] == "end") {
            if (message.at("files") != files || message.at("bytes") != bytes) {
                throw Failure("the sender counted other files or bytes than arrived");
            }
            return;
        }
        const FileRow row = receiver.receive(message, show_progress);
        ++files;
        bytes += row.size;
        add_file_row(report, row, "received");
    }
}

}  // namespace tagwire::perf
