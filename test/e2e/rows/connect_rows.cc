// SPDX-License-Identifier: BSD-3-Clause
// Connected endpoints: T21.
#include "test/e2e/rows/rows.h"

namespace tagwire::rows {

namespace {

constexpr size_t kShort = 8, kLong = 100'000;
constexpr uint64_t kNever = 9;  // nobody sends a message with this tag

// The context of each receive is its buffer.
void post(Side& side, Endpoint& ep, uint64_t tag, size_t length) {
    std::string& buffer = side.buffer(length);
    CALL(tw_trecv(ep.ep, buffer.data(), length, TW_ADDR_UNSPEC, tag, 0, &buffer));
}

void send(Side& side, Endpoint& ep, uint64_t tag, size_t length) {
    const std::string& bytes = side.keep(pattern(tag, length));
    CALL(tw_tsend(ep.ep, bytes.data(), length, TW_ADDR_UNSPEC, tag, nullptr));
}

void expect_messages(Endpoint& ep, int count) {
    for (int i = 0; i < count; ++i) {
        const tw_cq_entry entry = ep.received_well();
        const auto& buffer = *static_cast<std::string*>(entry.context);
        EXPECT_IS(entry.length, buffer.size());
        EXPECT(buffer == pattern(entry.tag, buffer.size()));
    }
}

void expect_no_send(Endpoint& ep) {
    EXPECT_IS(tw_tsend(ep.ep, "x", 1, TW_ADDR_UNSPEC, 1, nullptr), -ENOTCONN);
}

}  // namespace

// Tags: 1 and 2 go to the server, 3 to 5 to the client.
void receives_before_connect(Side& side) {
    if (side.server()) {
        side.listen();
        side.meet();
        const tw_eq_entry request = side.event(TW_CONNREQ);
        Endpoint& ep = side.open(1, {.connects = true, .request = request.request});
        post(side, ep, 1, kShort);
        post(side, ep, 2, kLong);
        post(side, ep, kNever, kShort);
        side.meet();  // the client has posted its last receive
        expect_no_send(ep);
        CALL(tw_accept(ep.ep, nullptr, 0));
        side.event(TW_CONNECTED);
        expect_messages(ep, 2);
        send(side, ep, 4, kLong);
        send(side, ep, 3, kShort);
        send(side, ep, 5, kShort);
        for (int i = 0; i < 3; ++i) {
            ep.sent_well();
        }
        EXPECT_IS(side.event(TW_SHUTDOWN).error, 0);
        EXPECT_IS(ep.received().error, ESHUTDOWN);
        EXPECT(ep.is_quiet());
        side.saw("2 messages in receives posted before accept, the third ended with ESHUTDOWN");
        return;
    }
    Endpoint& ep = side.open(1, {.connects = true});
    post(side, ep, 3, kShort);
    post(side, ep, 4, kLong);
    post(side, ep, kNever, kShort);
    expect_no_send(ep);
    side.meet();
    const tw_address server = side.peer_address(0);
    CALL(tw_connect(ep.ep, &server, nullptr, 0));
    post(side, ep, 5, kShort);
    expect_no_send(ep);
    side.meet();
    side.event(TW_CONNECTED);
    EXPECT(ep.is_quiet());
    send(side, ep, 2, kLong);
    send(side, ep, 1, kShort);
    expect_messages(ep, 3);
    ep.sent_well();
    ep.sent_well();
    CALL(tw_shutdown(ep.ep, 0));
    EXPECT_IS(ep.received().error, ECANCELED);
    EXPECT(ep.is_quiet());
    side.saw("3 messages in receives posted before connect and before its end; sends ENOTCONN");
}

}  // namespace tagwire::rows
