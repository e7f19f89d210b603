// SPDX-License-Identifier: BSD-3-Clause
// Whose address is whose: fi_setname, endpoints that take over a passive endpoint's address, and
// what an accepted endpoint is called.
#include <arpa/inet.h>

#include <cstring>

#include "test/fi/connections.h"

namespace tagwire::fi_test {
namespace {

constexpr uint16_t kPort = 7777;

sockaddr_in address_of(const std::string& name) {
    sockaddr_in address{};
    std::memcpy(&address, name.data(), sizeof(address));
    return address;
}

sockaddr_in any_with(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    return address;
}

class Naming : public Connections {
  protected:
    void SetUp() override {
        Connections::SetUp();
        require(fi_fabric(info_->fabric_attr, &other_, nullptr), "fi_fabric");
    }
    void TearDown() override {
        close_if_open(taker_.ep);
        close_if_open(taker_.cq);
        close_if_open(taker_pep_);
        close_if_open(taker_.domain);
        close_if_open(taker_eq_);
        close_if_open(other_);
        Connections::TearDown();
    }
    template <class Object>
    static void close_if_open(Object*& object) {
        if (object != nullptr) {
            EXPECT_EQ(fi_close(&object->fid), 0);
            object = nullptr;
        }
    }
    static int set_name(fid* object, sockaddr_in address) {
        return fi_setname(object, &address, sizeof(address));
    }

    // Without an address, on a fabric of its own.
    void open_passive() {
        const Info nameless(fi_dupinfo(info_.get()));
        std::free(nameless->src_addr);
        nameless->src_addr = nullptr;
        nameless->src_addrlen = 0;
        require(fi_passive_ep(other_, nameless.get(), &taker_pep_, nullptr), "fi_passive_ep");
    }
    // What fi_getinfo makes of it.
    Info inherit() {
        const Info hints = make_hints();
        hints->ep_attr->type = FI_EP_MSG;
        hints->domain_attr->threading = FI_THREAD_SAFE;
        hints->handle = &taker_pep_->fid;
        return get_info(*hints);
    }
    void open_taker(fi_info* info) {
        require(fi_domain(other_, info, &taker_.domain, nullptr), "fi_domain");
        require(fi_endpoint(taker_.domain, info, &taker_.ep, nullptr), "fi_endpoint");
    }

