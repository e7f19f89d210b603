// SPDX-License-Identifier: BSD-3-Clause
// Latency and message rate of 8-byte tagged messages between two processes over a libfabric
// provider, measured as tagwire-perf does: half of a round trip, and messages one way with 64
// outstanding, timed at the receiver.
//
//   fabric_pair PROVIDER ROUND_TRIPS MESSAGES        PROVIDER: shm, "tcp;ofi_rxm"
//
// The program forks; each half stays on a core of its own when there are two. Prints the
// median latency in microseconds and the rate in messages a second.
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
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

constexpr size_t kSize = 8;
constexpr uint64_t kWindow = 64;
constexpr uint64_t kWarmUp = 1000;
constexpr auto kPatience = std::chrono::seconds(60);

[[noreturn]] void die(const std::string& what) {
    std::fprintf(stderr, "fabric_pair: %s\n", what.c_str());
    std::exit(1);
}

void check(long result, const char* what) {
    if (result < 0) {
        die(std::string(what) + ": " + fi_strerror(static_cast<int>(-result)));
    }
}

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// The first or the second of the cores that this program may use.
void pin(int half) {
    cpu_set_t allowed, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < 2) {
        return;
    }
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &allowed) && half-- == 0) {
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof(one), &one);
            return;
        }
    }
}

class Half {
  public:
    Half(const std::string& provider, int socket) {
        fi_info* hints = fi_allocinfo();
        hints->ep_attr->type = FI_EP_RDM;
        hints->caps = FI_TAGGED;
        hints->mode = FI_CONTEXT;
        hints->domain_attr->threading = FI_THREAD_DOMAIN;
        hints->domain_attr->mr_mode = 0;
        hints->fabric_attr->prov_name = strdup(provider.c_str());
        const char* node = provider.starts_with("tcp") ? "127.0.0.1" : nullptr;
        check(fi_getinfo(FI_VERSION(1, 17), node, nullptr, node != nullptr ? FI_SOURCE : 0, hints,
                         &info_),
              "fi_getinfo");
        fi_fabric(info_->fabric_attr, &fabric_, nullptr);
        check(fi_domain(fabric_, info_, &domain_, nullptr), "fi_domain");
        fi_cq_attr cq_attr{};
        cq_attr.format = FI_CQ_FORMAT_CONTEXT;
        cq_attr.size = 4 * kWindow;
        check(fi_cq_open(domain_, &cq_attr, &tx_, nullptr), "fi_cq_open");
        check(fi_cq_open(domain_, &cq_attr, &rx_, nullptr), "fi_cq_open");
        fi_av_attr av_attr{};
        av_attr.type = FI_AV_TABLE;
        check(fi_av_open(domain_, &av_attr, &av_, nullptr), "fi_av_open");
        check(fi_endpoint(domain_, info_, &ep_, nullptr), "fi_endpoint");
        check(fi_ep_bind(ep_, &av_->fid, 0), "fi_ep_bind");
        check(fi_ep_bind(ep_, &tx_->fid, FI_TRANSMIT), "fi_ep_bind");
        check(fi_ep_bind(ep_, &rx_->fid, FI_RECV), "fi_ep_bind");
        check(fi_enable(ep_), "fi_enable");
        exchange_names(socket);
        fi_freeinfo(hints);
    }

    void inject(uint64_t tag) {
        post([&] { return fi_tinject(ep_, out_, kSize, peer_, tag); });
    }
    void send(uint64_t tag, uint64_t slot) {
        post([&] { return fi_tsend(ep_, out_, kSize, nullptr, peer_, tag, &contexts_[slot]); });
    }
    void receive(uint64_t tag, uint64_t slot) {
        post([&] {
            return fi_trecv(ep_, in_[slot], kSize, nullptr, FI_ADDR_UNSPEC, tag, 0,
                            &contexts_[kWindow * 2 + slot]);
        });
    }
    void wait_sent() { wait(tx_); }
    void wait_received() {
        if (ready_ == 0) {
            ready_ = wait(rx_, 1);
        }
        --ready_;
    }
    uint64_t wait(fid_cq* cq, size_t most = 1) {
        fi_cq_entry entries[kWindow];
        const auto end = Clock::now() + kPatience;
        for (uint32_t i = 1;; ++i) {
            const ssize_t count = fi_cq_read(cq, entries, std::min<size_t>(most, kWindow));
            if (count > 0) {
                return static_cast<uint64_t>(count);
            }
            if (count != -FI_EAGAIN) {
                check(count, "fi_cq_read");
            }
            if (i % 4096 == 0 && Clock::now() > end) {
                die("the other half is silent");
            }
        }
    }
    fid_cq* tx() { return tx_; }

