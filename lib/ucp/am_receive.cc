// SPDX-License-Identifier: BSD-3-Clause
// Active messages, the receiver's side.
#include <cerrno>
#include <cstring>

#include "lib/ucp/am.h"
#include "lib/ucp/log.h"
#include "lib/ucp/status.h"

namespace tagwire::ucp {
namespace {

void answer(Block& block, Meta::Kind kind, ucs_status_t status) {
    Meta meta;
    meta.kind = kind;
    const Verdict verdict{block.offer, status};
    block.worker->channel().note(*block.peer, meta, &verdict, sizeof(verdict));
}

struct Delivery {
    const void* header;
    size_t header_length;
    size_t length;
    uint64_t attributes;
};

// What the handler returned. UCS_INPROGRESS: it keeps the data.
ucs_status_t call_handler(Worker& worker, Block& block, const Meta& meta,
                          const Delivery& delivery) {
    const AmHandler* handler = worker.find_am_handler(meta.id);
    if (handler == nullptr || (handler->callback == nullptr && handler->old_callback == nullptr)) {
        log_warning("an active message with the id %u has no handler: dropped", meta.id);
        return UCS_OK;
    }
    ucp_am_recv_param_t param{};
    param.recv_attr = delivery.attributes;
    if ((meta.flags & kWantsReply) != 0) {
        param.reply_ep = static_cast<ucp_ep*>(endpoint_for(worker, *block.peer, meta.destination));
        if (param.reply_ep != nullptr) {
            param.recv_attr |= UCP_AM_RECV_ATTR_FIELD_REPLY_EP;
        }
    }
    block.in_handler = true;
    const ucs_status_t status =
        handler->callback != nullptr
            ? handler->callback(handler->argument,
                                delivery.header_length != 0 ? delivery.header : nullptr,
                                delivery.header_length, block.data(), delivery.length, &param)
            : handler->old_callback(handler->argument, block.data(), delivery.length,
                                    param.reply_ep, UCP_CB_PARAM_FLAG_DATA);
    block.in_handler = false;
    return status;
}

int post_fetch(Request& request) {
    Block& block = *static_cast<Block*>(request.result);
    // Without room for all of it none is taken: each part ends as truncated.
    const bool fits = block.length <= request.payload.length();
    const int error = post_parts(request, block.length, [&](size_t part) {
        iovec pieces[Payload::kPieces];
        tw_msg_tagged message{};
        message.iov = pieces;
        message.iov_count = fits ? request.payload.cut(request.posted, part, pieces) : 0;
        message.addr = request.peer->channel_address;
        message.tag = kDataBit | block.offer;
        message.context = static_cast<Operation*>(&request);
        const int result = tw_trecvmsg(request.worker->channel_endpoint(), &message, TW_COMPLETION);
        if (result == 0) {
            request.worker->fetches().insert(&request);
        }
        return result;
    });
    if (error == 0) {
        answer(block, Meta::Kind::kGrant, UCS_OK);
    }
    return error;
}

// Takes the data of an offer into the request's payload. The block goes with it.
ucs_status_t fetch(Request& request, Block& block) {
    request.result = &block;
    request.peer = block.peer;
    request.post = post_fetch;
    const int error = request.worker->receives_wait() ? -EAGAIN : post_fetch(request);
    if (error == -EAGAIN) {
        request.worker->keep_receive(request);
        return UCS_INPROGRESS;
    }
    return error == 0 ? UCS_INPROGRESS : status_of(error);
}

// An offer that the handler must not see as one: its data comes into memory of ours first. The
// new block looks like that of a short message: data, then header.
bool fetch_whole(Worker& worker, Block& block, const Meta& meta) {
    Block* whole = new_block(worker, block.length + meta.header_length);
    Request* request = new_request(worker, Call{}, Request::Type::kAmReceive);
    if (whole == nullptr || request == nullptr) {
        answer(block, Meta::Kind::kVerdict, UCS_ERR_NO_MEMORY);
        return false;
    }
    whole->use = Block::Use::kMessage;
    whole->peer = block.peer;
    whole->length = block.length;
    std::memcpy(static_cast<char*>(whole->data()) + block.length, block.data(), meta.header_length);
    request->payload.open_receive(whole->data(), block.length, ucp_dt_make_contig(1));
    request->released = true;
    request->tag = meta.encode();
    block.request = request;
    block.taken = true;
    request->operand[0] = reinterpret_cast<uintptr_t>(whole);
    if (const ucs_status_t status = fetch(*request, block); status != UCS_INPROGRESS) {
        answer(block, Meta::Kind::kVerdict, status);
        delete_block(whole);
        drop_request(*request, Call{});
        return false;
    }
    return true;
}

// True: the handler keeps the block.
bool handle_message(Worker& worker, Block& block, const Meta& meta) {
    const Delivery delivery{static_cast<char*>(block.data()) + block.length, meta.header_length,
                            block.length, UCP_AM_RECV_ATTR_FLAG_DATA};
    block.taken = false;
    return call_handler(worker, block, meta, delivery) == UCS_INPROGRESS && !block.taken;
}

}  // namespace

bool channel_message(Worker& worker, Block& block, const Meta& meta, size_t length) {
    Verdict verdict{};
    if (length == sizeof(verdict)) {
        std::memcpy(&verdict, block.data(), sizeof(verdict));
    }
    switch (meta.kind) {
        case Meta::Kind::kMessage:
            return take_message(worker, block, meta, length);
        case Meta::Kind::kOffer:
            return take_offer(worker, block, meta, length);
        case Meta::Kind::kGrant:
            take_grant(worker, *block.peer, verdict);
            return false;
        case Meta::Kind::kVerdict:
            take_verdict(worker, verdict);
            return false;
        case Meta::Kind::kRevoke:
            take_revocation(worker, *block.peer, verdict);
            return false;
        case Meta::Kind::kStream: {
            Endpoint* endpoint = endpoint_for(worker, *block.peer, meta.destination);
            return endpoint != nullptr && endpoint->stream_arrived(block, length);
        }
        case Meta::Kind::kHello:
        case Meta::Kind::kAlive:
        case Meta::Kind::kCount:
            break;
    }
    return false;
}

bool take_message(Worker& worker, Block& block, const Meta& meta, size_t length) {
    if (meta.header_length > length) {
        return false;
    }
    // Nobody is left who could reply.
    if ((meta.flags & kWantsReply) != 0 && is_closed(worker, *block.peer, meta.destination)) {
        return false;
    }
    block.use = Block::Use::kMessage;
    block.length = length - meta.header_length;
    return handle_message(worker, block, meta);
}

bool take_offer(Worker& worker, Block& block, const Meta& meta, size_t length) {
    Offer offer;
    if (length != meta.header_length + sizeof(offer)) {
        return false;
    }
    std::memcpy(&offer, static_cast<char*>(block.data()) + meta.header_length, sizeof(offer));
    block.use = Block::Use::kOffer;
    block.offer = offer.id;
    block.length = offer.length;
    block.taken = false;
    block.request = nullptr;
    // As in UCX, a short message still reaches its handler, and a long one does not.
    if (is_closed(worker, *block.peer, meta.destination)) {
        answer(block, Meta::Kind::kVerdict, UCS_ERR_CANCELED);
        return false;
    }
    if ((meta.flags & kWholeOnly) != 0) {
        return fetch_whole(worker, block, meta);
    }
    const Delivery delivery{block.data(), meta.header_length, block.length,
                            UCP_AM_RECV_ATTR_FLAG_RNDV};
    const ucs_status_t status = call_handler(worker, block, meta, delivery);
    if (block.request != nullptr) {
        return true;  // its data is on the way
    }
    if (status == UCS_INPROGRESS && !block.taken) {
        return true;
    }
    answer(block, Meta::Kind::kVerdict, status == UCS_INPROGRESS ? UCS_OK : status);
    return false;
}

namespace {

// Its parts that no data has met end; the last of all ends the request.
void cancel_fetch(Request& request, ucs_status_t status) {
    Worker& worker = *request.worker;
    request.status = status;
    if (request.post != nullptr) {
        worker.forget_receive(request);
        request.post = nullptr;
        request.incomplete = true;
    }
    while (tw_cancel(worker.channel_endpoint(), static_cast<Operation*>(&request)) == 0) {
    }
}

}  // namespace

void take_revocation(Worker& worker, Peer& peer, const Verdict& verdict) {
    for (Request* request : worker.fetches()) {
        if (request->peer == &peer && static_cast<Block*>(request->result)->offer == verdict.id) {
            cancel_fetch(*request, static_cast<ucs_status_t>(verdict.status));
            return;
        }
    }
}

// Data that did not begin to come will not: its sender is gone.
void cancel_fetches(Worker& worker, Peer& peer) {
    for (Request* request : worker.fetches()) {
        if (request->peer == &peer && request->status == UCS_OK) {
            cancel_fetch(*request, UCS_ERR_CONNECTION_RESET);
        }
    }
}

void end_am_receive(Request& request, const Done& done) {
    Worker& worker = *request.worker;
    request.info.length += done.length;
    if (done.error != 0) {
        request.incomplete = true;
        request.status = request.status == UCS_OK ? status_of(done.error) : request.status;
    }
    --request.parts;
    if (request.parts != 0 || request.post != nullptr) {
        return;
    }
    worker.fetches().erase(&request);
    delete_block(static_cast<Block*>(request.result));
    auto* whole = reinterpret_cast<Block*>(request.operand[0]);
    // What came in all the same is not lost because its sender was given up.
    const ucs_status_t status =
        request.incomplete ? request.status : request.payload.deliver(request.info.length);
    const Meta meta = Meta::decode(request.tag);
    finish(request, status);
    if (whole == nullptr) {
        return;
    }
    // The endpoint may have been closed while the data came in.
    const bool wanted = status == UCS_OK && !is_closed(worker, *whole->peer, meta.destination);
    if (!wanted || !handle_message(worker, *whole, meta)) {
        delete_block(whole);
    }
}

}  // namespace tagwire::ucp

