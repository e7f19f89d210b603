// SPDX-License-Identifier: BSD-3-Clause
#include "file_sender.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "failure.h"
#include "file_table.h"
#include "mixed_sizes.h"
#include "progress.h"
#include "sha256.h"
#include "unique_fd.h"

namespace tagwire::perf {
namespace {

constexpr const char* kWhat = "sending a file";

void read_exactly(const UniqueFd& file, const std::string& path, std::byte* data, size_t length) {
    for (size_t done = 0; done < length;) {
        const ssize_t count = read(file.get(), data + done, length - done);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            throw Failure(count < 0 ? fmt::format("cannot read {}: {}", path, std::strerror(errno))
                                    : fmt::format("{} became shorter while it was sent", path));
        }
        done += static_cast<size_t>(count);
    }
}

uint64_t count_messages(uint64_t seed, uint64_t size, uint64_t max_message) {
    MixedSizes sizes(seed, max_message);
    uint64_t count = 0;
    for (uint64_t left = size; left > 0; left -= sizes.next(left)) {
        ++count;
    }
    return count;
}

// The window's buffers, and where the running number of data messages stands.
class Sender {
  public:
    Sender(Session& session, uint64_t max_message)
        : session_(session),
          max_message_(max_message),
          ops_(session.fabric().operations(kFileWindow)),
          data_(session.fabric().buffer(kFileWindow * max_message)) {}

    FileRow send(const SourceFile& source, uint64_t seed, Progress& progress, uint64_t& total_done);

  private:
    std::string send_contents(const SourceFile& source, uint64_t size, uint64_t seed,
                              const UniqueFd& file, Progress& progress, uint64_t& total_done);
    void wait_slot(uint64_t sequence) {
        Operation& op = ops_[sequence % kFileWindow];
        session_.wait(op, max_message_, kWhat);
        session_.require_success(op, kWhat);
    }

    Session& session_;
    uint64_t max_message_;
    Operation* ops_;
    std::byte* data_;
    uint64_t sequence_ = 0;
};

FileRow Sender::send(const SourceFile& source, uint64_t seed, Progress& progress,
                     uint64_t& total_done) {
    const UniqueFd file(open(source.path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (!file || fstat(file.get(), &status) != 0) {
        throw Failure(fmt::format("cannot read {}: {}", source.path, std::strerror(errno)));
    }
    const auto size = static_cast<uint64_t>(status.st_size);
    const uint64_t messages = count_messages(seed, size, max_message_);
    const auto start = Clock::now();
    session_.send({{"type", "file"},
                   {"name", source.name},
                   {"size", size},
                   {"mode", status.st_mode & 0777},
                   {"messages", messages},
                   {"max_message", max_message_}});
    session_.expect("ready");
    const std::string digest = send_contents(source, size, seed, file, progress, total_done);
    session_.send({{"type", "sent"}, {"sha256", digest}});
    const Json received = session_.expect("received");
    const std::chrono::duration<double> seconds = Clock::now() - start;
    if (received.at("sha256") != digest) {
        throw Failure(fmt::format("{} arrived with other contents: SHA-256 {} here, {} there",
                                  source.name, digest, received.at("sha256").get<std::string>()));
    }
    return {source.name, size, messages, seconds.count(), digest};
}

std::string Sender::send_contents(const SourceFile& source, uint64_t size, uint64_t seed,
                                  const UniqueFd& file, Progress& progress, uint64_t& total_done) {
    Sha256 sha256;
    MixedSizes sizes(seed, max_message_);
    for (uint64_t left = size; left > 0;) {
        const uint64_t length = sizes.next(left);
        wait_slot(sequence_);
        std::byte* message = data_ + (sequence_ % kFileWindow) * max_message_;
        read_exactly(file, source.path, message, length);
        session_.send_data(ops_[sequence_ % kFileWindow], message, length,
                           session_.tag(TagKind::kData, sequence_));
        sha256.update(message, length);
        ++sequence_;
        left -= length;
        total_done += length;
        progress.update(total_done);
    }
    for (uint64_t slot = 0; slot < kFileWindow; ++slot) {
        wait_slot(slot);
    }
    return sha256.finish();
}

}  // namespace

void send_files(Session& session, const std::vector<SourceFile>& files, uint64_t max_message,
                Report& report, bool show_progress) {
    uint64_t total = 0;
    for (const SourceFile& file : files) {
        total += file.size;
    }
    report.say(fmt::format("sending {} files to {}", files.size(), session.peer_text()));
    begin_file_table(report);
    Sender sender(session, max_message);
    uint64_t done = 0;
    {
        Progress progress("sending", total, Progress::Unit::kBytes, show_progress);
        for (size_t i = 0; i < files.size(); ++i) {
            add_file_row(report, sender.send(files[i], i + 1, progress, done), "sent");
        }
    }
    session.send({{"type", "end"}, {"files", files.size()}, {"bytes", done}});
}

}  // namespace tagwire::perf
