// SPDX-License-Identifier: BSD-3-Clause
// Two programs on simulated machines, one with a region that the other may reach.
#pragma once

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "lib/rma/region.h"
#include "test/tagwire/sim_peer.h"

namespace tagwire::test {

// A region and its memory.
class Memory {
  public:
    Memory(SimPeer& peer, size_t length, uint64_t access = TW_REMOTE_READ | TW_REMOTE_WRITE,
           uint64_t flags = 0)
        : bytes(length, '\0') {
        const iovec iov{bytes.data(), bytes.size()};
        open(peer, &iov, 1, access, flags);
    }
    // Several pieces, addressed from 0.
    Memory(SimPeer& peer, const std::vector<iovec>& iov) {
        open(peer, iov.data(), iov.size(), TW_REMOTE_READ | TW_REMOTE_WRITE, TW_MR_OFFSET);
    }
    ~Memory() { close(); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    void close() {
        if (mr != nullptr) {
            EXPECT_EQ(tw_mr_close(mr), 0) << tw_last_error();
            mr = nullptr;
        }
    }
    void forget() {  // its worker died
        delete mr;
        mr = nullptr;
    }

    uint64_t key() const { return tw_mr_key(mr); }
    uint64_t address(size_t offset = 0) const {
        return reinterpret_cast<uint64_t>(bytes.data()) + offset;
    }
    template <typename T>
    T& at(size_t offset) {
        return *reinterpret_cast<T*>(bytes.data() + offset);
    }

    std::string bytes;
    tw_mr* mr = nullptr;

  private:
    void open(SimPeer& peer, const iovec* iov, size_t count, uint64_t access, uint64_t flags) {
        tw_mr_attr attr{};
        attr.size = sizeof(attr);
        attr.iov = iov;
        attr.iov_count = count;
        attr.access = access;
        attr.flags = flags;
        EXPECT_EQ(tw_mr_open(peer.worker, &attr, &mr), 0) << tw_last_error();
    }
};

class RmaPair : public SimPair {
  protected:
    // The payload is kept.
    void write(const std::string& bytes, const Memory& to, size_t offset, void* context = nullptr) {
        const std::string& payload = payloads.emplace_back(bytes);
        a.posted(tw_write(a.ep, payload.data(), payload.size(), a.address_of(b), to.address(offset),
                          to.key(), context));
    }
    void read(std::string& buffer, const Memory& from, size_t offset, void* context = nullptr) {
        a.posted(tw_read(a.ep, buffer.data(), buffer.size(), a.address_of(b), from.address(offset),
                         from.key(), context));
    }
    // All operations that `a` began have ended.
    bool finish() {
        return run([this] { return a.stat("rma_outstanding") == 0; }, 60 * kSecond);
    }
    // The only operation failed.
    void expect_refused(int error, const char* counter) {
        ASSERT_TRUE(run([this] { return a.errors.size() + a.sent.size() == 1; }));
        ASSERT_EQ(a.errors.size(), 1u) << "it succeeded";
        EXPECT_EQ(a.errors[0].error, error);
        EXPECT_EQ(a.errors[0].provider_error, error);
        EXPECT_STRNE(a.errors[0].text, "");
        EXPECT_EQ(b.stat(counter), 1u) << counter;
        a.errors.clear();
    }

    std::deque<std::string> payloads;
};

}  // namespace tagwire::test
