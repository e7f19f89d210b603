// SPDX-License-Identifier: BSD-3-Clause
// Random operations over a bad network, against the model. A failure names its seed:
// --seed N runs that one alone. TAGWIRE_TEST_SLOW=1: 100,000 sequences.
#include <cstdlib>
#include <memory>

#include "test/tagwire/model.h"
#include "test/tagwire/sim_peer.h"

namespace tagwire::test {
namespace {

constexpr uint64_t kEagerWindow = 64 * 1024;
constexpr uint64_t kLeast = 64;

struct Receive {
    std::string buffer;
    size_t model;
    bool done = false;
};

// What a peek found, and what became of it.
struct Peeked {
    tw_context context{};
    ModelReceive wanted;
    uint64_t flags;
    bool reported = false;
    size_t message = Model::kNone;
    std::string buffer;
    bool taken = false;      // the receive that claims it was posted
    bool discarded = false;  // ... with TW_DISCARD
};

class Sequence {
  public:
    explicit Sequence(uint64_t seed) : simulator(seed), random_(seed) {
        simulator.faults.loss = 0.02;
        simulator.faults.duplication = 0.01;
        simulator.faults.reordering = 0.05;
        simulator.faults.jitter_ns = 2'000;
        tagged_ = seed % 5 != 4;
        const size_t senders = seed % 2 == 0 ? 1 : 3;
        // Budget for all that a sequence leaves unmatched.
        const PeerOptions options{
            .max_operations = 4096, .peer_timeout_ms = 600'000, .counters = seed % 3 == 0};
        receiver = std::make_unique<SimPeer>(simulator.add_node(), options);
        receiver->read_completions = false;  // consume() does, in their order
        for (size_t i = 0; i < senders; ++i) {
            senders_.push_back(std::make_unique<SimPeer>(simulator.add_node(), options));
            addresses_.push_back(receiver->address_of(*senders_[i]));
        }
    }

    void run() {
        for (int i = 0; i < 60 && !failed(); ++i) {
            step();
            consume();
        }
        rest();
        close();
    }

  private:
    static bool failed() { return testing::Test::HasFailure(); }
    uint64_t pick(uint64_t below) { return random_() % below; }

    void step() {
        const uint64_t what = pick(100);
        if (what < 45) {
            send();
        } else if (what < 72) {
            post(false);
        } else if (what < 78) {
            post(true);
        } else if (what < 86) {
            cancel();
        } else if (what < 94 && tagged_) {
            peek();
        } else if (what < 97 && tagged_) {
            claim();
        } else {
            simulator.run_for(pick(100'000));
        }
    }

    void send() {
        static constexpr uint64_t kSizes[] = {0, 1, 8, 60, 100, 1400, 5000, 70'000};
        const size_t from = pick(senders_.size());
        ModelMessage message{};
        message.sender = from;
        message.tag = tagged_ ? pick(8) : 0;
        message.length = kSizes[pick(8)];
        const bool inject = pick(4) == 0 && message.length <= TW_INJECT_SIZE;
        uint64_t flags = TW_REMOTE_CQ_DATA;
        if (!inject) {
            static constexpr uint64_t kLevels[] = {
                0, 0, 0, TW_TRANSMIT_COMPLETE, TW_DELIVERY_COMPLETE, TW_MATCH_COMPLETE};
            flags |= kLevels[pick(6)];
            flags |= pick(20) == 0 ? TW_FENCE : 0;
            flags |= pick(4) == 0 ? TW_MORE : 0;
        }
        message.needs_match = (flags & TW_MATCH_COMPLETE) != 0;
        message.fence = (flags & TW_FENCE) != 0;
        message.silent = inject;
        const size_t m = model_.send(message);
        SimPeer& peer = *senders_[from];
        const std::string& payload = payloads_.emplace_back(pattern(m, message.length));
        const tw_addr to = peer.address_of(*receiver);
        const iovec iov{const_cast<char*>(payload.data()), payload.size()};
        void* context = reinterpret_cast<void*>(m + 1);  // NULL: of an injected one that failed
        if (tagged_) {
            const tw_msg_tagged call{&iov, 1, to, message.tag, 0, context, m};
            peer.posted(
                inject ? tw_tinjectdata(peer.ep, payload.data(), payload.size(), m, to, message.tag)
                       : tw_tsendmsg(peer.ep, &call, flags));
        } else {
            const tw_msg call{&iov, 1, to, context, m};
            peer.posted(inject ? tw_injectdata(peer.ep, payload.data(), payload.size(), m, to)
                               : tw_sendmsg(peer.ep, &call, flags));
        }
    }

    ModelReceive wanted() {
        static constexpr uint64_t kMasks[] = {0, 0, 1, 3, 7, 4, ~uint64_t{0}};
        ModelReceive receive{};
        receive.tag = tagged_ ? pick(8) : 0;
        receive.ignore = tagged_ ? kMasks[pick(7)] : 0;
        receive.sender = pick(3) == 0 ? pick(senders_.size()) : Model::kAny;
        receive.least = kLeast;
        return receive;
    }
    tw_addr address(const ModelReceive& receive) const {
        return receive.sender == Model::kAny ? TW_ADDR_UNSPEC : addresses_[receive.sender];
    }

    void post(bool multi) {
        static constexpr uint64_t kSizes[] = {0, 8, 100, 5000, 70'000};
        ModelReceive receive = wanted();
        receive.multi = multi;
        receive.capacity = multi ? 50 + pick(3000) : kSizes[pick(5)];
        Receive& entry = receives_.emplace_back();
        entry.model = model_.post(receive);
        entry.buffer.assign(receive.capacity, '.');
        const iovec iov{entry.buffer.data(), entry.buffer.size()};
        if (!multi && pick(2) == 0) {
            char* const buffer = entry.buffer.data();
            const tw_addr from = address(receive);
            receiver->posted(tagged_
                                 ? tw_trecv(receiver->ep, buffer, receive.capacity, from,
                                            receive.tag, receive.ignore, &entry)
                                 : tw_recv(receiver->ep, buffer, receive.capacity, from, &entry));
            return;
        }
        const uint64_t flags = multi ? TW_MULTI_RECV : 0;
        const tw_msg_tagged tagged{&iov,   1, address(receive), receive.tag, receive.ignore,
                                   &entry, 0};
        const tw_msg untagged{&iov, 1, address(receive), &entry, 0};
        receiver->posted(tagged_ ? tw_trecvmsg(receiver->ep, &tagged, flags)
                                 : tw_recvmsg(receiver->ep, &untagged, flags));
    }

    // At rest a receive is open in the model exactly if it can be cancelled.
    void cancel() {
        if (receives_.empty()) {
            return;
        }
        rest();
        Receive& entry = receives_[pick(receives_.size())];
        ModelReceive& receive = model_.receives[entry.model];
        ASSERT_EQ(tw_cancel(receiver->ep, &entry), receive.open ? 0 : -ENOENT);
        receive.cancelled = receive.cancelled || receive.open;
        receive.open = false;
        receiver->wake();
    }

    void peek() {
        rest();
        Peeked& peeked = peeks_.emplace_back();
        static constexpr uint64_t kFlags[] = {0, TW_CLAIM, TW_DISCARD};
        peeked.wanted = wanted();
        peeked.flags = TW_PEEK | kFlags[pick(3)];
        const tw_msg_tagged call{
            nullptr,         0, address(peeked.wanted), peeked.wanted.tag, peeked.wanted.ignore,
            &peeked.context, 0};
        receiver->posted(tw_trecvmsg(receiver->ep, &call, peeked.flags));
        rest();
        EXPECT_TRUE(peeked.reported) << "a peek ends at once";
    }

    void claim() {
        for (Peeked& peeked : peeks_) {
            if ((peeked.flags & TW_CLAIM) == 0 || peeked.message == Model::kNone || peeked.taken) {
                continue;
            }
            peeked.taken = true;
            peeked.discarded = pick(3) == 0;
            peeked.buffer.assign(model_.messages[peeked.message].length, '.');
            const iovec iov{peeked.buffer.data(), peeked.buffer.size()};
            const tw_msg_tagged call{&iov, 1, TW_ADDR_UNSPEC, 0, 0, &peeked.context, 0};
            receiver->posted(
                tw_trecvmsg(receiver->ep, &call, TW_CLAIM | (peeked.discarded ? TW_DISCARD : 0)));
            return;
        }
    }

    ModelMessage& message_of(const void* context) {
        return model_.messages.at(reinterpret_cast<size_t>(context) - 1);
    }

    Peeked* peek_of(const void* context) {
        for (Peeked& peeked : peeks_) {
            if (&peeked.context == context) {
                return &peeked;
            }
        }
        return nullptr;
    }

    // Everything that was completed since the last time.
    void consume() {
        tw_cq_entry entry;
        tw_cq_error error;
        for (;;) {
            const ssize_t count = tw_cq_read(receiver->cq, &entry, 1);
            if (count == -EAGAIN) {
                break;
            }
            if (count == -TW_EAVAIL) {
                ASSERT_EQ(tw_cq_readerr(receiver->cq, &error), 1);
                consume(error.entry, error.error);
            } else {
                ASSERT_EQ(count, 1);
                consume(entry, 0);
            }
        }
        for (const auto& sender : senders_) {
            for (const tw_cq_entry& entry : sender->sent) {
                ++message_of(entry.context).completions;
            }
            sender->sent.clear();
            if (!closing_) {
                EXPECT_TRUE(sender->errors.empty()) << sender->errors[0].text;
            }
        }
    }

    void consume(const tw_cq_entry& entry, int error) {
        if (Peeked* peeked = peek_of(entry.context)) {
            peeked->reported ? consume_claim(*peeked, entry, error)
                             : consume_peek(*peeked, entry, error);
            return;
        }
        Receive& receive = *static_cast<Receive*>(entry.context);
        if (error == ECANCELED) {
            EXPECT_TRUE(model_.receives[receive.model].cancelled) << "cancelled by nobody";
            cancelled_.push_back(receive.model);
            expect(model_.receives[receive.model].multi ? model_.released(receive.model)
                                                        : ended(receive.model));
            return;
        }
        if (entry.flags == TW_MULTI_RECV) {
            expect(model_.released(receive.model));
            return;
        }
        ASSERT_TRUE(error == 0 || error == TW_ETRUNC) << error;
        ASSERT_NE(entry.flags & TW_REMOTE_CQ_DATA, 0u);
        const size_t m = entry.data;
        const ModelMessage& message = model_.messages.at(m);
        EXPECT_EQ(entry.tag, message.tag);
        EXPECT_EQ(entry.source, addresses_[message.sender]);
        expect(model_.took(receive.model, m, entry.length, error != 0));
        const auto* at = static_cast<const char*>(entry.buffer);
        if (entry.length != 0) {
            EXPECT_GE(at, receive.buffer.data());
            EXPECT_EQ(std::string(at, entry.length),
                      pattern(m, message.length).substr(0, entry.length));
        }
        if ((entry.flags & TW_MULTI_RECV) != 0) {
            expect(model_.released(receive.model));
        }
    }

    std::string ended(size_t r) {
        return ++model_.receives[r].ends == 1 ? "" : "a receive ended twice";
    }

    void consume_peek(Peeked& peeked, const tw_cq_entry& entry, int error) {
        peeked.reported = true;
        const std::map<size_t, size_t> found = model_.findable(peeked.wanted);
        if (error != 0) {
            EXPECT_EQ(error, ENOMSG);
            EXPECT_TRUE(found.empty()) << "message " << found.begin()->second << " is there";
            return;
        }
        const size_t m = entry.data;
        ModelMessage& message = model_.messages.at(m);
        const auto first = found.find(message.sender);
        ASSERT_TRUE(first != found.end() && first->second == m) << "message " << m;
        EXPECT_EQ(entry.length, message.length);
        EXPECT_EQ(entry.tag, message.tag);
        EXPECT_EQ(entry.source, addresses_[message.sender]);
        if ((peeked.flags & TW_CLAIM) != 0) {
            message.state = ModelMessage::State::kClaimed;
            peeked.message = m;
        } else if ((peeked.flags & TW_DISCARD) != 0) {
            message.state = ModelMessage::State::kGone;
        }
    }

    void consume_claim(Peeked& peeked, const tw_cq_entry& entry, int error) {
        ModelMessage& message = model_.messages.at(peeked.message);
        EXPECT_EQ(message.state, ModelMessage::State::kClaimed);
        EXPECT_EQ(error, 0);
        EXPECT_EQ(entry.data, peeked.message);
        if (!peeked.discarded) {
            EXPECT_EQ(entry.length, message.length);
            EXPECT_EQ(peeked.buffer, pattern(peeked.message, message.length));
        }
        message.state = ModelMessage::State::kGone;
    }

    void expect(const std::string& wrong) { EXPECT_EQ(wrong, ""); }

    // Without those that only ask a full receiver for room, and its answers: they may go on.
    uint64_t frames() const {
        const auto of = [](const SimPeer& peer) {
            return peer.stat("tx_frames") - peer.stat("tx_probes") - peer.stat("tx_acks");
        };
        uint64_t sum = of(*receiver);
        for (const auto& sender : senders_) {
            sum += of(*sender);
        }
        return sum;
    }

    // Until nothing was sent for longer than any timeout; then all must be as the model says.
    void rest() {
        uint64_t before;
        do {
            before = frames();
            simulator.run_for(kSecond + kSecond / 10);
        } while (frames() != before);
        consume();
        expect(model_.check());
    }

    // Every operation ends once.
    void close() {
        closing_ = true;
        std::vector<size_t> open;
        bool fenced = false;
        for (size_t m = 0; m < model_.messages.size(); ++m) {
            fenced = fenced || !model_.arrived(m);
        }
        for (size_t r = 0; r < model_.receives.size(); ++r) {
            if (model_.receives[r].open) {
                model_.receives[r].cancelled = true;  // or else it ends in success, once
                open.push_back(r);
            }
        }
        const bool closed = simulator.run_until(
            [&] {
                receiver->wake();
                return tw_ep_close(receiver->ep) == 0;
            },
            10 * kSecond);
        ASSERT_TRUE(closed) << tw_last_error();
        receiver->ep = nullptr;
        receiver->wake();
        simulator.run_for(2 * kSecond);
        cancelled_.clear();
        consume();
        // At rest none is being filled: they end in posting order. But a message behind a fence
        // arrives while the endpoint closes, and may still meet a receive.
        if (!fenced) {
            EXPECT_EQ(cancelled_, open);
        }
        for (const ModelReceive& receive : model_.receives) {
            EXPECT_EQ(receive.ends, 1u);
        }
        for (const auto& sender : senders_) {
            for (const tw_cq_error& error : sender->errors) {
                if (error.entry.context != nullptr) {
                    ++message_of(error.entry.context).completions;
                }
            }
            EXPECT_EQ(sender->stat("sends_outstanding"), 0u);
        }
        for (const ModelMessage& message : model_.messages) {
            EXPECT_TRUE(message.silent || message.completions == 1)
                << "message " << message.order - 1 << " completed " << message.completions
                << " times, in state " << static_cast<int>(message.state);
        }
        EXPECT_EQ(receiver->stat("receives_outstanding"), 0u);
        EXPECT_EQ(receiver->stat("unexpected_messages"), 0u);
    }

  public:
    sim::Simulator simulator;
    std::unique_ptr<SimPeer> receiver;

  private:
    std::mt19937_64 random_;
    bool tagged_;
    bool closing_ = false;
    std::vector<std::unique_ptr<SimPeer>> senders_;
    std::vector<tw_addr> addresses_;
    Model model_{kEagerWindow};
    std::deque<Receive> receives_;
    std::deque<Peeked> peeks_;
    std::deque<std::string> payloads_;
    std::vector<size_t> cancelled_;
};

TEST(AgainstTheModel, random_operations_complete_as_it_allows) {
    uint64_t first = 1;
    uint64_t last = std::getenv("TAGWIRE_TEST_SLOW") != nullptr ? 100'000 : 300;
    if (sim::seed() != 0) {
        first = last = sim::seed();
    }
    for (uint64_t seed = first; seed <= last && !HasFailure(); ++seed) {
        SCOPED_TRACE("--seed " + std::to_string(seed));
        Sequence sequence(seed);
        sequence.run();
    }
}

}  // namespace
}  // namespace tagwire::test
