// SPDX-License-Identifier: BSD-3-Clause
// What libfabric has words for since 2.0: tagged receives that take several messages, or from one
// peer alone, and authorization keys in the address vector. Nothing of it is in the headers of
// 1.17, with which this file is empty.
#include <array>
#include <map>
#include <string>

#include "test/fi/fabric_fixture.h"

#ifdef FI_AV_AUTH_KEY

namespace tagwire::fi_test {
namespace {

constexpr uint32_t kVersion = FI_VERSION(2, 0);

bool offered(uint64_t caps, uint32_t version) {
    const Info hints = make_hints();
    hints->caps = caps;
    fi_info* info = nullptr;
    const int result = fi_getinfo(version, nullptr, nullptr, 0, hints.get(), &info);
    const Info owned(info);
    return result == 0 && (info->caps & caps) == caps;
}

TEST(NewerFlags, AreOfferedToApplicationsOfTheNewerInterface) {
    EXPECT_TRUE(offered(FI_TAGGED | FI_TAGGED_MULTI_RECV, kVersion));
    EXPECT_TRUE(offered(FI_TAGGED | FI_TAGGED_DIRECTED_RECV, kVersion));
    // The bits meant something else.
    EXPECT_FALSE(offered(FI_TAGGED | FI_TAGGED_MULTI_RECV, FI_VERSION(1, 17)));
    EXPECT_FALSE(offered(FI_TAGGED | FI_TAGGED_DIRECTED_RECV, FI_VERSION(1, 17)));
}

// Two sides send, one receives.
class Three : public testing::Test {
  protected:
    void open(uint64_t caps) {
        const Info hints = make_hints();
        hints->caps = caps;
        open(*hints, {});
    }
    void open(const fi_info& hints, const std::function<void(fid_av*)>& prepare) {
        info = get_info(hints, kVersion);
        require(fi_fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
        one = std::make_unique<Side>(fabric, info.get(), 0, prepare);
        other = std::make_unique<Side>(fabric, info.get(), 0, prepare);
        receiver = std::make_unique<Side>(fabric, info.get(), 0, prepare);
    }
    void TearDown() override {
        receiver.reset();
        other.reset();
        one.reset();
        if (fabric != nullptr) {
            EXPECT_EQ(fi_close(&fabric->fid), 0);
        }
    }
    // Sends, and waits until the other side has it.
    void deliver(Side& from, fi_addr_t to, uint64_t tag, const char* text) {
        require(fi_tsend(from.ep, text, std::strlen(text) + 1, nullptr, to, tag, nullptr),
                "fi_tsend");
        fi_cq_tagged_entry entry{};
        ssize_t result = -FI_EAGAIN;
        for (long i = 0; i < kPatience && result == -FI_EAGAIN; ++i) {
            result = fi_cq_read(from.cq, &entry, 1);
            fi_cq_read(receiver->cq, nullptr, 0);
        }
        ASSERT_EQ(result, 1);
    }
    // A turn of all; what the receiver's queue says.
    ssize_t turn(fi_cq_tagged_entry* entry) {
        fi_cq_read(one->cq, nullptr, 0);
        fi_cq_read(other->cq, nullptr, 0);
        return fi_cq_read(receiver->cq, entry, 1);
    }
    fi_cq_tagged_entry expect_receive() {
        fi_cq_tagged_entry entry{};
        ssize_t result = -FI_EAGAIN;
        for (long i = 0; i < kPatience && result == -FI_EAGAIN; ++i) {
            result = turn(&entry);
        }
        EXPECT_EQ(result, 1);
        EXPECT_NE(entry.flags & FI_RECV, 0u);
        return entry;
    }
    void expect_nothing() {
        fi_cq_tagged_entry entry{};
        for (int i = 0; i < 2000; ++i) {
            ASSERT_EQ(turn(&entry), -FI_EAGAIN);
        }
    }

    static constexpr long kPatience = 20'000'000;
    Info info;
    fid_fabric* fabric = nullptr;
    std::unique_ptr<Side> one;
    std::unique_ptr<Side> other;
    std::unique_ptr<Side> receiver;
};

TEST_F(Three, ATaggedBufferTakesMessagesUntilItIsFull) {
    open(FI_TAGGED | FI_TAGGED_MULTI_RECV);
    EXPECT_EQ(info->caps & FI_MULTI_RECV, 0u) << "untagged ones have a capability of their own";
    std::vector<char> room(1000);
    size_t least = 100;
    require(fi_setopt(&receiver->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
                      sizeof(least)),
            "fi_setopt");
    iovec iov{room.data(), room.size()};
    fi_msg_tagged message{};
    message.msg_iov = &iov;
    message.iov_count = 1;
    message.addr = FI_ADDR_UNSPEC;
    message.tag = 0x10;
    message.ignore = 0xf;
    ASSERT_EQ(fi_trecvmsg(receiver->ep, &message, FI_MULTI_RECV | FI_COMPLETION), 0);
    const fi_addr_t from_one = one->insert(*receiver);
    const fi_addr_t from_other = other->insert(*receiver);
    const std::array<size_t, 4> sizes = {1, 400, 99, 450};  // what is left then is too little
    size_t offset = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
        const std::string text(sizes[i] - 1, static_cast<char>('a' + i));
        deliver(i % 2 == 0 ? *one : *other, i % 2 == 0 ? from_one : from_other, 0x10 + i,
                text.c_str());
        const fi_cq_tagged_entry entry = expect_receive();
        EXPECT_EQ(entry.tag, 0x10 + i);
        EXPECT_EQ(entry.len, sizes[i]);
        EXPECT_EQ(entry.buf, room.data() + offset);
        EXPECT_EQ(text, room.data() + offset);
        offset += sizes[i];
        if (i + 1 < sizes.size()) {
            EXPECT_EQ(entry.flags & FI_MULTI_RECV, 0u);
        } else if ((entry.flags & FI_MULTI_RECV) == 0) {
            EXPECT_NE(expect_receive().flags & FI_MULTI_RECV, 0u) << "the buffer is given back";
        }
    }
}

TEST_F(Three, ADirectedTaggedReceiveTakesFromItsPeerAlone) {
    open(FI_MSG | FI_TAGGED | FI_TAGGED_DIRECTED_RECV | FI_SOURCE);
    const fi_addr_t address_of_other = receiver->insert(*other);
    const fi_addr_t from_one = one->insert(*receiver);
    const fi_addr_t from_other = other->insert(*receiver);
    char directed[16] = {};
    char any[16] = {};
    require(fi_trecv(receiver->ep, directed, sizeof(directed), nullptr, address_of_other, 1, 0,
                     &directed),
            "fi_trecv");
    deliver(*one, from_one, 1, "one");
    expect_nothing();
    deliver(*other, from_other, 1, "other");
    EXPECT_EQ(expect_receive().op_context, &directed);
    EXPECT_STREQ(directed, "other");
    require(fi_trecv(receiver->ep, any, sizeof(any), nullptr, FI_ADDR_UNSPEC, 1, 0, &any),
            "fi_trecv");
    EXPECT_EQ(expect_receive().op_context, &any);
    EXPECT_STREQ(any, "one");

    // Untagged ones are not directed without FI_DIRECTED_RECV.
    char plain[16] = {};
    require(fi_recv(receiver->ep, plain, sizeof(plain), nullptr, address_of_other, &plain),
            "fi_recv");
    require(fi_inject(one->ep, "plain", 6, from_one), "fi_inject");
    EXPECT_EQ(expect_receive().op_context, &plain);
    EXPECT_STREQ(plain, "plain");
}

class VectorKeys : public Three {
  protected:
    void SetUp() override {
        const Info hints = make_hints();
        hints->caps = FI_TAGGED | FI_DIRECTED_RECV;
        hints->domain_attr->auth_key_size = FI_AV_AUTH_KEY;
        open(*hints, [this](fid_av* av) {
            for (const char* key : {"red", "blue and longer"}) {
                fi_addr_t index = FI_ADDR_NOTAVAIL;
                require(fi_av_insert_auth_key(av, key, std::strlen(key), &index, 0),
                        "fi_av_insert_auth_key");
                keys_of[av].push_back(index);
            }
        });
    }
    fi_addr_t insert(const Side& side, const Side& peer, fi_addr_t key) {
        fi_addr_t index = key;
        EXPECT_EQ(fi_av_insert(side.av, peer.name().data(), 1, &index, FI_AUTH_KEY, nullptr), 1);
        return index;
    }
    std::string key_of(fid_av* av, fi_addr_t index) {
        std::array<char, 64> bytes{};
        size_t size = bytes.size();
        require(fi_av_lookup_auth_key(av, index, bytes.data(), &size), "fi_av_lookup_auth_key");
        return {bytes.data(), size};
    }
    ssize_t receive(char* buffer, size_t size, fi_addr_t key) {
        iovec iov{buffer, size};
        fi_msg_tagged message{};
        message.msg_iov = &iov;
        message.iov_count = 1;
        message.addr = key;
        message.ignore = ~uint64_t{0};
        message.context = buffer;
        return fi_trecvmsg(receiver->ep, &message, FI_AUTH_KEY | FI_COMPLETION);
    }

