// SPDX-License-Identifier: BSD-3-Clause
// A process is killed (SIGKILL) while another one has operations of every kind under way with it:
// each ends with an error within the configured time, the survivor can go on and close everything,
// and once it has ended nothing of the two is left in shared memory, hugepages or sockets.
#include "test/fi/killed.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "test/fi/fabric_fixture.h"

namespace tagwire::fi_test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kTimeoutMs = 2000;
constexpr uint64_t kRegionKey = 17;
constexpr size_t kLarge = 4 << 20;  // more than leaves before a receive is there

Info wanted() {
    Info hints = make_hints();
    hints->caps = FI_TAGGED | FI_MSG | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV;
    return get_info(*hints);
}

void expect(bool holds, const std::string& what) {
    if (!holds) {
        throw std::runtime_error(what);
    }
}

// A program of this file, whose standard output is readable here. It does not outlive its parent.
struct Process {
    explicit Process(const char* role) {
        int ends[2];
        require(pipe(ends), "pipe");
        id = fork();
        if (id == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            dup2(ends[1], STDOUT_FILENO);
            close(ends[0]);
            close(ends[1]);
            execl("/proc/self/exe", "fi_test", role, nullptr);
            _exit(127);
        }
        close(ends[1]);
        output = fdopen(ends[0], "r");
    }
    ~Process() { std::fclose(output); }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    int wait() const {
        int status = -1;
        waitpid(id, &status, 0);
        return status;
    }

    pid_t id = -1;
    FILE* output = nullptr;
};

// Paths of the sockets in a process's network namespace, by inode.
std::map<std::string, std::string> sockets_of(const fs::path& process) {
    std::map<std::string, std::string> paths;
    std::ifstream file(process / "net/unix");
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        const std::vector<std::string> fields{std::istream_iterator<std::string>(words), {}};
        if (fields.size() == 8) {
            paths[fields[6]] = fields[7];
        }
    }
    return paths;
}

// The files that a process has made: what it has open or mapped in shared memory, hugepages and
// folders for what does not last.
std::set<std::string> files_of(pid_t id) {
    std::set<std::string> names;
    const fs::path process = "/proc/" + std::to_string(id);
    const auto sockets = sockets_of(process);
    for (const auto& entry : fs::directory_iterator(process / "fd")) {
        std::error_code gone;
        const std::string target = fs::read_symlink(entry, gone);
        if (target.starts_with("socket:[")) {
            const auto found = sockets.find(target.substr(8, target.size() - 9));
            names.insert(found != sockets.end() ? found->second : "");
        } else {
            names.insert(target);
        }
    }
    std::ifstream maps(process / "maps");
    for (std::string line; std::getline(maps, line);) {
        const size_t path = line.find('/');
        names.insert(path != std::string::npos ? line.substr(path) : "");
    }
    std::erase_if(names, [](const std::string& name) {
        const char* folders[] = {"/dev/shm/", "/dev/hugepages", "/run/", "/var/run/", "/mnt/huge"};
        const bool passing = std::any_of(std::begin(folders), std::end(folders),
                                         [&](const char* at) { return name.starts_with(at); });
        return !passing || name.ends_with(" (deleted)");
    });
    return names;
}

