// SPDX-License-Identifier: BSD-3-Clause
// Addresses of both formats: FI_SOCKADDR_IN, and IPv4 in FI_SOCKADDR_IN6.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <cerrno>
#include <string>

#include "test/fi/fabric_fixture.h"

namespace tagwire::fi_test {
namespace {

Info hints_in6() {
    Info hints = make_hints();
    hints->caps = FI_MSG;
    hints->addr_format = FI_SOCKADDR_IN6;
    return hints;
}

sockaddr_in6 address6(const char* text, uint16_t port) {
    sockaddr_in6 name{};
    name.sin6_family = AF_INET6;
    name.sin6_port = htons(port);
    EXPECT_EQ(inet_pton(AF_INET6, text, &name.sin6_addr), 1);
    return name;
}

std::string text_of(const void* name) {
    sockaddr_in6 address{};
    std::memcpy(&address, name, sizeof(address));
    char text[INET6_ADDRSTRLEN] = {};
    inet_ntop(AF_INET6, &address.sin6_addr, text, sizeof(text));
    return text;
}

class Addresses6 : public Pair {
  protected:
    void SetUp() override {
        const Info hints = hints_in6();
        open(*hints);
    }
};

TEST_F(Addresses6, MappedAddressesAreNamesOfEndpoints) {
    EXPECT_EQ(info->addr_format, uint32_t{FI_SOCKADDR_IN6});
    ASSERT_EQ(info->src_addrlen, sizeof(sockaddr_in6));
    EXPECT_EQ(text_of(info->src_addr).rfind("::ffff:10.", 0), 0u) << text_of(info->src_addr);
    const std::vector<char> name = right->name();
    ASSERT_EQ(name.size(), sizeof(sockaddr_in6));
    EXPECT_EQ(text_of(name.data()).rfind("::ffff:10.", 0), 0u) << text_of(name.data());

    // They were inserted by the fixture.
    char text[8] = {};
    require(fi_recv(right->ep, text, sizeof(text), nullptr, FI_ADDR_UNSPEC, nullptr), "fi_recv");
    require(fi_send(left->ep, "mapped", 7, nullptr, to_right, nullptr), "fi_send");
    expect(*left, FI_SEND | FI_MSG);
    expect(*right, FI_RECV | FI_MSG);
    EXPECT_STREQ(text, "mapped");

    std::vector<char> found(64);
    size_t length = found.size();
    ASSERT_EQ(fi_av_lookup(left->av, to_right, found.data(), &length), 0);
    found.resize(length);
    EXPECT_EQ(found, name);
    size_t small = sizeof(sockaddr_in);
    EXPECT_EQ(fi_getname(&right->ep->fid, found.data(), &small), -FI_ETOOSMALL);
    EXPECT_EQ(small, sizeof(sockaddr_in6));
}

TEST_F(Addresses6, EachEndpointOfADomainHasItsOwn) {
    fid_ep* second = nullptr;
    require(fi_endpoint(right->domain, info.get(), &second, nullptr), "fi_endpoint");
    require(fi_ep_bind(second, &right->av->fid, 0), "bind av");
    require(fi_ep_bind(second, &right->cq->fid, FI_TRANSMIT | FI_RECV), "bind cq");
    require(fi_enable(second), "fi_enable");
    char name[64];
    size_t length = sizeof(name);
    require(fi_getname(&second->fid, name, &length), "fi_getname");
    fi_addr_t to_second = FI_ADDR_UNSPEC;
    ASSERT_EQ(fi_av_insert(left->av, name, 1, &to_second, 0, nullptr), 1);
    EXPECT_NE(to_second, to_right);
    char text[8] = {};
    require(fi_recv(second, text, sizeof(text), nullptr, FI_ADDR_UNSPEC, second), "fi_recv");
    require(fi_send(left->ep, "second", 7, nullptr, to_second, nullptr), "fi_send");
    expect(*left, FI_SEND | FI_MSG);
    EXPECT_EQ(expect(*right, FI_RECV | FI_MSG).op_context, second);
    EXPECT_EQ(fi_close(&second->fid), 0);
}

TEST_F(Addresses6, OtherIpv6AddressesAreRefusedOneByOne) {
    const sockaddr_in6 names[] = {address6("::ffff:10.1.2.3", 4791), address6("2001:db8::1", 4791),
                                  address6("::ffff:10.1.2.4", 4791)};
    fi_addr_t addresses[3] = {};
    int errors[3] = {};
    EXPECT_EQ(fi_av_insert(left->av, names, 3, addresses, FI_SYNC_ERR, errors), 2);
    EXPECT_EQ(errors[0], 0);
    EXPECT_EQ(errors[1], EAFNOSUPPORT);
    EXPECT_EQ(errors[2], 0);
    EXPECT_EQ(addresses[1], FI_ADDR_NOTAVAIL);
    fi_addr_t known[] = {addresses[0], addresses[2]};
    EXPECT_EQ(fi_av_remove(left->av, known, 2, 0), 0);
}

TEST_F(Addresses6, TextAndServices) {
    fi_addr_t addresses[2] = {};
    ASSERT_EQ(fi_av_insertsvc(left->av, "::ffff:10.1.2.3", "4791", addresses, 0, nullptr), 1);
    ASSERT_EQ(fi_av_insertsvc(left->av, "10.1.2.3", "4791", addresses + 1, 0, nullptr), 1);
    EXPECT_EQ(addresses[0], addresses[1]) << "one address in two notations";
    EXPECT_NE(fi_av_insertsvc(left->av, "2001:db8::1", "4791", addresses + 1, 0, nullptr), 1);
    char name[64];
    size_t length = sizeof(name);
    ASSERT_EQ(fi_av_lookup(left->av, addresses[0], name, &length), 0);
    char text[80];
    size_t size = sizeof(text);
    fi_av_straddr(left->av, name, text, &size);
    EXPECT_STREQ(text, "fi_sockaddr_in6://[::ffff:10.1.2.3]:4791");
    EXPECT_EQ(fi_av_remove(left->av, addresses, 1, 0), 0);
}

TEST(Addresses, HintsChooseTheFormat) {
    const auto refused = [](const Info& hints, const char* node = nullptr) {
        fi_info* info = nullptr;
        const int result = fi_getinfo(FI_VERSION(1, 17), node, nullptr,
                                      node != nullptr ? FI_SOURCE : 0, hints.get(), &info);
        const Info owned(info);
        return result == -FI_ENODATA;
    };
    Info hints = hints_in6();
    hints->src_addr = std::malloc(sizeof(sockaddr_in6));
    hints->src_addrlen = sizeof(sockaddr_in6);
    sockaddr_in6 name = address6("::ffff:10.9.8.7", 5000);
    std::memcpy(hints->src_addr, &name, sizeof(name));
    const Info info = get_info(*hints);
    EXPECT_EQ(std::memcmp(info->src_addr, &name, sizeof(name)), 0) << text_of(info->src_addr);
    name = address6("2001:db8::1", 5000);
    std::memcpy(hints->src_addr, &name, sizeof(name));
    EXPECT_TRUE(refused(hints));
    // The wildcard and the loopback address stand for the address that the process has anyway.
    for (const char* own : {"::", "::1"}) {
        name = address6(own, 5000);
        std::memcpy(hints->src_addr, &name, sizeof(name));
        const Info chosen = get_info(*hints);
        EXPECT_EQ(text_of(chosen->src_addr).rfind("::ffff:10.", 0), 0u) << own;
    }
    EXPECT_TRUE(refused(hints_in6(), "2001:db8::1"));
    EXPECT_FALSE(refused(hints_in6(), "::ffff:10.9.8.7"));
    hints = make_hints();
    hints->addr_format = FI_SOCKADDR;
    EXPECT_EQ(get_info(*hints)->addr_format, uint32_t{FI_SOCKADDR_IN});
}

}  // namespace
}  // namespace tagwire::fi_test
