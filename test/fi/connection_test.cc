// SPDX-License-Identifier: BSD-3-Clause
// Connected endpoints through libfabric: a listener and an active side, each on a port of its own.
#include <netinet/in.h>

#include <set>
#include <string>

#include "test/fi/connections.h"

namespace tagwire::fi_test {
namespace {

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
    EXPECT_EQ(peer, name(&pep_->fid));
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
    const std::string listener = name(&pep_->fid);
    ASSERT_EQ(request->src_addrlen, listener.size());
    EXPECT_EQ(std::memcmp(request->src_addr, listener.data(), listener.size()), 0);
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
