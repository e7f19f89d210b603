// SPDX-License-Identifier: BSD-3-Clause
// An endpoint's life: open, enable, close.
#include "lib/tagwire/endpoint.h"

#include <cstring>

#include "lib/tagwire/address.h"
#include "lib/tagwire/attributes.h"
#include "lib/tagwire/auth_key.h"
#include "lib/tagwire/calls.h"
#include "lib/tagwire/connection.h"
#include "lib/tagwire/error.h"
#include "lib/tagwire/guard.h"
#include "lib/tagwire/passive_endpoint.h"

namespace tagwire {

namespace {

// Classes of receives for which unexpected messages may have a hash of their own beside the
// shared one; each takes 32 bytes for each message.
constexpr uint32_t kUnexpectedClasses = 4;
// Untagged receives differ in their source alone: any, a peer, a key.
constexpr uint32_t kUntaggedClasses = 3;

}  // namespace

Endpoint::Endpoint(Worker& worker, uint16_t number, const tw_ep_attr& attr)
    : worker_(worker),
      number_(number),
      tx_flags_(attr.tx_flags),
      rx_flags_(attr.rx_flags),
      key_(attr.auth_key != nullptr ? digest_of(attr.auth_key, attr.auth_key_size)
                                    : transport::kNoKey) {
    if (attr.type == TW_EP_MSG) {
        connection_ = std::make_unique<Connection>(*this, attr.request);
        if (attr.request != nullptr && attr.auth_key == nullptr) {
            key_ = attr.request->pep->key();
        }
        no_addresses_.emplace(worker);
        av_ = &*no_addresses_;
    }
}

Endpoint::~Endpoint() {
    if (watches_sources_) {
        worker_.connections().watch_ended();
    }
}

bool Endpoint::takes(transport::PeerId peer) const {
    return connection_ == nullptr || connection_->takes(peer);
}

void Endpoint::connected_to(transport::PeerId peer) {
    peers_.assign(1, peer);
}

void Endpoint::disconnected(transport::PeerId peer, int error) noexcept {
    can_send_ = can_receive_ = false;
    peers_.clear();
    worker_.forget_peer(peer);
    abandon_receives(error);
}

void Endpoint::drop_messages() noexcept {
    abandon_messages();
}

int Endpoint::Side::open(Worker& worker, bool tagged) {
    const match::QueueConfig arriving{worker.receives().capacity(), tagged ? 0 : kUntaggedClasses,
                                      worker.match_seed()};
    const match::QueueConfig waiting{worker.unexpected().capacity(),
                                     tagged ? kUnexpectedClasses : kUntaggedClasses,
                                     worker.match_seed() + 1};
    const size_t posted_bytes = match::PostedQueue::bytes_needed(arriving);
    const size_t bytes = posted_bytes + match::UnexpectedQueue::bytes_needed(waiting);
    memory = huge_memory("tagwire_match", bytes, match::Arena::kAlignment);
    if (memory == nullptr) {
        return fail(ENOMEM,
                    "tw_ep_enable: no memory to match %u receives and %u messages, %zu MiB: start "
                    "EAL with more (-m), or open the worker with less max_operations",
                    arriving.capacity, waiting.capacity, (bytes >> 20) + 1);
    }
    posted.emplace(arriving, memory.get());
    unexpected.emplace(waiting, memory.get() + posted_bytes);
    return 0;
}

int Endpoint::enable() {
    if (enabled_) {
        return refuse(TW_EOPBADSTATE, "tw_ep_enable: the endpoint is enabled already");
    }
    if (av_ == nullptr) {
        return refuse(TW_ENOAV, "tw_ep_enable: bind an address vector first (tw_ep_bind_av)");
    }
    const bool matches = receiver_ == this;
    if (!matches && !receiver_->enabled_) {
        return refuse(TW_EOPBADSTATE, "tw_ep_enable: enable the endpoint's receiver first");
    }
    if (send_cq_ == nullptr || (receive_cq_ == nullptr && matches)) {
        return refuse(TW_ENOCQ,
                      "tw_ep_enable: bind a completion queue for TW_SEND and for TW_RECV first");
    }
    for (size_t i = 0; matches && i < std::size(sides_); ++i) {
        if (const int error = sides_[i].open(worker_, i == 0); error != 0) {
            return error;
        }
    }
    if (const int error = worker_.transport().open_endpoint(number_, key_); error != 0) {
        return fail(-error, "tw_ep_enable: the transport does not open endpoint %u: %s", number_,
                    tw_strerror(error));
    }
    for (const transport::KeyDigest key : av_->keys()) {
        if (key != transport::kNoKey) {
            allow_key(key);
        }
    }
    enabled_ = true;
    can_receive_ = matches;
    can_send_ = connection_ == nullptr;
    // With several threads every call takes the worker's lock first; a connection may end.
    plain_copies_ = connection_ == nullptr && !worker_.shared();
    plain_sends_ = plain_copies_ && (tx_flags_ & ~(TW_COMPLETION | TW_TRANSMIT_COMPLETE)) == 0;
    plain_receives_ = plain_copies_ && (rx_flags_ & ~TW_COMPLETION) == 0;
    const bool silent_sends = (tx_flags_ & TW_COMPLETION) == 0;
    plain_end_ = {.usual = !silent_sends, .silent = silent_sends, .completed = false};
    silent_receives_ = (rx_flags_ & TW_COMPLETION) == 0;
    return 0;
}

void Endpoint::allow_key(transport::KeyDigest key) {
    worker_.transport().add_key(number_, key);
}

int Endpoint::set_option(int option, const void* value, size_t size) {
    if (option == TW_OPT_INJECT_SIZE || option == TW_OPT_MAX_MESSAGE_SIZE) {
        return refuse(EOPNOTSUPP, "tw_ep_setopt: this option can only be read");
    }
    size_t wanted;
    if (size != sizeof(wanted)) {
        return refuse(EINVAL, "tw_ep_setopt: the value is a size_t");
    }
    std::memcpy(&wanted, value, sizeof(wanted));
    switch (option) {
        case TW_OPT_MIN_MULTI_RECV:
            if (wanted > UINT32_MAX) {
                return refuse(EINVAL, "tw_ep_setopt: TW_OPT_MIN_MULTI_RECV is below 2^32");
            }
            min_multi_receive_ = static_cast<uint32_t>(wanted);
            return 0;
        case TW_OPT_WATCH_SOURCES:
            return set_watch(wanted);
        case TW_OPT_WHOLE_MESSAGES:
            if (wanted > 1) {
                return refuse(EINVAL, "tw_ep_setopt: TW_OPT_WHOLE_MESSAGES is 0 or 1");
            }
            whole_messages_ = wanted == 1;
            return 0;
        default:
            return fail(EINVAL, "tw_ep_setopt: there is no option %d", option);
    }
}

int Endpoint::set_watch(size_t wanted) {
    if (wanted > 1) {
        return refuse(EINVAL, "tw_ep_setopt: TW_OPT_WATCH_SOURCES is 0 or 1");
    }
    if (connection_ != nullptr) {
        return refuse(EOPNOTSUPP, "tw_ep_setopt: a connection is watched anyway");
    }
    if (watches_sources_ != (wanted == 1)) {
        watches_sources_ = wanted == 1;
        watches_sources_ ? worker_.connections().watch_began()
                         : worker_.connections().watch_ended();
    }
    return 0;
}

int Endpoint::get_option(int option, void* value, size_t* size) const {
    size_t found;
    switch (option) {
        case TW_OPT_MIN_MULTI_RECV:
            found = min_multi_receive_;
            break;
        case TW_OPT_WATCH_SOURCES:
            found = watches_sources_ ? 1 : 0;
            break;
        case TW_OPT_INJECT_SIZE:
            found = TW_INJECT_SIZE;
            break;
        case TW_OPT_MAX_MESSAGE_SIZE:
            found = TW_MAX_MESSAGE_SIZE;
            break;
        case TW_OPT_WHOLE_MESSAGES:
            found = whole_messages_ ? 1 : 0;
            break;
        default:
            return fail(EINVAL, "tw_ep_getopt: there is no option %d", option);
    }
    if (*size < sizeof(found)) {
        return refuse(EINVAL, "tw_ep_getopt: the value is a size_t");
    }
    std::memcpy(value, &found, sizeof(found));
    *size = sizeof(found);
    return 0;
}

// What open_peer() held. A connection holds its own.
void Endpoint::release_peers() noexcept {
    if (connection_ == nullptr) {
        for (const transport::PeerId peer : peers_) {
            if (peer != transport::kNoPeer) {
                worker_.transport().release_peer(peer);
            }
        }
    }
    peers_.clear();
}

int Endpoint::close_busy() const {
    return refuse(
        EBUSY,
        "tw_ep_close: sends or matched receives are under way; call tw_progress and try again");
}

int Endpoint::close() {
    if (receives_for_ != 0) {
        return refuse(EBUSY,
                      "tw_ep_close: it is the receiver of connected endpoints; close those first");
    }
    if (enabled_) {
        const bool feeds = receiver_ != this && connection_->is_busy();
        if (sends_ != 0 || accepting_ != 0 || feeds) {
            return close_busy();
        }
    }
    if (connection_ != nullptr && connection_->close() != 0) {
        return close_busy();
    }
    if (enabled_) {
        abandon_messages();
        worker_.remote_memory().closing(*this);
        if (const int error = worker_.transport().close_endpoint(number_); error != 0) {
            return close_busy();
        }
        abandon_receives(ECANCELED);
    }
    release_peers();
    worker_.counters().closed += match_counters();
    worker_.remove_endpoint(number_);
    if (receiver_ != this) {
        --receiver_->receives_for_;
    }
    if (av_ != nullptr) {
        av_->unbind(*this);
    }
    if (send_cq_ != nullptr) {
        send_cq_->unbind();
    }
    if (receive_cq_ != nullptr) {
        receive_cq_->unbind();
    }
    for (CompletionCounter* counter : counters_) {
        if (counter != nullptr) {
            counter->unbind();
        }
    }
    return 0;
}

MatchCounters Endpoint::match_counters() const {
    MatchCounters sum;
    for (const Side& side : sides_) {
        if (side.posted && side.unexpected) {
            sum += {side.posted->overflow_total(), side.posted->times_deep(),
                    side.unexpected->times_deep()};
        }
    }
    return sum;
}

void Endpoint::abandon_receives(int error) {
    for (Side& side : open_sides()) {
        for (const match::Slot slot : side.posted->slots()) {
            take_back(worker_.receives()[slot], error);
        }
    }
}

void Endpoint::abandon(UnexpectedMessage& unexpected) noexcept {
    worker_.transport().discard(take(unexpected));
}

void Endpoint::abandon_messages() noexcept {
    if (receiver_ != this) {
        receiver_->abandon_messages_of(connection_->peer());
        return;
    }
    while (blocked_ != nullptr) {
        UnexpectedMessage& first = *blocked_;
        unlink_blocked(first);
        abandon(first);
    }
    for (Side& side : open_sides()) {
        while (side.unexpected->size() != 0) {
            const match::Slot oldest = side.unexpected->oldest();
            side.unexpected->remove(oldest);
            abandon(worker_.unexpected()[oldest]);
        }
        while (side.unexpected->claimed() != 0) {
            const match::Slot oldest = side.unexpected->oldest_claimed();
            side.unexpected->redeem(side.unexpected->handle(oldest));
            abandon(worker_.unexpected()[oldest]);
        }
    }
}

// What was claimed stays: it is the application's.
void Endpoint::abandon_messages_of(transport::PeerId peer) noexcept {
    if (peer == transport::kNoPeer) {
        return;  // which is a source that matches all
    }
    for (UnexpectedMessage* entry = blocked_; entry != nullptr;) {
        UnexpectedMessage& message = *entry;
        entry = entry->next;
        if (transport::peer_of(*message.message) == peer) {
            unlink_blocked(message);
            abandon(message);
        }
    }
    for (Side& side : open_sides()) {
        match::Slot found;
        while ((found = side.unexpected->take(0, UINT64_MAX, peer)) != match::kNone) {
            abandon(worker_.unexpected()[found]);
        }
    }
}

int Endpoint::set_address(const transport::EndpointAddress& wanted) {
    if (enabled_) {
        return refuse(TW_EOPBADSTATE, "tw_ep_set_name: the endpoint is enabled already");
    }
    const transport::EndpointAddress& own = worker_.address();
    constexpr decltype(own.ip) kNoIp{};
    if ((wanted.ip != kNoIp && wanted.ip != own.ip) ||
        (wanted.udp_port != 0 && wanted.udp_port != own.udp_port)) {
        return refuse(EADDRNOTAVAIL,
                      "tw_ep_set_name: IP address and UDP port of an endpoint are its worker's");
    }
    uint16_t number = wanted.endpoint;
    if (number == number_ || number == TW_EP_ANY) {
        return 0;
    }
    if (const int error = worker_.choose_endpoint_number(&number, 0); error != 0) {
        return error;
    }
    worker_.add_endpoint(number, *this);
    worker_.remove_endpoint(number_);
    number_ = number;
    return 0;
}

transport::EndpointAddress Endpoint::address() const {
    transport::EndpointAddress address = worker_.address();
    address.endpoint = number_;
    return address;
}

}  // namespace tagwire

