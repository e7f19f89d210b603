// SPDX-License-Identifier: BSD-3-Clause
// Connected endpoints through libfabric: a listener and an active side, each on a port of its own.
#include <netinet/in.h>

#include <set>
#include <string>

#include "test/fi/fabric_fixture.h"

namespace tagwire::fi_test {
namespace {

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
    };

    void SetUp() override {
        const Info hints = make_hints();
        hints->ep_attr->type = FI_EP_MSG;
        hints->addr_format = address_format_;
        hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
        hints->domain_attr->threading = FI_THREAD_SAFE;
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
        fi_cq_attr attr{};
        attr.format = FI_CQ_FORMAT_TAGGED;
        require(fi_cq_open(side.domain, &attr, &side.cq, nullptr), "fi_cq_open");
        require(fi_endpoint(side.domain, info, &side.ep, nullptr), "fi_endpoint");
        require(fi_ep_bind(side.ep, &side.cq->fid, FI_TRANSMIT | FI_RECV), "bind cq");
        require(fi_ep_bind(side.ep, &eq_->fid, 0), "bind eq");
        require(fi_enable(side.ep), "fi_enable");
    }

    void close(Active& side) {
        EXPECT_EQ(fi_close(&side.ep->fid), 0);
        EXPECT_EQ(fi_close(&side.cq->fid), 0);
        side.ep = nullptr;
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
    void connect() {
        require(fi_connect(client_.ep, name(&pep_->fid).data(), "hello", 5), "fi_connect");
    }
    // Accepts the request that comes next, and waits for both sides' FI_CONNECTED.
    void accept() {
        Entry entry{};
        size_t length = 0;
        ASSERT_EQ(event(&entry, &length), uint32_t{FI_CONNREQ});
        EXPECT_EQ(entry->fid, &pep_->fid);
        EXPECT_EQ(entry.param(length), "hello");
        const Info request(entry->info);
        open(server_, request.get());
        require(fi_accept(server_.ep, "welcome", 7), "fi_accept");
        for (int i = 0; i < 2; ++i) {
            Entry connected{};
            ASSERT_EQ(event(&connected, &length), uint32_t{FI_CONNECTED});
            if (connected->fid == &client_.ep->fid) {
                EXPECT_EQ(connected.param(length), "welcome");
            } else {
                EXPECT_EQ(connected->fid, &server_.ep->fid);
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

    uint32_t address_format_ = FI_SOCKADDR_IN;
    Info info_;
    fid_fabric* fabric_ = nullptr;
    fid_eq* eq_ = nullptr;
    fid_pep* pep_ = nullptr;
    Active client_;
    Active server_;
};

TEST_F(Connections, MessagesGoBothWaysAndThePeersKnowEachOther) {
    connect();
    accept();
    char text[16] = {};
    require(fi_recv(server_.ep, text, sizeof(text), nullptr, FI_ADDR_UNSPEC, text), "fi_recv");
    require(fi_send(client_.ep, "question", 8, nullptr, 0, nullptr), "fi_send");
    EXPECT_EQ(completion(client_).flags, uint64_t{FI_SEND | FI_MSG});
    EXPECT_EQ(completion(server_).len, 8u);
    EXPECT_STREQ(text, "question");
    char tagged[16] = {};
    require(fi_trecv(client_.ep, tagged, sizeof(tagged), nullptr, FI_ADDR_UNSPEC, 7, 0, nullptr),
            "fi_trecv");
    require(fi_tsend(server_.ep, "answer", 6, nullptr, FI_ADDR_UNSPEC, 7, nullptr), "fi_tsend");
    EXPECT_EQ(completion(client_).tag, 7u);
    EXPECT_STREQ(tagged, "answer");

    std::string peer(64, '\0');
    size_t length = peer.size();
    require(fi_getpeer(client_.ep, peer.data(), &length), "fi_getpeer");
    peer.resize(length);
    EXPECT_EQ(peer, name(&server_.ep->fid));
    size_t small = 3;
    EXPECT_EQ(fi_getpeer(client_.ep, peer.data(), &small), -FI_ETOOSMALL);
    EXPECT_EQ(small, length);
}

class Connections6 : public Connections {
  protected:
    void SetUp() override {
        address_format_ = FI_SOCKADDR_IN6;
        Connections::SetUp();
    }
};

TEST_F(Connections6, HaveNamesInTheirFormat) {
    EXPECT_EQ(name(&pep_->fid).size(), sizeof(sockaddr_in6));
    connect();
    Entry entry{};
    ASSERT_EQ(event(&entry), uint32_t{FI_CONNREQ});
    const Info request(entry->info);
    EXPECT_EQ(request->addr_format, uint32_t{FI_SOCKADDR_IN6});
    const std::string active = name(&client_.ep->fid);
    ASSERT_EQ(request->dest_addrlen, active.size());
    EXPECT_EQ(std::memcmp(request->dest_addr, active.data(), active.size()), 0);
    require(fi_reject(pep_, request->handle, nullptr, 0), "fi_reject");
}

TEST_F(Connections, ADomainOfARequestIsThatOfItsListener) {
    fid_domain* domain = nullptr;
    connect();
    Entry entry{};
    ASSERT_EQ(event(&entry), uint32_t{FI_CONNREQ});
    const Info request(entry->info);
    require(fi_domain(fabric_, request.get(), &domain, nullptr), "fi_domain");
    EXPECT_EQ(domain, server_.domain);
    EXPECT_EQ(fi_close(&domain->fid), 0);
    require(fi_reject(pep_, request->handle, nullptr, 0), "fi_reject");
    uint32_t type = 0;
    EXPECT_EQ(fi_eq_sread(eq_, &type, entry.bytes, sizeof(entry.bytes), 20'000, 0), -FI_EAVAIL);
}

TEST_F(Connections, APassiveEndpointUsesTheDomainThatIsThere) {
    fid_fabric* fabric = nullptr;
    require(fi_fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
    fid_domain* domain = nullptr;
    require(fi_domain(fabric, info_.get(), &domain, nullptr), "fi_domain");
    fid_pep* pep = nullptr;
    require(fi_passive_ep(fabric, info_.get(), &pep, nullptr), "fi_passive_ep");
    fid_ep* ep = nullptr;
    require(fi_endpoint(domain, info_.get(), &ep, nullptr), "fi_endpoint");
    // IP address and UDP port are one worker's.
    EXPECT_EQ(name(&pep->fid).substr(0, 8), name(&ep->fid).substr(0, 8));
    EXPECT_EQ(fi_close(&ep->fid), 0);
    EXPECT_EQ(fi_close(&domain->fid), 0);
    EXPECT_EQ(fi_close(&pep->fid), 0);
    EXPECT_EQ(fi_close(&fabric->fid), 0);
}

TEST_F(Connections, ShutdownIsAnEventOfBothSidesWhoeverCallsIt) {
    for (const bool both : {false, true}) {
        connect();
        accept();
        require(fi_shutdown(client_.ep, 0), "fi_shutdown");
        if (both) {
            const int result = fi_shutdown(server_.ep, 0);
            EXPECT_TRUE(result == 0 || result == -FI_ENOTCONN) << result;
        }
        std::set<struct fid*> ended;
        for (int i = 0; i < 2; ++i) {
            Entry entry{};
            ASSERT_EQ(event(&entry), uint32_t{FI_SHUTDOWN});
            ended.insert(entry->fid);
        }
        EXPECT_EQ(ended, (std::set<struct fid*>{&client_.ep->fid, &server_.ep->fid}));
        expect_no_event();
        close(client_);
        close(server_);
        open(client_, info_.get());
    }
}

// As programs do that keep their domain: an endpoint connects once in its life.
TEST_F(Connections, NewEndpointsConnectAfterARejectionAndAfterAnEnd) {
    for (int i = 0; i < 3; ++i) {
        connect();
        Entry entry{};
        ASSERT_EQ(event(&entry), uint32_t{FI_CONNREQ});
        const Info request(entry->info);
        require(fi_reject(pep_, request->handle, "no", 2), "fi_reject");
        uint32_t type = 0;
        ASSERT_EQ(fi_eq_sread(eq_, &type, entry.bytes, sizeof(entry.bytes), 20'000, 0), -FI_EAVAIL);
        fi_eq_err_entry error{};
        ASSERT_GT(fi_eq_readerr(eq_, &error, 0), 0);
        close(client_);
        open(client_, info_.get());
        connect();
        accept();
        require(fi_shutdown(server_.ep, 0), "fi_shutdown");
        ASSERT_EQ(event(&entry), uint32_t{FI_SHUTDOWN});
        ASSERT_EQ(event(&entry), uint32_t{FI_SHUTDOWN});
        close(client_);
        close(server_);
        open(client_, info_.get());
    }
}

TEST_F(Connections, ARejectedRequestIsAnErrorWithData) {
    connect();
    Entry entry{};
    ASSERT_EQ(event(&entry), uint32_t{FI_CONNREQ});
    const Info request(entry->info);
    require(fi_reject(pep_, request->handle, "no", 2), "fi_reject");
    uint32_t type = 0;
    ASSERT_EQ(fi_eq_sread(eq_, &type, entry.bytes, sizeof(entry.bytes), 20'000, 0), -FI_EAVAIL);
    char reason[16] = {};
    fi_eq_err_entry error{};
    error.err_data = reason;
    error.err_data_size = sizeof(reason);
    ASSERT_GT(fi_eq_readerr(eq_, &error, 0), 0);
    EXPECT_EQ(error.fid, &client_.ep->fid);
    EXPECT_EQ(error.err, FI_ECONNREFUSED);
    EXPECT_EQ(std::string(reason, error.err_data_size), "no");
}

TEST_F(Connections, NobodyListensThere) {
    // The address of an endpoint, which is not a listener's.
    require(fi_connect(client_.ep, name(&client_.ep->fid).data(), nullptr, 0), "fi_connect");
    uint32_t type = 0;
    Entry entry{};
    ASSERT_EQ(fi_eq_sread(eq_, &type, entry.bytes, sizeof(entry.bytes), 20'000, 0), -FI_EAVAIL);
    fi_eq_err_entry error{};
    ASSERT_GT(fi_eq_readerr(eq_, &error, 0), 0);
    EXPECT_EQ(error.err, FI_ECONNREFUSED);
}

TEST_F(Connections, AnRdmEndpointDoesNotConnect) {
    const Info hints = make_hints();
    const Info info = get_info(*hints);
    fid_ep* ep = nullptr;
    require(fi_endpoint(client_.domain, info.get(), &ep, nullptr), "fi_endpoint");
    EXPECT_EQ(fi_connect(ep, name(&pep_->fid).data(), nullptr, 0), -FI_EINVAL);
    EXPECT_EQ(fi_accept(ep, nullptr, 0), -FI_EINVAL);
    EXPECT_EQ(fi_shutdown(ep, 0), -FI_EINVAL);
    EXPECT_EQ(fi_close(&ep->fid), 0);
}

}  // namespace
}  // namespace tagwire::fi_test