using namespace tagwire::ucp;

namespace {

ucs_status_t set_handler(Worker& worker, unsigned id, const AmHandler& handler) {
    if (!worker.context().has(UCP_FEATURE_AM) || id > UINT16_MAX) {
        return UCS_ERR_INVALID_PARAM;
    }
    worker.am_handler(static_cast<uint16_t>(id)) = handler;
    return UCS_OK;
}

}  // namespace

ucs_status_t ucp_worker_set_am_recv_handler(ucp_worker_h worker,
                                            const ucp_am_handler_param_t* param) {
    const Worker::Guard guard(*worker);
    constexpr uint64_t kNeeded = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB;
    if ((param->field_mask & kNeeded) != kNeeded) {
        return UCS_ERR_INVALID_PARAM;
    }
    AmHandler handler;
    handler.callback = param->cb;
    if ((param->field_mask & UCP_AM_HANDLER_PARAM_FIELD_ARG) != 0) {
        handler.argument = param->arg;
    }
    if ((param->field_mask & UCP_AM_HANDLER_PARAM_FIELD_FLAGS) != 0) {
        handler.flags = param->flags;
    }
    if ((handler.flags & ~uint32_t{UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA}) != 0) {
        return UCS_ERR_INVALID_PARAM;
    }
    return set_handler(*worker, param->id, handler);
}

