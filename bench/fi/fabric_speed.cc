// SPDX-License-Identifier: BSD-3-Clause
// Tagged ping-pong and streams through fi_* calls, the same binary for every provider.
//   fabric_speed server SOCKET PROVIDER
//   fabric_speed client SOCKET PROVIDER
// A fourth argument says how many rounds there are, the same number on both sides (5), a fifth how
// many entries a read of the completion queue may bring (16).
// SOCKET is a path of a UNIX socket, by which the two find each other (it works across network
// namespaces). The client prints "PROVIDER latency_us=... rate=... mb_per_s=...".
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPings = 2000;
constexpr int kWindow = 64;
constexpr size_t kEntries = 16;
constexpr int kMessages = 64 * 400;
constexpr size_t kLarge = 1 << 20;
constexpr int kLargeMessages = 64;

void check(ssize_t result, const char* what) {
    if (result < 0) {
        std::fprintf(stderr, "%s: %s\n", what, fi_strerror(static_cast<int>(-result)));
        std::exit(1);
    }
}

int meet(const char* path, bool server) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (server) {
        unlink(path);
        if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
            listen(fd, 1) != 0) {
            std::perror(path);
            std::exit(1);
        }
        const int peer = accept(fd, nullptr, nullptr);
        unlink(path);
        return peer;
    }
    for (int i = 0; i < 200; ++i) {
        if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
            return fd;
        }
        usleep(50'000);
    }
    std::perror(path);
    std::exit(1);
}

class Endpoint {
  public:
    Endpoint(const char* provider, int control, size_t entries) : entries_(entries) {
        fi_info* hints = fi_allocinfo();
        hints->fabric_attr->prov_name = strdup(provider);
        hints->ep_attr->type = FI_EP_RDM;
        hints->caps = FI_TAGGED;
        hints->mode = FI_CONTEXT | FI_CONTEXT2;
        hints->domain_attr->threading = FI_THREAD_DOMAIN;
        hints->domain_attr->mr_mode =
            FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
        hints->tx_attr->msg_order = FI_ORDER_SAS;
        // A second namespace's address, for providers that take it from the network device.
        const char* node = std::getenv("SPEED_ADDRESS");
        check(fi_getinfo(FI_VERSION(1, 9), node, nullptr, node != nullptr ? FI_SOURCE : 0, hints,
                         &info_),
              "fi_getinfo");
        check(fi_fabric(info_->fabric_attr, &fabric_, nullptr), "fi_fabric");
        check(fi_domain(fabric_, info_, &domain_, nullptr), "fi_domain");
        fi_av_attr av{};
        av.type = FI_AV_TABLE;
        check(fi_av_open(domain_, &av, &av_, nullptr), "fi_av_open");
        fi_cq_attr cq{};
        cq.format = FI_CQ_FORMAT_TAGGED;
        cq.size = 4096;
        check(fi_cq_open(domain_, &cq, &cq_, nullptr), "fi_cq_open");
        check(fi_endpoint(domain_, info_, &ep_, nullptr), "fi_endpoint");
        check(fi_ep_bind(ep_, &av_->fid, 0), "bind av");
        check(fi_ep_bind(ep_, &cq_->fid, FI_SEND | FI_RECV), "bind cq");
        check(fi_enable(ep_), "fi_enable");
        exchange_names(control);
    }

    void send(const void* data, size_t length, void* context, uint64_t tag) {
        ssize_t result = 0;
        do {
            result = fi_tsend(ep_, data, length, nullptr, peer_, tag, context);
            if (result == -FI_EAGAIN) {
                poll();
            }
        } while (result == -FI_EAGAIN);
        check(result, "fi_tsend");
        ++posted_;
    }
    void receive(void* data, size_t length, void* context, uint64_t tag) {
        ssize_t result = 0;
        do {
            result = fi_trecv(ep_, data, length, nullptr, FI_ADDR_UNSPEC, tag, 0, context);
            if (result == -FI_EAGAIN) {
                poll();
            }
        } while (result == -FI_EAGAIN);
        check(result, "fi_trecv");
        ++posted_;
    }
    void finish() {
        while (completed_ < posted_) {
            poll();
        }
    }