    fid_fabric* other_ = nullptr;
    fid_pep* taker_pep_ = nullptr;
    fid_eq* taker_eq_ = nullptr;
    Active taker_;
};

TEST_F(Naming, APassiveEndpointIsGivenAName) {
    open_passive();
    require(set_name(&taker_pep_->fid, any_with(kPort)), "fi_setname");
    const sockaddr_in first = address_of(name(&taker_pep_->fid));
    EXPECT_EQ(first.sin_port, htons(kPort));
    EXPECT_NE(first.sin_addr.s_addr, INADDR_ANY);
    // And another one, as long as it does not listen.
    require(set_name(&taker_pep_->fid, any_with(kPort + 1)), "fi_setname");
    EXPECT_EQ(address_of(name(&taker_pep_->fid)).sin_port, htons(kPort + 1));
    EXPECT_EQ(address_of(name(&taker_pep_->fid)).sin_addr.s_addr, first.sin_addr.s_addr);

    sockaddr_in6 wrong{};
    wrong.sin6_family = AF_INET6;
    EXPECT_EQ(fi_setname(&taker_pep_->fid, &wrong, sizeof(wrong)), -FI_EINVAL);
    sockaddr_in right = any_with(kPort);
    EXPECT_EQ(fi_setname(&taker_pep_->fid, &right, sizeof(right) - 1), -FI_EINVAL);
    EXPECT_EQ(fi_setname(&taker_pep_->fid, nullptr, 0), -FI_EINVAL);
    EXPECT_EQ(set_name(&pep_->fid, any_with(kPort)), -FI_EOPBADSTATE) << "it listens";
}

TEST_F(Naming, ANamelessPassiveEndpointFindsOneWhenItIsAsked) {
    open_passive();
    const sockaddr_in found = address_of(name(&taker_pep_->fid));
    EXPECT_NE(found.sin_port, 0);
    EXPECT_NE(found.sin_addr.s_addr, INADDR_ANY);
}

// IP address and UDP port are the worker's, so what shares it cannot have others.
TEST_F(Naming, AnAddressThatTheSharedWorkerDoesNotHaveIsRefused) {
    const Info plain(fi_dupinfo(info_.get()));
    fid_pep* second = nullptr;
    require(fi_passive_ep(fabric_, plain.get(), &second, nullptr), "fi_passive_ep");
    const std::string before = name(&second->fid);
    EXPECT_NE(before, name(&pep_->fid));
    EXPECT_EQ(set_name(&second->fid, any_with(kPort)), -FI_EADDRNOTAVAIL);
    sockaddr_in foreign = address_of(before);
    foreign.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (1u << 24));
    foreign.sin_port = 0;
    EXPECT_EQ(set_name(&second->fid, foreign), -FI_EADDRNOTAVAIL);
    // The port, without a number, is the listener's that is there.
    EXPECT_EQ(set_name(&second->fid, address_of(name(&pep_->fid))), -FI_EADDRINUSE);
    require(set_name(&second->fid, address_of(before)), "fi_setname");
    EXPECT_EQ(name(&second->fid), before);
    EXPECT_EQ(fi_close(&second->fid), 0);
}

TEST_F(Naming, AnEndpointTakesOverThePassiveEndpointsAddressAndConnects) {
    open_passive();
    require(set_name(&taker_pep_->fid, any_with(kPort)), "fi_setname");
    const std::string taken = name(&taker_pep_->fid);
    const Info info = inherit();
    EXPECT_EQ(info->handle, &taker_pep_->fid);
    EXPECT_EQ(std::string(static_cast<const char*>(info->src_addr), info->src_addrlen), taken);
    open_taker(info.get());
    fid_ep* second = nullptr;
    EXPECT_EQ(fi_endpoint(taker_.domain, info.get(), &second, nullptr), -FI_EINVAL) << "it is gone";
    EXPECT_EQ(fi_listen(taker_pep_), -FI_ENOEQ);
    EXPECT_EQ(name(&taker_pep_->fid), taken) << "it was that";
    close_if_open(taker_pep_);
    EXPECT_EQ(name(&taker_.ep->fid), taken);

    fi_cq_attr cq{};
    fi_eq_attr eq{};
    eq.wait_obj = FI_WAIT_FD;
    require(fi_cq_open(taker_.domain, &cq, &taker_.cq, nullptr), "fi_cq_open");
    require(fi_eq_open(other_, &eq, &taker_eq_, nullptr), "fi_eq_open");
    require(fi_ep_bind(taker_.ep, &taker_.cq->fid, FI_TRANSMIT | FI_RECV), "bind cq");
    require(fi_ep_bind(taker_.ep, &taker_eq_->fid, 0), "bind eq");
    require(fi_connect(taker_.ep, name(&pep_->fid).data(), "hello", 5), "fi_connect");
    Entry entry{};
    ASSERT_EQ(event(&entry), uint32_t{FI_CONNREQ});
    const Info request(entry->info);
    EXPECT_EQ(std::string(static_cast<const char*>(request->dest_addr), request->dest_addrlen),
              taken);
    open(server_, request.get());
    require(fi_accept(server_.ep, nullptr, 0), "fi_accept");
    ASSERT_EQ(event(&entry), uint32_t{FI_CONNECTED});
    uint32_t type = 0;
    ASSERT_GT(fi_eq_sread(taker_eq_, &type, entry.bytes, sizeof(entry.bytes), 20'000, 0), 0);
    EXPECT_EQ(type, uint32_t{FI_CONNECTED});
    EXPECT_EQ(name(&taker_.ep->fid), taken);
    std::string peer(64, '\0');
    size_t length = peer.size();
    require(fi_getpeer(server_.ep, peer.data(), &length), "fi_getpeer");
    peer.resize(length);
    EXPECT_EQ(peer, taken);
}

TEST_F(Naming, OnlyAnIdlePassiveEndpointOfTheSameDomainGivesItsAddress) {
    open_passive();
    const Info info = inherit();
    fid_ep* ep = nullptr;
    EXPECT_EQ(fi_endpoint(client_.domain, info.get(), &ep, nullptr), -FI_EINVAL);
    const Info listening(fi_dupinfo(info_.get()));
    listening->handle = &pep_->fid;
    EXPECT_EQ(fi_endpoint(server_.domain, listening.get(), &ep, nullptr), -FI_EINVAL);
    const Info hints = make_hints();
    hints->handle = &taker_pep_->fid;
    fi_info* none = nullptr;
    EXPECT_EQ(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &none), -FI_ENODATA)
        << "an FI_EP_RDM endpoint";
}

TEST_F(Naming, ARequestOutlivesAnEndpointThatDoesNotOpen) {
    connect();
    Entry entry{};
    ASSERT_EQ(event(&entry), uint32_t{FI_CONNREQ});
    const Info request(entry->info);
    request->tx_attr->inject_size = 1 << 20;
    fid_ep* ep = nullptr;
    EXPECT_EQ(fi_endpoint(server_.domain, request.get(), &ep, nullptr), -FI_EINVAL);
    require(fi_reject(pep_, request->handle, nullptr, 0), "fi_reject");
    uint32_t type = 0;
    EXPECT_EQ(fi_eq_sread(eq_, &type, entry.bytes, sizeof(entry.bytes), 20'000, 0), -FI_EAVAIL);
}

// A port that somebody types names endpoint 0.
TEST_F(Naming, AListenerIsFoundByItsPortThoughEndpointsWereThereBefore) {
    open_taker(info_.get());
    EXPECT_NE(address_of(name(&taker_.ep->fid)).sin_zero[1], 0);
    open_passive();
    EXPECT_EQ(address_of(name(&taker_pep_->fid)).sin_zero[1], 0);
}

TEST_F(Naming, AnEndpointIsGivenANumberBeforeItIsEnabled) {
    const Info hints = make_hints();
    const Info info = get_info(*hints);
    fid_ep* ep = nullptr;
    require(fi_endpoint(client_.domain, info.get(), &ep, nullptr), "fi_endpoint");
    sockaddr_in wanted = address_of(name(&ep->fid));
    require(set_name(&ep->fid, wanted), "its own");
    wanted.sin_zero[1] = 9;
    require(set_name(&ep->fid, wanted), "another number");
    EXPECT_EQ(std::memcmp(name(&ep->fid).data(), &wanted, sizeof(wanted)), 0);
    require(set_name(&ep->fid, any_with(0)), "any");
    EXPECT_EQ(std::memcmp(name(&ep->fid).data(), &wanted, sizeof(wanted)), 0);
    EXPECT_EQ(set_name(&ep->fid, address_of(name(&client_.ep->fid))), -FI_EADDRINUSE);
    EXPECT_EQ(set_name(&ep->fid, any_with(kPort)), -FI_EADDRNOTAVAIL);
    EXPECT_EQ(set_name(&client_.ep->fid, wanted), -FI_EOPBADSTATE) << "it is enabled";
    EXPECT_EQ(fi_close(&ep->fid), 0);
}

}  // namespace
}  // namespace tagwire::fi_test
