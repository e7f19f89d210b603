// SPDX-License-Identifier: BSD-3-Clause
// Active messages, the sender's side. Short ones carry their data. Of long ones the receiver's
// handler hears first, and the data follows when it asks: an offer, a grant, the data.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "lib/ucp/am.h"
#include "lib/ucp/status.h"

namespace tagwire::ucp {
namespace {

struct Message {
    unsigned id;
    const void* header;
    size_t header_length;
    const void* buffer;
    size_t count;
};

constexpr uint32_t kFlags = UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_RNDV;

Meta meta_of(const Request& request, Meta::Kind kind) {
    Meta meta;
    meta.kind = kind;
    meta.destination = request.endpoint->destination();
    meta.header_length = static_cast<uint16_t>(request.header_length);
    meta.flags = static_cast<uint8_t>(request.mask);
    meta.id = static_cast<uint16_t>(request.tag);
    return meta;
}

int post_message(Request& request) {
    iovec pieces[Payload::kPieces + 1];
    size_t count = request.payload.cut(0, request.payload.length(), pieces);
    if (request.header_length != 0) {
        pieces[count++] = {request.header, request.header_length};
    }
    const Meta meta = meta_of(request, Meta::Kind::kMessage);
    Channel& channel = request.worker->channel();
    const bool is_short = request.payload.length() + request.header_length <= TW_INJECT_SIZE &&
                          request.endpoint->peer()->reached;
    const int error = is_short ? channel.send_short(*request.endpoint, meta, pieces, count)
                               : channel.send(request, meta, pieces, count);
    if (error != 0) {
        return error;
    }
    request.post = nullptr;
    return is_short ? 1 : 0;
}

int post_offer(Request& request) {
    Offer offer{request.offset, request.payload.length()};
    iovec pieces[2];
    size_t count = 0;
    if (request.header_length != 0) {
        pieces[count++] = {request.header, request.header_length};
    }
    // The offer itself must live until it is sent: it joins the header's copy.
    pieces[count++] = {&request.operand, sizeof(offer)};
    static_assert(sizeof(request.operand) == sizeof(offer));
    std::memcpy(&request.operand, &offer, sizeof(offer));
    const Meta meta = meta_of(request, Meta::Kind::kOffer);
    Channel& channel = request.worker->channel();
    const bool is_short = request.header_length + sizeof(offer) <= TW_INJECT_SIZE;
    const int error = is_short ? channel.send_short(*request.endpoint, meta, pieces, count)
                               : channel.send(request, meta, pieces, count);
    if (error != 0) {
        return error;
    }
    request.worker->offers()[offer.id] = &request;
    request.post = nullptr;
    return 0;
}

// Parts of one tag, which arrive in the order that the receiver has posted receives for them in.
int post_data(Request& request) {
    return post_parts(request, request.payload.length(), [&](size_t part) {
        iovec pieces[Payload::kPieces];
        tw_msg_tagged message{};
        message.iov = pieces;
        message.iov_count = request.payload.cut(request.posted, part, pieces);
        message.addr = request.endpoint->peer()->channel_address;
        message.tag = kDataBit | request.offset;
        message.context = static_cast<Operation*>(&request);
        return tw_tsendmsg(request.worker->channel_endpoint(), &message, TW_COMPLETION);
    });
}

ucs_status_t check(const Message& message, uint32_t flags, const Context& context) {
    const bool both = (flags & UCP_AM_SEND_FLAG_EAGER) != 0 && (flags & UCP_AM_SEND_FLAG_RNDV) != 0;
    const bool bad = !context.has(UCP_FEATURE_AM) || both || message.id > UINT16_MAX ||
                     message.header_length > kMaxHeader ||
                     (message.header_length != 0 && message.header == nullptr);
    return bad ? UCS_ERR_INVALID_PARAM : UCS_OK;
}

// Leaves at once, or not at all.
bool send_short(Endpoint& endpoint, const Message& message, size_t length, uint8_t flags) {
    const iovec pieces[2] = {{const_cast<void*>(message.buffer), length},
                             {const_cast<void*>(message.header), message.header_length}};
    Meta meta;
    meta.kind = Meta::Kind::kMessage;
    meta.destination = endpoint.destination();
    meta.header_length = static_cast<uint16_t>(message.header_length);
    meta.flags = flags;
    meta.id = static_cast<uint16_t>(message.id);
    return endpoint.worker().channel().send_short(endpoint, meta, pieces, 2) == 0;
}

ucs_status_t prepare(Request& request, const Message& message, uint32_t flags,
                     ucp_datatype_t datatype, uint8_t reply) {
    if (const ucs_status_t status =
            request.payload.open_send(message.buffer, message.count, datatype);
        status != UCS_OK) {
        return status;
    }
    const Context& context = request.worker->context();
    const size_t length = request.payload.length();
    const bool wants_offer = (flags & UCP_AM_SEND_FLAG_RNDV) != 0;
    const bool may_offer = (flags & UCP_AM_SEND_FLAG_EAGER) == 0 &&
                           length + message.header_length >= context.offer_threshold;
    const bool offers = wants_offer || may_offer || length > kMaxEager;
    request.tag = message.id;
    request.mask = reply;
    if (offers && !wants_offer && !may_offer) {
        request.mask |= kWholeOnly;
    }
    if (message.header_length != 0) {
        request.header = std::malloc(message.header_length);
        if (request.header == nullptr) {
            return UCS_ERR_NO_MEMORY;
        }
        std::memcpy(request.header, message.header, message.header_length);
        request.header_length = static_cast<uint32_t>(message.header_length);
    }
    if (offers) {
        request.type = Request::Type::kAmOffer;
        request.offset = request.worker->next_offer();
    }
    request.post = offers ? post_offer : post_message;
    return UCS_OK;
}

ucs_status_ptr_t send(Endpoint& endpoint, const Message& message, const Call& call) {
    Worker& worker = endpoint.worker();
    const uint32_t flags = call.flags & kFlags;
    if (const ucs_status_t status = check(message, flags, worker.context()); status != UCS_OK) {
        return UCS_STATUS_PTR(status);
    }
    const uint8_t reply = (flags & UCP_AM_SEND_FLAG_REPLY) != 0 ? kWantsReply : 0;
    const bool contiguous = (call.datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_CONTIG;
    const size_t length = message.count * (call.datatype >> UCP_DATATYPE_SHIFT);
    if (contiguous && length + message.header_length <= TW_INJECT_SIZE &&
        (flags & UCP_AM_SEND_FLAG_RNDV) == 0 &&
        length + message.header_length < worker.context().offer_threshold &&
        call.may_complete_now() && endpoint.direct() &&
        (message.buffer != nullptr || length == 0) &&
        send_short(endpoint, message, length, reply)) {
        return nullptr;
    }
    Request* request = new_request(worker, call, Request::Type::kSend);
    if (request == nullptr) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    ucs_status_t status = prepare(*request, message, flags, call.datatype, reply);
    if (status == UCS_OK) {
        status = endpoint.submit(*request);
    }
    return answer(*request, call, status);
}

}  // namespace

// The receiver wants the data of an offer.
void take_grant(Worker& worker, Peer& peer, const Verdict& verdict) {
    const auto found = worker.offers().find(verdict.id);
    if (found == worker.offers().end()) {
        Meta meta;
        meta.kind = Meta::Kind::kRevoke;
        const Verdict revoked{verdict.id, UCS_ERR_CANCELED};
        worker.channel().note(peer, meta, &revoked, sizeof(revoked));
        return;
    }
    Request& request = *found->second;
    worker.offers().erase(found);
    request.type = Request::Type::kSend;
    request.post = post_data;
    const ucs_status_t status = request.endpoint->hand_over(request);
    if (status != UCS_INPROGRESS) {
        finish(request, status);
    }
}

// It does not, or an error ended it there.
void take_verdict(Worker& worker, const Verdict& verdict) {
    const auto found = worker.offers().find(verdict.id);
    if (found == worker.offers().end()) {
        return;
    }
    Request& request = *found->second;
    worker.offers().erase(found);
    request.type = Request::Type::kSend;
    request.status = static_cast<ucs_status_t>(verdict.status);
    if (request.parts == 0) {
        finish(request, request.status);
    }
}

void cancel_offers(Worker& worker, Endpoint& endpoint, ucs_status_t status) {
    std::vector<Request*> ended;
    for (auto next = worker.offers().begin(); next != worker.offers().end();) {
        if (next->second->endpoint == &endpoint) {
            ended.push_back(next->second);
            next = worker.offers().erase(next);
        } else {
            ++next;
        }
    }
    for (Request* request : ended) {
        request->type = Request::Type::kSend;
        request->status = status;
        if (request->parts == 0) {
            finish(*request, status);
        }
    }
}

}  // namespace tagwire::ucp

using namespace tagwire::ucp;

ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void* header, size_t header_length,
                                 const void* buffer, size_t count,
                                 const ucp_request_param_t* param) {
    const Worker::Guard guard(ep->worker());
    return send(*ep, {id, header, header_length, buffer, count},
                call_of(param, Callback::Kind::kSendX));
}

// The old call has no header, and its handlers want all of the data.
ucs_status_ptr_t ucp_am_send_nb(ucp_ep_h ep, uint16_t id, const void* buffer, size_t count,
                                ucp_datatype_t datatype, ucp_send_callback_t callback,
                                unsigned flags) {
    const Worker::Guard guard(ep->worker());
    if ((flags & ~uint32_t{UCP_AM_SEND_FLAG_REPLY}) != 0) {
        return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    }
    Call call;
    call.datatype = datatype;
    call.flags = flags | UCP_AM_SEND_FLAG_EAGER;
    if (callback != nullptr) {
        call.callback.kind = Callback::Kind::kSend;
        call.callback.send = callback;
    }
    return send(*ep, {id, nullptr, 0, buffer, count}, call);
}