  private:
    void poll() {
        fi_cq_tagged_entry entries[kEntries];
        const ssize_t count = fi_cq_read(cq_, entries, entries_);
        if (count > 0) {
            completed_ += static_cast<uint64_t>(count);
        } else if (count != -FI_EAGAIN) {
            fi_cq_err_entry error{};
            fi_cq_readerr(cq_, &error, 0);
            std::fprintf(stderr, "completion: %s\n", fi_strerror(error.err));
            std::exit(1);
        }
    }
    void exchange_names(int control) {
        char name[256] = {};
        size_t length = sizeof(name);
        check(fi_getname(&ep_->fid, name, &length), "fi_getname");
        check(write(control, name, sizeof(name)) == sizeof(name) ? 0 : -FI_EIO, "name");
        char theirs[256];
        for (size_t got = 0; got < sizeof(theirs);) {
            const ssize_t part = read(control, theirs + got, sizeof(theirs) - got);
            check(part > 0 ? 0 : -FI_EIO, "the other's name");
            got += static_cast<size_t>(part);
        }
        check(fi_av_insert(av_, theirs, 1, &peer_, 0, nullptr) == 1 ? 0 : -FI_EADDRNOTAVAIL,
              "fi_av_insert");
    }

    fi_info* info_ = nullptr;
    fid_fabric* fabric_ = nullptr;
    fid_domain* domain_ = nullptr;
    fid_av* av_ = nullptr;
    fid_cq* cq_ = nullptr;
    fid_ep* ep_ = nullptr;
    fi_addr_t peer_ = 0;
    size_t entries_;
    uint64_t posted_ = 0;
    uint64_t completed_ = 0;
};

std::vector<fi_context2> contexts(kWindow);

double ping_pong(Endpoint& ep, bool client, size_t size, int count) {
    std::vector<char> out(size, 'o');
    std::vector<char> in(size);
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) {
        if (client) {
            ep.send(out.data(), size, &contexts[0], 1);
        }
        ep.receive(in.data(), size, &contexts[1], 1);
        ep.finish();
        if (!client) {
            ep.send(out.data(), size, &contexts[0], 1);
            ep.finish();
        }
    }
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / (2.0 * count);
}

// The client's messages to the server, a window at a time, each window answered. Seconds.
double stream(Endpoint& ep, bool client, size_t size, int count, int window) {
    std::vector<char> buffer(size * static_cast<size_t>(window), 's');
    char answer = 0;
    const auto start = Clock::now();
    for (int done = 0; done < count; done += window) {
        for (int i = 0; i < window; ++i) {
            char* place = buffer.data() + size * static_cast<size_t>(i);
            if (client) {
                ep.send(place, size, &contexts[static_cast<size_t>(i)], 2);
            } else {
                ep.receive(place, size, &contexts[static_cast<size_t>(i)], 2);
            }
        }
        ep.finish();
        if (client) {
            ep.receive(&answer, 1, &contexts[0], 3);
        } else {
            ep.send(&answer, 1, &contexts[0], 3);
        }
        ep.finish();
    }
    return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4 || argc > 6) {
        std::fprintf(stderr,
                     "usage: fabric_speed server|client SOCKET PROVIDER [ROUNDS [ENTRIES]]\n");
        return 2;
    }
    const bool client = std::string(argv[1]) == "client";
    const int rounds = argc > 4 ? std::atoi(argv[4]) : 5;  // of which the median counts
    const int control = meet(argv[2], !client);
    const size_t entries = argc > 5 ? std::strtoul(argv[5], nullptr, 10) : kEntries;
    Endpoint ep(argv[3], control, std::clamp(entries, size_t{1}, kEntries));
    ping_pong(ep, client, 8, kPings / 10);
    std::vector<double> latency;
    std::vector<double> rate;
    std::vector<double> bandwidth;
    for (int round = 0; round < rounds; ++round) {
        latency.push_back(ping_pong(ep, client, 8, kPings));
        rate.push_back(kMessages / stream(ep, client, 8, kMessages, kWindow));
        bandwidth.push_back(static_cast<double>(kLarge) * kLargeMessages / 1e6 /
                            stream(ep, client, kLarge, kLargeMessages, 16));
    }
    if (client) {
        std::printf("%-14s %12.2f %14.3f %12.0f\n", argv[3], median(latency), median(rate) / 1e6,
                    median(bandwidth));
    }
    // What the last answer's sender waits for.
    char byte = 0;
    static_cast<void>(!write(control, &byte, 1));
    static_cast<void>(!read(control, &byte, 1));
    std::fflush(stdout);
    _exit(0);
}
