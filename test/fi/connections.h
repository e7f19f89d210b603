// SPDX-License-Identifier: BSD-3-Clause
// A listener and an active side, each on a port of its own.
#pragma once

#include <netinet/in.h>

#include <string>

#include "test/fi/fabric_fixture.h"

namespace tagwire::fi_test {

struct Entry {
    alignas(fi_eq_cm_entry) char bytes[sizeof(fi_eq_cm_entry) + 256] = {};

    const fi_eq_cm_entry* operator->() const {
        return reinterpret_cast<const fi_eq_cm_entry*>(bytes);
    }
    std::string param(size_t length) const { return {bytes + sizeof(fi_eq_cm_entry), length}; }
};

class Connections : public testing::Test {
  protected:
    struct Active {
        fid_domain* domain = nullptr;
        fid_ep* ep = nullptr;
        fid_cq* cq = nullptr;
        fid_ep* srx = nullptr;
    };

    void SetUp() override {
        const Info hints = make_hints();
        hints->ep_attr->type = FI_EP_MSG;
        hints->addr_format = address_format_;
        hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
        hints->domain_attr->threading = FI_THREAD_SAFE;
        hints->ep_attr->rx_ctx_cnt = shares_receives_ ? FI_SHARED_CONTEXT : 1;
        info_ = get_info(*hints);
        ASSERT_EQ(info_->ep_attr->type, FI_EP_MSG);
        require(fi_fabric(info_->fabric_attr, &fabric_, nullptr), "fi_fabric");
        fi_eq_attr attr{};
        attr.wait_obj = FI_WAIT_FD;
        require(fi_eq_open(fabric_, &attr, &eq_, nullptr), "fi_eq_open");
        require(fi_passive_ep(fabric_, info_.get(), &pep_, nullptr), "fi_passive_ep");
        // The first is the listener's, the second another one.
        require(fi_domain(fabric_, info_.get(), &server_.domain, nullptr), "fi_domain");
        require(fi_domain(fabric_, info_.get(), &client_.domain, nullptr), "fi_domain");
        EXPECT_EQ(fi_listen(pep_), -FI_ENOEQ);
        require(fi_pep_bind(pep_, &eq_->fid, 0), "fi_pep_bind");
        require(fi_listen(pep_), "fi_listen");
        open(client_, info_.get());
    }
    void TearDown() override {
        for (Active* side : {&client_, &server_}) {
            if (side->ep != nullptr) {
                close(*side);
            }
        }
        if (pep_ != nullptr) {
            EXPECT_EQ(fi_close(&pep_->fid), 0);
        }
        for (const Active* side : {&client_, &server_}) {
            if (side->domain != nullptr) {
                EXPECT_EQ(fi_close(&side->domain->fid), 0);
            }
        }
        EXPECT_EQ(fi_close(&eq_->fid), 0);
        EXPECT_EQ(fi_close(&fabric_->fid), 0);
    }

    void open(Active& side, fi_info* info) {
        if (side.domain == nullptr) {
            require(fi_domain(fabric_, info, &side.domain, nullptr), "fi_domain");
        }
        if (side.cq == nullptr) {
            fi_cq_attr attr{};
            attr.format = FI_CQ_FORMAT_TAGGED;
            require(fi_cq_open(side.domain, &attr, &side.cq, nullptr), "fi_cq_open");
        }
        if (shares_receives_ && side.srx == nullptr) {
            require(fi_srx_context(side.domain, nullptr, &side.srx, nullptr), "fi_srx_context");
        }
        require(fi_endpoint(side.domain, info, &side.ep, nullptr), "fi_endpoint");
        require(fi_ep_bind(side.ep, &side.cq->fid, FI_TRANSMIT | FI_RECV), "bind cq");
        require(fi_ep_bind(side.ep, &eq_->fid, 0), "bind eq");
        if (side.srx != nullptr) {
            require(fi_ep_bind(side.ep, &side.srx->fid, 0), "bind srx");
        }
        require(fi_enable(side.ep), "fi_enable");
    }

    void close(Active& side) {
        EXPECT_EQ(fi_close(&side.ep->fid), 0);
        if (side.srx != nullptr) {
            EXPECT_EQ(fi_close(&side.srx->fid), 0);
        }
        EXPECT_EQ(fi_close(&side.cq->fid), 0);
        side = {.domain = side.domain};
    }
    void expect_no_event() {
        uint32_t type = 0;
        Entry entry{};
        EXPECT_EQ(fi_eq_sread(eq_, &type, entry.bytes, sizeof(entry.bytes), 50, 0), -FI_EAGAIN);
    }

    // The next event of the queue. Both domains move by themselves.
    uint32_t event(Entry* entry, size_t* param_length = nullptr) {
        uint32_t type = 0;
        const ssize_t size =
            fi_eq_sread(eq_, &type, (*entry).bytes, sizeof((*entry).bytes), 20'000, 0);
        EXPECT_GE(size, static_cast<ssize_t>(sizeof(fi_eq_cm_entry)));
        if (param_length != nullptr) {
            *param_length = static_cast<size_t>(size) - sizeof(fi_eq_cm_entry);
        }
        return type;
    }
    std::string name(fid* object) {
        std::string bytes(64, '\0');
        size_t length = bytes.size();
        require(fi_getname(object, bytes.data(), &length), "fi_getname");
        bytes.resize(length);
        return bytes;
    }
    void connect() { connect(client_); }
    void connect(const Active& client) {
        require(fi_connect(client.ep, name(&pep_->fid).data(), "hello", 5), "fi_connect");
    }
    // Accepts the request that comes next, and waits for both sides' FI_CONNECTED.
    void accept() { accept(client_, server_); }
    void accept(const Active& client, Active& server) {
        Entry entry{};
        size_t length = 0;
        ASSERT_EQ(event(&entry, &length), uint32_t{FI_CONNREQ});
        EXPECT_EQ(entry->fid, &pep_->fid);
        EXPECT_EQ(entry.param(length), "hello");
        const Info request(entry->info);
        open(server, request.get());
        require(fi_accept(server.ep, "welcome", 7), "fi_accept");
        for (int i = 0; i < 2; ++i) {
            Entry connected{};
            ASSERT_EQ(event(&connected, &length), uint32_t{FI_CONNECTED});
            if (connected->fid == &client.ep->fid) {
                EXPECT_EQ(connected.param(length), "welcome");
            } else {
                EXPECT_EQ(connected->fid, &server.ep->fid);
            }
        }
    }
    fi_cq_tagged_entry completion(const Active& side) {
        fi_cq_tagged_entry entry{};
        for (long turn = 0; turn < 20'000'000; ++turn) {
            const ssize_t result = fi_cq_read(side.cq, &entry, 1);
            if (result != -FI_EAGAIN) {
                EXPECT_EQ(result, 1);
                return entry;
            }
        }
        ADD_FAILURE() << "no completion";
        return entry;
    }

    // Set before SetUp().
    uint32_t address_format_ = FI_SOCKADDR_IN;
    bool shares_receives_ = false;
    Info info_;
    fid_fabric* fabric_ = nullptr;
    fid_eq* eq_ = nullptr;
    fid_pep* pep_ = nullptr;
    Active client_;
    Active server_;
};

}  // namespace tagwire::fi_test
