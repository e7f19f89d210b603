// SPDX-License-Identifier: BSD-3-Clause
// Scalable endpoints: the attributes of their contexts, and messages between contexts.
#include <array>
#include <string>
#include <utility>

#include "test/fi/fabric_fixture.h"

namespace tagwire::fi_test {
namespace {

constexpr size_t kContexts = 3;
constexpr int kContextBits = 8;

// A scalable endpoint in the domain of `side`. In MPICH's order: it is enabled before it has
// contexts, and each of these when it is bound.
struct ScalableSide {
    ScalableSide(Side& its_side, fi_info* info, fi_tx_attr* tx_attr, fi_rx_attr* rx_attr)
        : side(its_side) {
        fi_av_attr av_attr{};
        av_attr.type = FI_AV_MAP;
        av_attr.rx_ctx_bits = kContextBits;
        require(fi_av_open(side.domain, &av_attr, &av, nullptr), "fi_av_open");
        const Info scalable(fi_dupinfo(info));
        scalable->ep_attr->tx_ctx_cnt = scalable->ep_attr->rx_ctx_cnt = kContexts;
        require(fi_scalable_ep(side.domain, scalable.get(), &sep, nullptr), "fi_scalable_ep");
        require(fi_scalable_ep_bind(sep, &av->fid, 0), "bind av");
        require(fi_enable(sep), "fi_enable");
        for (size_t i = 0; i < kContexts; ++i) {
            const int index = static_cast<int>(i);
            fi_cq_attr cq_attr{};
            cq_attr.format = FI_CQ_FORMAT_TAGGED;
            require(fi_cq_open(side.domain, &cq_attr, &cq[i], nullptr), "fi_cq_open");
            require(fi_tx_context(sep, index, tx_attr, &tx[i], nullptr), "fi_tx_context");
            require(fi_ep_bind(tx[i], &cq[i]->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION),
                    "bind cq");
            require(fi_enable(tx[i]), "fi_enable");
            require(fi_rx_context(sep, index, rx_attr, &rx[i], nullptr), "fi_rx_context");
            require(fi_ep_bind(rx[i], &cq[i]->fid, FI_RECV | FI_SELECTIVE_COMPLETION), "bind cq");
            require(fi_enable(rx[i]), "fi_enable");
        }
    }
    ~ScalableSide() {
        for (size_t i = 0; i < kContexts; ++i) {
            EXPECT_EQ(fi_close(&tx[i]->fid), 0);
            EXPECT_EQ(fi_close(&rx[i]->fid), 0);
            EXPECT_EQ(fi_close(&cq[i]->fid), 0);
        }
        EXPECT_EQ(fi_close(&sep->fid), 0);
        EXPECT_EQ(fi_close(&av->fid), 0);
    }
    ScalableSide(const ScalableSide&) = delete;
    ScalableSide& operator=(const ScalableSide&) = delete;

    fi_addr_t insert(const ScalableSide& other) {
        char name[64];
        size_t length = sizeof(name);
        require(fi_getname(&other.sep->fid, name, &length), "fi_getname");
        fi_addr_t address = FI_ADDR_UNSPEC;
        EXPECT_EQ(fi_av_insert(av, name, 1, &address, 0, nullptr), 1);
        return address;
    }