class Survivor {
  public:
    void run() {
        require(setenv("TAGWIRE_PEER_TIMEOUT_MS", std::to_string(kTimeoutMs).c_str(), 1), "setenv");
        const Process victim("--victim");
        std::vector<char> name(sizeof(sockaddr_in));
        expect(std::fread(name.data(), 1, name.size(), victim.output) == name.size(), "no name");
        const Info info = wanted();
        fid_fabric* fabric = nullptr;
        require(fi_fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
        {
            Side side(fabric, info.get());
            side_ = &side;
            expect(fi_av_insert(side.av, name.data(), 1, &peer_, 0, nullptr) == 1, "fi_av_insert");
            be_heard();
            for (const pid_t process : {victim.id, getpid()}) {
                for (const std::string& file : files_of(process)) {
                    std::cout << file << "\n";
                }
            }
            post();
            require(kill(victim.id, SIGKILL), "kill");
            victim.wait();
            all_end();
            receive_afterwards();
        }
        require(fi_close(&fabric->fid), "close");
    }

  private:
    void be_heard() {
        require(fi_tsend(side_->ep, "hello", 6, nullptr, peer_, 1, nullptr), "fi_tsend");
        fi_cq_tagged_entry entry{};
        expect(fi_cq_sread(side_->cq, &entry, 1, nullptr, 30'000) == 1, "the first send");
    }

    // Operations that cannot be complete before the peer is killed.
    void post() {
        fid_ep* ep = side_->ep;
        buffer_.resize(kLarge);
        require(fi_trecv(ep, buffer_.data(), 64, nullptr, peer_, 2, 0, context("directed")),
                "trecv");
        require(fi_recv(ep, buffer_.data(), 64, nullptr, peer_, context("untagged")), "recv");
        require(fi_trecv(ep, buffer_.data(), 64, nullptr, FI_ADDR_UNSPEC, 3, 0, &anyone_), "trecv");
        require(fi_tsend(ep, buffer_.data(), kLarge, nullptr, peer_, 99, context("rendezvous")),
                "fi_tsend");
        iovec iov{buffer_.data(), 8};
        fi_msg_tagged matched{};
        matched.msg_iov = &iov;
        matched.iov_count = 1;
        matched.addr = peer_;
        matched.tag = 98;
        matched.context = context("match complete");
        require(fi_tsendmsg(ep, &matched, FI_COMPLETION | FI_MATCH_COMPLETE), "fi_tsendmsg");
    }
    // What would be done in no time while it lives.
    void post_to_dead() {
        fid_ep* ep = side_->ep;
        require(fi_tsend(ep, buffer_.data(), 8, nullptr, peer_, 1, context("send")), "fi_tsend");
        require(fi_write(ep, buffer_.data(), 64, nullptr, peer_, 0, kRegionKey, context("put")),
                "fi_write");
        require(fi_read(ep, buffer_.data(), 64, nullptr, peer_, 0, kRegionKey, context("get")),
                "fi_read");
        require(fi_atomic(ep, buffer_.data(), 1, nullptr, peer_, 0, kRegionKey, FI_UINT64, FI_SUM,
                          context("atomic")),
                "fi_atomic");
    }

    void all_end() {
        const auto killed = steady_clock::now();
        post_to_dead();
        while (!under_way_.empty()) {
            fail_one();
        }
        const auto took = steady_clock::now() - killed;
        // A quarter of it may go by before a peer that is silent is asked.
        expect(took < milliseconds(kTimeoutMs * 5 / 4 + 1000),
               "the errors took " +
                   std::to_string(std::chrono::duration_cast<milliseconds>(took).count()) + " ms");
    }

    void receive_afterwards() {
        require(fi_trecv(side_->ep, buffer_.data(), 64, nullptr, peer_, 2, 0, context("late")),
                "fi_trecv");
        fail_one();
        // That of any source waits, and is taken back.
        fi_cq_tagged_entry entry{};
        expect(fi_cq_read(side_->cq, &entry, 1) == -FI_EAGAIN, "something is there");
        require(fi_cancel(&side_->ep->fid, &anyone_), "fi_cancel");
        expect(fi_cq_sread(side_->cq, &entry, 1, nullptr, 10'000) == -FI_EAVAIL,
               "no cancelled one");
        fi_cq_err_entry error{};
        fi_cq_readerr(side_->cq, &error, 0);
        expect(error.err == FI_ECANCELED && error.op_context == &anyone_, "another error");
    }

    void fail_one() {
        fi_cq_tagged_entry entry{};
        const ssize_t count = fi_cq_sread(side_->cq, &entry, 1, nullptr, 20'000);
        expect(count == -FI_EAVAIL,
               count == 1 ? name_of(entry.op_context) + " succeeded" : "no error for " + left());
        fi_cq_err_entry error{};
        expect(fi_cq_readerr(side_->cq, &error, 0) == 1, "no error entry");
        expect(error.err == FI_ETIMEDOUT,
               name_of(error.op_context) + ": " + fi_strerror(error.err));
        expect(under_way_.erase(error.op_context) == 1, "one ended twice");
    }

    void* context(const char* name) {
        fi_context* made = &contexts_[under_way_.size()];
        under_way_[made] = name;
        return made;
    }
    std::string name_of(void* context) {
        const auto found = under_way_.find(context);
        return found != under_way_.end() ? found->second : "an unknown operation";
    }
    std::string left() const {
        std::string text;
        for (const auto& [context, name] : under_way_) {
            text += " " + name;
        }
        return text;
    }

    Side* side_ = nullptr;
    fi_addr_t peer_ = FI_ADDR_UNSPEC;
    std::vector<char> buffer_;
    fi_context contexts_[16] = {};
    fi_context anyone_{};
    std::map<void*, std::string> under_way_;
};

TEST(Killed, OperationsEndInTimeAndNothingIsLeft) {
    const std::string wire = "switch:fi-killed-" + std::to_string(getpid());
    const std::string before = std::getenv("TAGWIRE_WIRE");
    setenv("TAGWIRE_WIRE", wire.c_str(), 1);
    const Process survivor("--survivor");
    setenv("TAGWIRE_WIRE", before.c_str(), 1);
    std::vector<std::string> files;
    char line[4096];
    while (std::fgets(line, sizeof(line), survivor.output) != nullptr) {
        files.emplace_back(line, std::strcspn(line, "\n"));
    }
    EXPECT_EQ(survivor.wait(), 0);
    EXPECT_FALSE(files.empty()) << "it uses the switch at least";
    for (const std::string& file : files) {
        EXPECT_FALSE(fs::exists(file)) << file;
    }
}

}  // namespace

void run_victim() {
    const Info info = wanted();
    fid_fabric* fabric = nullptr;
    require(fi_fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
    Side side(fabric, info.get());
    std::vector<uint64_t> region(8192);
    fid_mr* mr = nullptr;
    require(fi_mr_reg(side.domain, region.data(), region.size() * sizeof(region[0]),
                      FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kRegionKey, 0, &mr, nullptr),
            "fi_mr_reg");
    const std::vector<char> name = side.name();
    require(write(STDOUT_FILENO, name.data(), name.size()), "name");
    std::vector<char> buffer(64);
    for (;;) {
        require(
            fi_trecv(side.ep, buffer.data(), buffer.size(), nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr),
            "fi_trecv");
        fi_cq_tagged_entry entry{};
        require(fi_cq_sread(side.cq, &entry, 1, nullptr, -1), "fi_cq_sread");
    }
}

int run_survivor() {
    try {
        Survivor().run();
        return 0;
    } catch (const std::exception& error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}

}  // namespace tagwire::fi_test