  private:
    template <typename Call>
    void post(Call call) {
        for (;;) {
            const ssize_t result = call();
            if (result == 0) {
                return;
            }
            if (result != -FI_EAGAIN) {
                check(result, "posting");
            }
            fi_cq_read(tx_, nullptr, 0);
            fi_cq_read(rx_, nullptr, 0);
        }
    }

    void exchange_names(int socket) {
        char name[512] = {}, other[512] = {};
        size_t size = sizeof(name);
        check(fi_getname(&ep_->fid, name, &size), "fi_getname");
        if (write(socket, name, sizeof(name)) != sizeof(name) ||
            recv(socket, other, sizeof(other), MSG_WAITALL) != sizeof(other)) {
            die("the other half is gone");
        }
        if (fi_av_insert(av_, other, 1, &peer_, 0, nullptr) != 1) {
            die("fi_av_insert");
        }
    }

    fi_info* info_ = nullptr;
    fid_fabric* fabric_ = nullptr;
    fid_domain* domain_ = nullptr;
    fid_cq* tx_ = nullptr;
    fid_cq* rx_ = nullptr;
    fid_av* av_ = nullptr;
    fid_ep* ep_ = nullptr;
    fi_addr_t peer_ = FI_ADDR_UNSPEC;
    char out_[kSize] = {};
    char in_[2 * kWindow][kSize] = {};
    fi_context contexts_[4 * kWindow] = {};
    uint64_t ready_ = 0;
};

void run(const std::string& provider, int half, int socket, uint64_t round_trips,
         uint64_t messages) {
    pin(half);
    Half side(provider, socket);
    std::vector<double> half_us;
    for (uint64_t i = 0; i < kWarmUp + round_trips; ++i) {
        side.receive(1, 0);
        if (half == 0) {
            side.wait_received();
            side.inject(1);
            continue;
        }
        if (i == 0) {  // a receive is posted at the other half before the first message
            usleep(20000);
        }
        const auto start = Clock::now();
        side.inject(1);
        side.wait_received();
        if (i >= kWarmUp) {
            half_us.push_back(seconds_since(start) * 0.5e6);
        }
    }
    if (half == 1) {
        usleep(20000);
        uint64_t posted = 0, done = 0;
        while (done < kWarmUp + messages) {
            while (posted < kWarmUp + messages && posted - done < kWindow) {
                side.send(2, posted++ % kWindow);
            }
            done += side.wait(side.tx(), kWindow);
        }
        std::nth_element(half_us.begin(), half_us.begin() + half_us.size() / 2, half_us.end());
        double rate = 0;
        if (recv(socket, &rate, sizeof(rate), MSG_WAITALL) != sizeof(rate)) {
            die("the other half is gone");
        }
        std::printf("%.3f %.0f\n", half_us[half_us.size() / 2], rate);
        return;
    }
    constexpr uint64_t kSlots = 2 * kWindow;
    uint64_t posted = 0;
    while (posted < kSlots) {
        side.receive(2, posted++);
    }
    Clock::time_point start;
    for (uint64_t i = 0; i < kWarmUp + messages; ++i) {
        side.wait_received();
        if (i + 1 == kWarmUp) {
            start = Clock::now();
        }
        if (posted < kWarmUp + messages) {
            side.receive(2, posted++ % kSlots);
        }
    }
    const double rate = static_cast<double>(messages) / seconds_since(start);
    if (write(socket, &rate, sizeof(rate)) != sizeof(rate)) {
        die("the other half is gone");
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: fabric_pair PROVIDER ROUND_TRIPS MESSAGES\n");
        return 2;
    }
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) {
        die("no socket pair");
    }
    const uint64_t round_trips = std::strtoull(argv[2], nullptr, 10);
    const uint64_t messages = std::strtoull(argv[3], nullptr, 10);
    const pid_t child = fork();
    close(ends[child == 0 ? 0 : 1]);
    run(argv[1], child == 0 ? 0 : 1, ends[child == 0 ? 1 : 0], round_trips, messages);
    if (child == 0) {
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status == 0 ? 0 : 1;
}