    Side& side;
    fid_av* av = nullptr;
    fid_ep* sep = nullptr;
    std::array<fid_ep*, kContexts> tx{};
    std::array<fid_ep*, kContexts> rx{};
    std::array<fid_cq*, kContexts> cq{};
};

class Scalable : public Pair {
  protected:
    void SetUp() override {
        const Info hints = make_hints();
        hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_SOURCE |
                      FI_MULTI_RECV | FI_NAMED_RX_CTX;
        open(*hints);
    }
    void TearDown() override {
        a.reset();
        b.reset();
        Pair::TearDown();
    }
    // Contexts with these flags in their attributes, or, with `as_defaults`, without attributes
    // and with these flags in those of the scalable endpoint.
    void open_contexts(uint64_t tx_flags, uint64_t rx_flags, bool as_defaults = false) {
        const Info with(fi_dupinfo(info.get()));
        with->tx_attr->op_flags = tx_flags;
        with->rx_attr->op_flags = rx_flags;
        fi_info* of_endpoint = as_defaults ? with.get() : info.get();
        fi_tx_attr* tx = as_defaults ? nullptr : with->tx_attr;
        fi_rx_attr* rx = as_defaults ? nullptr : with->rx_attr;
        a = std::make_unique<ScalableSide>(*left, of_endpoint, tx, rx);
        b = std::make_unique<ScalableSide>(*right, of_endpoint, tx, rx);
        a_to_b = a->insert(*b);
        b_to_a = b->insert(*a);
    }
    // Another scalable endpoint on the left, and of its first index an enabled receive context.
    std::pair<fid_ep*, fid_ep*> open_receiver() {
        const Info scalable(fi_dupinfo(info.get()));
        scalable->ep_attr->rx_ctx_cnt = 2;
        fid_ep* sep = nullptr;
        fid_ep* rx = nullptr;
        require(fi_scalable_ep(left->domain, scalable.get(), &sep, nullptr), "fi_scalable_ep");
        require(fi_scalable_ep_bind(sep, &a->av->fid, 0), "bind av");
        require(fi_rx_context(sep, 0, nullptr, &rx, nullptr), "fi_rx_context");
        require(fi_ep_bind(rx, &a->cq[0]->fid, FI_RECV), "bind cq");
        require(fi_enable(rx), "fi_enable");
        return {sep, rx};
    }
    // The next completion of a context of either side.
    fi_cq_tagged_entry next(fid_cq* cq, fi_addr_t* source = nullptr) {
        fi_cq_tagged_entry entry{};
        for (long turn = 0; turn < 2'000'000; ++turn) {
            fi_addr_t from = FI_ADDR_NOTAVAIL;
            const ssize_t result = fi_cq_readfrom(cq, &entry, 1, &from);
            if (result != -FI_EAGAIN) {
                EXPECT_EQ(result, 1);
                if (source != nullptr) {
                    *source = from;
                }
                return entry;
            }
            work();
        }
        ADD_FAILURE() << "no completion";
        return entry;
    }
    void work() {
        fi_cq_read(left->cq, nullptr, 0);
        fi_cq_read(right->cq, nullptr, 0);
    }
    void expect_nothing(fid_cq* cq) {
        for (int i = 0; i < 2000; ++i) {
            work();
        }
        fi_cq_tagged_entry entry{};
        EXPECT_EQ(fi_cq_read(cq, &entry, 1), -FI_EAGAIN) << "flags " << entry.flags;
    }
    // Each call without a flags argument that sends.
    void expect_completions_of_all_sends() {
        char buffer[16] = "all of them";
        iovec iov{buffer, sizeof(buffer)};
        std::vector<uint64_t> region(8);
        fid_mr* mr = nullptr;
        require(fi_mr_reg(right->domain, region.data(), region.size() * sizeof(uint64_t),
                          FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 17, 0, &mr, nullptr),
                "fi_mr_reg");
        fid_ep* tx = a->tx[1];
        const fi_addr_t to = fi_rx_addr(a_to_b, 1, kContextBits);
        uint64_t operand[2] = {1, 2};
        uint64_t result[2] = {};
        void* op = operand;
        const auto expect_one = [&](ssize_t posted, uint64_t flags, const char* call) {
            ASSERT_EQ(posted, 0) << call;
            const fi_cq_tagged_entry entry = next(a->cq[1]);
            EXPECT_EQ(entry.flags, flags) << call;
            EXPECT_EQ(entry.op_context, op) << call;
        };
        expect_one(fi_tsend(tx, buffer, 16, nullptr, to, 1, op), FI_SEND | FI_TAGGED, "fi_tsend");
        expect_one(fi_tsendv(tx, &iov, nullptr, 1, to, 1, op), FI_SEND | FI_TAGGED, "fi_tsendv");
        expect_one(fi_tsenddata(tx, buffer, 16, nullptr, 5, to, 1, op), FI_SEND | FI_TAGGED,
                   "fi_tsenddata");
        expect_one(fi_send(tx, buffer, 16, nullptr, to, op), FI_SEND | FI_MSG, "fi_send");
        expect_one(fi_sendv(tx, &iov, nullptr, 1, to, op), FI_SEND | FI_MSG, "fi_sendv");
        expect_one(fi_senddata(tx, buffer, 16, nullptr, 5, to, op), FI_SEND | FI_MSG,
                   "fi_senddata");
        expect_one(fi_write(tx, buffer, 16, nullptr, to, 0, 17, op), FI_WRITE | FI_RMA, "fi_write");
        expect_one(fi_read(tx, buffer, 16, nullptr, to, 0, 17, op), FI_READ | FI_RMA, "fi_read");
        expect_one(fi_atomic(tx, operand, 2, nullptr, to, 0, 17, FI_UINT64, FI_SUM, op),
                   FI_WRITE | FI_ATOMIC, "fi_atomic");
        expect_one(fi_fetch_atomic(tx, operand, 2, nullptr, result, nullptr, to, 0, 17, FI_UINT64,
                                   FI_SUM, op),
                   FI_READ | FI_ATOMIC, "fi_fetch_atomic");
        require(fi_tinject(tx, buffer, 16, to, 1), "fi_tinject");
        expect_nothing(a->cq[1]);
        EXPECT_EQ(fi_close(&mr->fid), 0);
    }
    // Both kinds of receive.
    void expect_completions_of_receives() {
        char tagged[16] = {};
        char plain[16] = {};
        require(fi_trecv(b->rx[2], tagged, sizeof(tagged), nullptr, FI_ADDR_UNSPEC, 1, 0, tagged),
                "fi_trecv");
        require(fi_recv(b->rx[2], plain, sizeof(plain), nullptr, FI_ADDR_UNSPEC, plain), "fi_recv");
        const fi_addr_t to = fi_rx_addr(a_to_b, 2, kContextBits);
        require(fi_tinject(a->tx[2], "tagged", 7, to, 1), "fi_tinject");
        EXPECT_EQ(next(b->cq[2]).op_context, tagged);
        require(fi_inject(a->tx[2], "plain", 6, to), "fi_inject");
        EXPECT_EQ(next(b->cq[2]).op_context, plain);
        EXPECT_STREQ(tagged, "tagged");
        EXPECT_STREQ(plain, "plain");
    }