int tw_ep_open(tw_worker* worker, const tw_ep_attr* attr, tw_ep** ep) {
    using namespace tagwire;
    if (worker == nullptr || ep == nullptr) {
        return refuse(EINVAL, "tw_ep_open: worker and ep cannot be NULL");
    }
    tw_ep_attr wanted{};
    wanted.endpoint = TW_EP_ANY;
    if (const int error = take_attributes(attr, &wanted, "tw_ep_attr"); error != 0) {
        return error;
    }
    if ((wanted.tx_flags & ~(TW_COMPLETION | TW_INJECT | kCompletionLevels)) != 0 ||
        !one_level_at_most(wanted.tx_flags)) {
        return refuse(EINVAL,
                      "tw_ep_open: tx_flags are TW_COMPLETION, TW_INJECT and one completion level");
    }
    if ((wanted.rx_flags & ~(TW_COMPLETION | TW_MULTI_RECV)) != 0) {
        return refuse(EINVAL, "tw_ep_open: rx_flags are TW_COMPLETION and TW_MULTI_RECV");
    }
    if (const int error = check_auth_key(wanted.auth_key, wanted.auth_key_size); error != 0) {
        return error;
    }
    if (wanted.type > TW_EP_MSG || (wanted.type == TW_EP_RDM && wanted.request != nullptr)) {
        return refuse(EINVAL, "tw_ep_open: type is TW_EP_RDM or, also with request, TW_EP_MSG");
    }
    const Guard guard(*worker);
    uint16_t number = wanted.endpoint;
    // Number 0 is what an address without one names: of a worker with connections, a listener.
    const uint16_t first = wanted.type == TW_EP_MSG ? 1 : 0;
    if (const int error = worker->choose_endpoint_number(&number, first); error != 0) {
        return error;
    }
    if (wanted.request != nullptr &&
        worker->connections().find_waiting(wanted.request) == nullptr) {
        return refuse(EINVAL, "tw_ep_open: the request was answered, or is of another worker");
    }
    return guarded([&] {
        auto opened = std::make_unique<tw_ep>(*worker, number, wanted);
        worker->add_endpoint(number, *opened);
        worker->child_opened();
        *ep = opened.release();
        return 0;
    });
}