ucs_status_t ucp_worker_set_am_handler(ucp_worker_h worker, uint16_t id, ucp_am_callback_t callback,
                                       void* argument, uint32_t flags) {
    const Worker::Guard guard(*worker);
    AmHandler handler;
    handler.old_callback = callback;
    handler.argument = argument;
    handler.flags = flags;
    return set_handler(*worker, id, handler);
}

ucs_status_ptr_t ucp_am_recv_data_nbx(ucp_worker_h worker, void* data, void* buffer, size_t count,
                                      const ucp_request_param_t* param) {
    const Worker::Guard guard(*worker);
    Block& block = Block::of(data);
    const Call call = call_of(param, Callback::Kind::kAmX);
    if (!worker->context().has(UCP_FEATURE_AM) || block.taken) {
        return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    }
    Request* request = new_request(*worker, call, Request::Type::kAmReceive);
    if (request == nullptr) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    ucs_status_t status = request->payload.open_receive(buffer, count, call.datatype);
    if (status != UCS_OK) {
        drop_request(*request, call);
        return UCS_STATUS_PTR(status);
    }
    if (block.use == Block::Use::kOffer) {
        block.request = request;
        block.taken = true;
        status = fetch(*request, block);
        if (status != UCS_INPROGRESS) {
            block.request = nullptr;
            block.taken = false;
            drop_request(*request, call);
            return UCS_STATUS_PTR(status);
        }
        return request->user();
    }
    const bool fits = block.length <= request->payload.length();
    status = fits ? request->payload.place(0, data, block.length) : UCS_ERR_MESSAGE_TRUNCATED;
    request->info.length = fits ? block.length : 0;
    if (call.info != nullptr) {
        *static_cast<size_t*>(call.info) = request->info.length;
    }
    if (block.in_handler) {
        block.taken = true;
    } else {
        delete_block(&block);
    }
    return end_at_once(*request, call, status);
}

void ucp_am_data_release(ucp_worker_h worker, void* data) {
    const Worker::Guard guard(*worker);
    Block& block = Block::of(data);
    if (block.in_handler) {
        block.taken = true;
        return;
    }
    if (block.use == Block::Use::kOffer) {
        answer(block, Meta::Kind::kVerdict, UCS_OK);
    }
    delete_block(&block);
}