    std::unique_ptr<ScalableSide> a;
    std::unique_ptr<ScalableSide> b;
    fi_addr_t a_to_b = FI_ADDR_UNSPEC;
    fi_addr_t b_to_a = FI_ADDR_UNSPEC;
};

TEST_F(Scalable, ContextsHaveTheFlagsOfTheirAttributes) {
    open_contexts(FI_COMPLETION | FI_DELIVERY_COMPLETE, FI_COMPLETION);
    expect_completions_of_all_sends();
    expect_completions_of_receives();
}

TEST_F(Scalable, ContextsWithoutAttributesHaveTheFlagsOfTheirEndpoint) {
    open_contexts(FI_COMPLETION, FI_COMPLETION, true);
    expect_completions_of_all_sends();
    expect_completions_of_receives();
}

TEST_F(Scalable, FlagsThatAReadHasNoUseForDoNotStopIt) {
    open_contexts(FI_COMPLETION | FI_INJECT | FI_MATCH_COMPLETE, 0);
    uint64_t region = 7;
    uint64_t found = 0;
    fid_mr* mr = nullptr;
    require(
        fi_mr_reg(right->domain, &region, sizeof(region), FI_REMOTE_READ, 0, 17, 0, &mr, nullptr),
        "fi_mr_reg");
    ASSERT_EQ(fi_read(a->tx[0], &found, sizeof(found), nullptr, a_to_b, 0, 17, nullptr), 0);
    EXPECT_EQ(next(a->cq[0]).flags, FI_READ | FI_RMA);
    EXPECT_EQ(found, region);
    EXPECT_EQ(fi_close(&mr->fid), 0);
}

TEST_F(Scalable, ContextsWithoutFlagsCompleteInSilence) {
    open_contexts(0, 0);
    char text[8] = {};
    require(fi_trecv(b->rx[2], text, sizeof(text), nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr),
            "fi_trecv");
    require(
        fi_tsend(a->tx[2], "silent", 7, nullptr, fi_rx_addr(a_to_b, 2, kContextBits), 1, nullptr),
        "fi_tsend");
    expect_nothing(a->cq[2]);
    expect_nothing(b->cq[2]);
    EXPECT_STREQ(text, "silent");
}

TEST_F(Scalable, AReceiveContextTakesSeveralMessagesWhereItsAttributesSaySo) {
    open_contexts(FI_COMPLETION, FI_COMPLETION | FI_MULTI_RECV);
    std::vector<char> room(1024);
    require(fi_recv(b->rx[0], room.data(), room.size(), nullptr, FI_ADDR_UNSPEC, nullptr),
            "fi_recv");
    for (const char* text : {"first", "second"}) {
        require(fi_send(a->tx[0], text, std::strlen(text) + 1, nullptr, a_to_b, nullptr),
                "fi_send");
        const fi_cq_tagged_entry entry = next(b->cq[0]);
        EXPECT_EQ(entry.flags, FI_RECV | FI_MSG);
        EXPECT_STREQ(static_cast<char*>(entry.buf), text);
    }
}

// From each context to each other; the receive names the context that sends, and there is one that
// names another.
TEST_F(Scalable, MessagesBetweenContextsMeetReceivesThatNameTheirSource) {
    open_contexts(FI_COMPLETION, FI_COMPLETION);
    for (size_t from = 0; from < kContexts; ++from) {
        for (size_t to = 0; to < kContexts; ++to) {
            const auto at = [](fi_addr_t base, size_t index) {
                return fi_rx_addr(base, static_cast<int>(index), kContextBits);
            };
            const std::string text = std::to_string(from) + " to " + std::to_string(to);
            char wrong[16] = {};
            char room[16] = {};
            const fi_addr_t other = at(b_to_a, (from + 1) % kContexts);
            require(fi_trecv(b->rx[to], wrong, sizeof(wrong), nullptr, other, 9, 0, wrong),
                    "fi_trecv");
            require(fi_trecv(b->rx[to], room, sizeof(room), nullptr, at(b_to_a, from), 9, 0, room),
                    "fi_trecv");
            require(fi_tsend(a->tx[from], text.data(), text.size() + 1, nullptr, at(a_to_b, to), 9,
                             room),
                    "fi_tsend");
            EXPECT_EQ(next(a->cq[from]).flags, FI_SEND | FI_TAGGED);
            fi_addr_t source = FI_ADDR_NOTAVAIL;
            EXPECT_EQ(next(b->cq[to], &source).op_context, room) << text;
            EXPECT_EQ(std::string(room), text);
            EXPECT_EQ(source, at(b_to_a, from)) << text;
            // What names the source of a message leads back to it.
            char answer[16] = {};
            require(fi_trecv(a->rx[from], answer, sizeof(answer), nullptr, at(a_to_b, to), 8, 0,
                             answer),
                    "fi_trecv");
            require(fi_tsend(b->tx[to], "answer", 7, nullptr, source, 8, nullptr), "fi_tsend");
            EXPECT_EQ(next(a->cq[from]).op_context, answer) << text;
            EXPECT_EQ(next(b->cq[to]).flags, FI_SEND | FI_TAGGED);
            EXPECT_EQ(fi_cancel(&b->rx[to]->fid, wrong), 0) << text;
            fi_cq_tagged_entry entry{};
            ASSERT_EQ(fi_cq_read(b->cq[to], &entry, 1), -FI_EAVAIL);
            fi_cq_err_entry error{};
            ASSERT_EQ(fi_cq_readerr(b->cq[to], &error, 0), 1);
            EXPECT_EQ(error.err, FI_ECANCELED);
            EXPECT_EQ(error.op_context, wrong);
        }
    }
}

TEST_F(Scalable, TheAddressOfAContextIsLookedUpAndGoesWithThatOfItsEndpoint) {
    open_contexts(FI_COMPLETION, FI_COMPLETION);
    char own[64];
    size_t length = sizeof(own);
    require(fi_getname(&a->sep->fid, own, &length), "fi_getname");
    const fi_addr_t second = fi_rx_addr(b_to_a, 1, kContextBits);
    char found[64] = {};
    size_t found_length = sizeof(found);
    ASSERT_EQ(fi_av_lookup(b->av, second, found, &found_length), 0);
    EXPECT_EQ(found_length, length);
    EXPECT_EQ(std::memcmp(found, own, 8), 0) << "IP address and port of the endpoint";
    EXPECT_EQ(found[9], own[9] + 1) << "its number follows that of the first context";
    ASSERT_EQ(fi_av_remove(b->av, &b_to_a, 1, 0), 0);
    EXPECT_EQ(fi_av_lookup(b->av, second, found, &found_length), -FI_EINVAL);
    EXPECT_EQ(fi_send(b->tx[0], "gone", 5, nullptr, second, nullptr), -FI_EINVAL);
}

TEST_F(Scalable, ThePlainAddressIsThatOfTheFirstContext) {
    open_contexts(FI_COMPLETION, FI_COMPLETION);
    char room[16] = {};
    require(fi_trecv(b->rx[0], room, sizeof(room), nullptr, b_to_a, 9, 0, room), "fi_trecv");
    require(fi_tsend(a->tx[0], "plain", 6, nullptr, a_to_b, 9, nullptr), "fi_tsend");
    fi_addr_t source = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(next(b->cq[0], &source).op_context, room);
    EXPECT_EQ(source, b_to_a);
    EXPECT_EQ(source, fi_rx_addr(b_to_a, 0, kContextBits));
}

// As MPICH's windows do: an index of which only one context is ever opened.
TEST_F(Scalable, AContextWorksWithoutTheOtherOneOfItsIndex) {
    open_contexts(FI_COMPLETION, FI_COMPLETION);
    const Info scalable(fi_dupinfo(info.get()));
    scalable->ep_attr->tx_ctx_cnt = 2;
    scalable->tx_attr->op_flags = FI_COMPLETION;
    fid_ep* sep = nullptr;
    fid_ep* tx = nullptr;
    fid_ep* rx = nullptr;
    require(fi_scalable_ep(left->domain, scalable.get(), &sep, nullptr), "fi_scalable_ep");
    require(fi_scalable_ep_bind(sep, &a->av->fid, 0), "bind av");
    require(fi_tx_context(sep, 1, nullptr, &tx, nullptr), "fi_tx_context");
    EXPECT_EQ(fi_send(tx, "early", 6, nullptr, a_to_b, nullptr), -FI_EOPBADSTATE)
        << "it is not enabled";
    require(fi_ep_bind(tx, &a->cq[0]->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION), "bind cq");
    require(fi_enable(tx), "fi_enable");
    char room[8] = {};
    require(fi_recv(b->rx[0], room, sizeof(room), nullptr, FI_ADDR_UNSPEC, room), "fi_recv");
    require(fi_send(tx, "alone", 6, nullptr, a_to_b, tx), "fi_send");
    EXPECT_EQ(next(a->cq[0]).op_context, tx);
    EXPECT_EQ(next(b->cq[0]).op_context, room);
    EXPECT_STREQ(room, "alone");

    require(fi_rx_context(sep, 0, nullptr, &rx, nullptr), "fi_rx_context");
    require(fi_ep_bind(rx, &a->cq[0]->fid, FI_RECV), "bind cq");
    require(fi_enable(rx), "fi_enable");
    require(fi_recv(rx, room, sizeof(room), nullptr, FI_ADDR_UNSPEC, room), "fi_recv");
    char name[64];
    size_t length = sizeof(name);
    require(fi_getname(&sep->fid, name, &length), "fi_getname");
    fi_addr_t to_receiver = FI_ADDR_UNSPEC;
    ASSERT_EQ(fi_av_insert(b->av, name, 1, &to_receiver, 0, nullptr), 1);
    require(fi_send(b->tx[0], "back", 5, nullptr, to_receiver, nullptr), "fi_send");
    EXPECT_EQ(next(a->cq[0]).op_context, room);
    EXPECT_STREQ(room, "back");
    EXPECT_EQ(next(b->cq[0]).flags, FI_SEND | FI_MSG);
    EXPECT_EQ(fi_close(&tx->fid), 0);
    EXPECT_EQ(fi_close(&rx->fid), 0);
    EXPECT_EQ(fi_close(&sep->fid), 0);
}

// Messages may come before the application posts anything.
TEST_F(Scalable, AReceiveContextAloneTakesMessagesBeforeItPostsAReceive) {
    open_contexts(FI_COMPLETION, FI_COMPLETION);
    const auto [sep, rx] = open_receiver();
    char name[64];
    size_t length = sizeof(name);
    require(fi_getname(&sep->fid, name, &length), "fi_getname");
    fi_addr_t to_receiver = FI_ADDR_UNSPEC;
    ASSERT_EQ(fi_av_insert(b->av, name, 1, &to_receiver, 0, nullptr), 1);
    fi_cq_tagged_entry entry{};
    ASSERT_EQ(fi_cq_read(a->cq[0], &entry, 1), -FI_EAGAIN);
    require(fi_tsend(b->tx[0], "early", 6, nullptr, to_receiver, 3, nullptr), "fi_tsend");
    EXPECT_EQ(next(b->cq[0]).flags, FI_SEND | FI_TAGGED) << "it was taken";
    char room[8] = {};
    require(fi_trecv(rx, room, sizeof(room), nullptr, FI_ADDR_UNSPEC, 3, 0, room), "fi_trecv");
    EXPECT_EQ(next(a->cq[0]).op_context, room);
    EXPECT_STREQ(room, "early");
    EXPECT_EQ(fi_close(&rx->fid), 0);
    EXPECT_EQ(fi_close(&sep->fid), 0);
}

// It waits for a transmit context that is open, which may still be bound.
TEST_F(Scalable, AReceiveContextDoesNotStartBeforeItsTransmitContextIsBound) {
    open_contexts(FI_COMPLETION, FI_COMPLETION);
    const auto [sep, rx] = open_receiver();
    fid_ep* tx = nullptr;
    require(fi_tx_context(sep, 0, nullptr, &tx, nullptr), "fi_tx_context");
    fi_cq_tagged_entry entry{};
    ASSERT_EQ(fi_cq_read(a->cq[0], &entry, 1), -FI_EAGAIN);
    EXPECT_EQ(fi_ep_bind(tx, &a->cq[0]->fid, FI_TRANSMIT), 0);
    EXPECT_EQ(fi_enable(tx), 0);
    EXPECT_EQ(fi_close(&tx->fid), 0);
    EXPECT_EQ(fi_close(&rx->fid), 0);
    EXPECT_EQ(fi_close(&sep->fid), 0);
}

// Endpoints on one receive context share its core endpoint, and not their transmit flags.
TEST_F(Scalable, EndpointsOnASharedReceiveContextSendWithFlagsOfTheirOwn) {
    fid_ep* srx = nullptr;
    require(fi_srx_context(left->domain, nullptr, &srx, nullptr), "fi_srx_context");
    fid_ep* eps[2] = {};
    for (int i = 0; i < 2; ++i) {
        const Info shared(fi_dupinfo(info.get()));
        shared->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
        shared->tx_attr->op_flags = i == 0 ? 0 : FI_COMPLETION;
        require(fi_endpoint(left->domain, shared.get(), &eps[i], nullptr), "fi_endpoint");
        require(fi_ep_bind(eps[i], &srx->fid, 0), "bind srx");
        require(fi_ep_bind(eps[i], &left->av->fid, 0), "bind av");
        require(fi_ep_bind(eps[i], &left->cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION),
                "bind cq");
        require(fi_ep_bind(eps[i], &left->cq->fid, FI_RECV), "bind cq");
        require(fi_enable(eps[i]), "fi_enable");
    }
    for (fid_ep* ep : eps) {
        char text[8] = {};
        require(fi_trecv(right->ep, text, sizeof(text), nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr),
                "fi_trecv");
        require(fi_tsend(ep, "shared", 7, nullptr, to_right, 1, ep), "fi_tsend");
        expect(*right, FI_RECV | FI_TAGGED);
        EXPECT_STREQ(text, "shared");
    }
    EXPECT_EQ(expect(*left, FI_SEND | FI_TAGGED).op_context, eps[1]);
    expect_nothing(left->cq);
    for (fid_ep* ep : eps) {
        EXPECT_EQ(fi_close(&ep->fid), 0);
    }
    EXPECT_EQ(fi_close(&srx->fid), 0);
}

}  // namespace
}  // namespace tagwire::fi_test