int tw_ep_close(tw_ep* ep) {
    using namespace tagwire;
    if (ep == nullptr) {
        return refuse(EINVAL, "tw_ep_close: ep cannot be NULL");
    }
    const Guard guard(ep->worker());
    if (const int error = ep->close(); error != 0) {
        return error;
    }
    ep->worker().child_closed();
    delete ep;
    return 0;
}

int tw_ep_setopt(tw_ep* ep, int option, const void* value, size_t size) {
    if (ep == nullptr || value == nullptr) {
        return tagwire::refuse(EINVAL, "tw_ep_setopt: ep and value cannot be NULL");
    }
    const tagwire::Guard guard(ep->worker());
    return ep->set_option(option, value, size);
}

int tw_ep_getopt(const tw_ep* ep, int option, void* value, size_t* size) {
    if (ep == nullptr || value == nullptr || size == nullptr) {
        return tagwire::refuse(EINVAL, "tw_ep_getopt: ep, value and size cannot be NULL");
    }
    const tagwire::Guard guard(ep->worker());
    return ep->get_option(option, value, size);
}

int tw_cancel(tw_ep* ep, void* context) {
    if (ep == nullptr) {
        return tagwire::refuse(EINVAL, "tw_cancel: ep cannot be NULL");
    }
    const tagwire::Guard guard(ep->worker());
    return ep->cancel(context);
}

