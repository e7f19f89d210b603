// SPDX-License-Identifier: BSD-3-Clause
// The program's own options: what follows "--" on the command line.
#pragma once

#include <tagwire/tagwire.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tagwire::perf {

enum class Role { kServer, kClient };
enum class TestKind { kPingpong, kStream, kFile };

const char* name_of(TestKind kind);

// Not the RoCEv2 port (4791): a card would take such packets for its own.
inline constexpr uint16_t kDefaultUdpPort = 18515;

struct PingpongOptions {
    std::vector<uint64_t> sizes{8};
    uint64_t iterations = 10000;
    uint64_t warmup = 1000;
};

struct StreamOptions {
    std::vector<uint64_t> sizes{8};
    uint64_t iterations = 100000;
    uint64_t warmup = 1000;
    uint32_t window = 64;
    bool check = false;
};

struct FileOptions {
    std::vector<std::string> paths;  // sent by the client
    bool fetch = false;              // then receive what the server shares
    uint64_t max_message = uint64_t{1} << 20;
};

struct Options {
    Role role = Role::kServer;
    TestKind test = TestKind::kPingpong;
    PingpongOptions pingpong;
    StreamOptions stream;
    FileOptions file;

    std::string server;              // client: the server's address
    bool keep = false;               // server: go on after the first client
    std::vector<std::string> share;  // server: files that clients may fetch
    std::string directory = ".";     // where received files go

    std::string ip;  // empty: 10.x.y.z from the port's MAC address
    uint16_t udp_port = kDefaultUdpPort;
    uint16_t port = 0;
    uint16_t mtu = 0;  // 0: the port's
    double timeout_s = 10;
    std::string json;  // empty: none; "-": standard output
    bool progress = true;
};

// Prints help or version and throws Failure with ExitCode::kSuccess when asked for them.
Options parse_options(int argc, char** argv);

}  // namespace tagwire::perf
