// SPDX-License-Identifier: BSD-3-Clause
// One of the processes of lives_test.py, which tells it by lines what to do:
//   tagwire-actor [EAL arguments] -- IP PEER-TIMEOUT-MS
#include <fcntl.h>
#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "lib/port/eal_arguments.h"
#include "lib/port/port.h"
#include "test/e2e/lives/actor.h"

namespace tagwire::lives {
namespace {

constexpr uint32_t kTurnsBetweenLooks = 64;
constexpr unsigned kFrames = 4095;

// Lines from a descriptor, as far as they are there.
class Lines {
  public:
    explicit Lines(int fd) : fd_(fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

    bool at_end() const { return ended_ && text_.find('\n') == std::string::npos; }
    bool next(std::string* line) {
        char part[512];
        const ssize_t count = read(fd_, part, sizeof(part));
        if (count > 0) {
            text_.append(part, static_cast<size_t>(count));
        }
        ended_ = ended_ || count == 0;
        const size_t end = text_.find('\n');
        if (end == std::string::npos) {
            return false;
        }
        *line = text_.substr(0, end);
        text_.erase(0, end + 1);
        return true;
    }

  private:
    int fd_;
    bool ended_ = false;
    std::string text_;
};

void run(int argc, char** argv) {
    if (argc != 2) {
        throw std::runtime_error("usage: tagwire-actor [EAL arguments] -- IP PEER-TIMEOUT-MS");
    }
    const port::Port port(0, {});
    rte_mempool* pool = rte_pktmbuf_pool_create("frames", kFrames, 128, 0,
                                                RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    if (pool == nullptr) {
        throw std::runtime_error("no memory for frames");
    }
    ReplayNic nic(port.id(), pool);
    Actor actor({argv[0], static_cast<uint32_t>(std::stoul(argv[1]))}, nic, port.mac().addr_bytes,
                pool);
    Lines lines(STDIN_FILENO);
    fmt::print("ready\n");
    std::fflush(stdout);
    std::string line;
    for (uint32_t i = 0; !lines.at_end(); ++i) {
        actor.turn();
        if (i % kTurnsBetweenLooks == 0 && lines.next(&line)) {
            fmt::print("{}\n", actor.obey(line));
            std::fflush(stdout);
        }
    }
}

}  // namespace
}  // namespace tagwire::lives

int main(int argc, char** argv) {
    int own = 1;
    while (own < argc && std::strcmp(argv[own], "--") != 0) {
        ++own;
    }
    try {
        auto eal = tagwire::port::complete_eal_arguments(
            std::vector<std::string>(argv, argv + std::min(own, argc)));
        tagwire::port::choose_device(eal, "tagwire-actor");
        tagwire::port::initialize_eal(eal);
        tagwire::lives::run(argc - own - 1, argv + own + 1);
        rte_eal_cleanup();
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "tagwire-actor: %s\n", error.what());
        return 1;
    }
}