int tw_ep_enable(tw_ep* ep) {
    if (ep == nullptr) {
        return tagwire::refuse(EINVAL, "tw_ep_enable: ep cannot be NULL");
    }
    const tagwire::Guard guard(ep->worker());
    return tagwire::guarded([&] { return ep->enable(); });
}

int tw_ep_peer_is_up(tw_ep* ep, tw_addr peer) {
    if (ep == nullptr) {
        return tagwire::refuse(EINVAL, "tw_ep_peer_is_up: ep cannot be NULL");
    }
    const tagwire::Guard guard(ep->worker());
    return ep->peer_is_up(peer);
}

int tw_ep_reset_peer(tw_ep* ep, tw_addr peer) {
    if (ep == nullptr) {
        return tagwire::refuse(EINVAL, "tw_ep_reset_peer: ep cannot be NULL");
    }
    const tagwire::Guard guard(ep->worker());
    return ep->reset_peer(peer);
}

int tw_ep_set_name(tw_ep* ep, const tw_address* address) {
    if (ep == nullptr || address == nullptr) {
        return tagwire::refuse(EINVAL, "tw_ep_set_name: ep and address cannot be NULL");
    }
    const tagwire::Guard guard(ep->worker());
    return tagwire::guarded([&] { return ep->set_address(tagwire::to_transport(*address)); });
}

int tw_ep_name(const tw_ep* ep, tw_address* address) {
    if (ep == nullptr || address == nullptr) {
        return tagwire::refuse(EINVAL, "tw_ep_name: ep and address cannot be NULL");
    }
    const tagwire::Guard guard(ep->worker());
    *address = tagwire::from_transport(ep->address());
    return 0;
}