    std::map<fid_av*, std::vector<fi_addr_t>> keys_of;  // red, blue
};

TEST_F(VectorKeys, AreOffered) {
    EXPECT_EQ(info->domain_attr->auth_key_size, size_t{FI_AV_AUTH_KEY});
    EXPECT_GE(info->domain_attr->max_ep_auth_key, 2u);
    EXPECT_EQ(info->ep_attr->auth_key_size, 0u);
}

TEST_F(VectorKeys, SortTheMessagesOfTheirPeers) {
    const fi_addr_t red = insert(*one, *receiver, keys_of[one->av][0]);
    const fi_addr_t blue = insert(*other, *receiver, keys_of[other->av][1]);
    char of_blue[16] = {};
    char of_red[16] = {};
    ASSERT_EQ(receive(of_blue, sizeof(of_blue), keys_of[receiver->av][1]), 0);
    deliver(*one, red, 7, "red");
    expect_nothing();
    deliver(*other, blue, 8, "blue");
    EXPECT_EQ(expect_receive().op_context, of_blue);
    EXPECT_STREQ(of_blue, "blue");
    ASSERT_EQ(receive(of_red, sizeof(of_red), keys_of[receiver->av][0]), 0);
    EXPECT_EQ(expect_receive().op_context, of_red);
    EXPECT_STREQ(of_red, "red");
}

TEST_F(VectorKeys, AnAddressWithAKeyIsNotTheAddressWithout) {
    const fi_addr_t red = insert(*receiver, *one, keys_of[receiver->av][0]);
    EXPECT_NE(red, insert(*receiver, *one, keys_of[receiver->av][1]));
    EXPECT_NE(red, receiver->insert(*one));
    // A receive for the address with the red key takes no message that came with the blue one.
    char text[16] = {};
    require(fi_trecv(receiver->ep, text, sizeof(text), nullptr, red, 1, 0, text), "fi_trecv");
    deliver(*one, insert(*one, *receiver, keys_of[one->av][1]), 1, "blue");
    expect_nothing();
    deliver(*one, insert(*one, *receiver, keys_of[one->av][0]), 1, "red");
    EXPECT_EQ(expect_receive().op_context, text);
    EXPECT_STREQ(text, "red");
}

TEST_F(VectorKeys, CanBeLookedUp) {
    const fi_addr_t red = keys_of[receiver->av][0];
    const fi_addr_t blue = keys_of[receiver->av][1];
    const fi_addr_t peer = insert(*receiver, *one, blue);
    EXPECT_EQ(key_of(receiver->av, red), "red");
    EXPECT_EQ(key_of(receiver->av, blue), "blue and longer");
    EXPECT_EQ(key_of(receiver->av, peer), "blue and longer");
    char few[4] = {};
    size_t size = sizeof(few);
    EXPECT_EQ(fi_av_lookup_auth_key(receiver->av, blue, few, &size), 0);
    EXPECT_EQ(size, std::strlen("blue and longer")) << "the room that it needs";
    EXPECT_EQ(std::string(few, sizeof(few)), "blue");
    const fi_addr_t without = receiver->insert(*other);
    EXPECT_EQ(fi_av_lookup_auth_key(receiver->av, without, few, &size), -FI_EINVAL);
}

TEST_F(VectorKeys, WrongUsesAreRefused) {
    fid_av* av = receiver->av;
    fi_addr_t index = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(fi_av_insert_auth_key(av, "x", 0, &index, 0), -FI_EINVAL);
    EXPECT_EQ(fi_av_insert_auth_key(av, "x", 1, &index, FI_MORE), -FI_EINVAL);
    // What is named as the key has to be one.
    const std::vector<char> name = one->name();
    for (const fi_addr_t wrong : {receiver->insert(*one), FI_ADDR_NOTAVAIL, FI_ADDR_UNSPEC}) {
        index = wrong;
        EXPECT_EQ(fi_av_insert(av, name.data(), 1, &index, FI_AUTH_KEY, nullptr), 0) << wrong;
        EXPECT_EQ(index, FI_ADDR_NOTAVAIL);
        char text[4] = {};
        EXPECT_EQ(receive(text, sizeof(text), wrong), -FI_EINVAL) << wrong;
    }
}

TEST_F(VectorKeys, AreRemovedWhenNoEndpointHasThem) {
    fid_av* av = receiver->av;
    fi_addr_t red = keys_of[av][0];
    EXPECT_EQ(fi_av_remove(av, &red, 1, FI_AUTH_KEY), -FI_EBUSY);
    EXPECT_EQ(fi_av_remove(av, &red, 1, 0), -FI_EINVAL) << "it is no peer";

    fi_av_attr attr{};
    attr.type = FI_AV_TABLE;
    fid_av* unbound = nullptr;
    require(fi_av_open(receiver->domain, &attr, &unbound, nullptr), "fi_av_open");
    fi_addr_t key = FI_ADDR_NOTAVAIL;
    require(fi_av_insert_auth_key(unbound, "green", 5, &key, 0), "fi_av_insert_auth_key");
    const std::vector<char> name = one->name();
    fi_addr_t peer = key;
    EXPECT_EQ(fi_av_insert(unbound, name.data(), 1, &peer, FI_AUTH_KEY, nullptr), 1);
    EXPECT_EQ(fi_av_remove(unbound, &key, 1, FI_AUTH_KEY), 0);
    EXPECT_EQ(fi_av_remove(unbound, &key, 1, FI_AUTH_KEY), -FI_EINVAL);
    EXPECT_EQ(key_of(unbound, peer), "green") << "peers keep it";
    EXPECT_EQ(fi_av_remove(unbound, &peer, 1, 0), 0);
    EXPECT_EQ(fi_close(&unbound->fid), 0);
}

}  // namespace
}  // namespace tagwire::fi_test

#endif
