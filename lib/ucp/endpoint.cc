// SPDX-License-Identifier: BSD-3-Clause
#include "lib/ucp/endpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "lib/ucp/am.h"
#include "lib/ucp/log.h"
#include "lib/ucp/sockets.h"
#include "lib/ucp/status.h"
#include "lib/ucp/worker.h"

namespace tagwire::ucp {
namespace {

constexpr uint32_t kByNumber = 1u << 24;  // Meta::destination: a number there, no sequence

}  // namespace

Endpoint::Endpoint(Worker& worker) : worker_(worker), number_(worker.add(*this)) {
    epochs_.push_back({{Operation::Kind::kEpoch}, this, 0, 0});
}

Endpoint::~Endpoint() {
    detach();
    worker_.remove(*this);
}

void Endpoint::detach() {
    if (by_address_ && peer_ != nullptr) {
        const auto found = peer_->endpoints.find(sequence_);
        if (found != peer_->endpoints.end() && found->second == this) {
            peer_->endpoints.erase(found);
        }
    }
    if (connection_ != nullptr) {
        worker_.sockets()->close(*connection_);
        connection_ = nullptr;
    }
    for (StreamChunk& chunk : chunks_) {
        if (chunk.block != nullptr) {
            delete_block(chunk.block);
        }
    }
    chunks_.clear();
}

void Endpoint::connect_by_address(Peer& peer, uint32_t sequence) {
    peer_ = &peer;
    by_address_ = true;
    sequence_ = sequence;
    destination_ = sequence & (kByNumber - 1);
    peer.endpoints[sequence] = this;
}

void Endpoint::connect_by_number(Peer& peer, uint32_t number) {
    peer_ = &peer;
    destination_ = kByNumber | (number & (kByNumber - 1));
    if (pending_ != nullptr && !queued_) {
        queued_ = true;
        worker_.has_pending(*this);
    }
}

bool is_closed(Worker& worker, Peer& peer, uint32_t destination) {
    if ((destination & kByNumber) != 0) {
        return worker.endpoint(destination & (kByNumber - 1)) == nullptr;
    }
    return destination < peer.next_endpoint && !peer.endpoints.contains(destination);
}

Endpoint* endpoint_for(Worker& worker, Peer& peer, uint32_t destination) {
    if (is_closed(worker, peer, destination)) {
        return nullptr;
    }
    if ((destination & kByNumber) != 0) {
        return worker.endpoint(destination & (kByNumber - 1));
    }
    const auto found = peer.endpoints.find(destination);
    if (found != peer.endpoints.end()) {
        return found->second;
    }
    auto* endpoint = new (std::nothrow) ucp_ep(worker);
    if (endpoint != nullptr) {
        endpoint->set_internal(true);
        endpoint->connect_by_address(peer, destination);
    }
    return endpoint;
}

void Endpoint::take_params(const ucp_ep_params_t& params) {
    const auto given = [&](uint64_t field) { return (params.field_mask & field) != 0; };
    if (given(UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE)) {
        error_mode_ = params.err_mode;
    }
    if (given(UCP_EP_PARAM_FIELD_ERR_HANDLER)) {
        error_handler_ = params.err_handler;
        user_data_ = params.err_handler.arg;
    }
    if (given(UCP_EP_PARAM_FIELD_USER_DATA)) {
        user_data_ = params.user_data;  // wins over the handler's argument, as in UCX
        error_handler_.arg = params.user_data;
    }
    if (given(UCP_EP_PARAM_FIELD_NAME)) {
        name_ = params.name;
    } else if (name_.empty()) {
        char text[32];
        std::snprintf(text, sizeof(text), "ep_%u", number_);
        name_ = text;
    }
}

void Endpoint::operation_began(Request& request) {
    request.endpoint = this;
    request.epoch = &epochs_.back();
    ++request.epoch->outstanding;
    ++requests_;
}

void Endpoint::operation_ended(Request& request) {
    --requests_;
    --request.epoch->outstanding;
    request.epoch = nullptr;
    drop_epochs();
}

void Endpoint::short_send_ended(Epoch& epoch) {
    --epoch.outstanding;
    drop_epochs();
}

void Endpoint::drop_epochs() {
    while (epochs_.size() > 1 && epochs_.front().outstanding == 0) {
        epochs_.pop_front();
    }
}

uint64_t Endpoint::begin_flush() {
    const uint64_t number = epochs_.back().number;
    epochs_.push_back({{Operation::Kind::kEpoch}, this, number + 1, 0});
    drop_epochs();
    return number;
}

ucs_status_t Endpoint::submit(Request& request) {
    if (failure_ != UCS_OK) [[unlikely]] {
        return failure_;
    }
    operation_began(request);
    return hand_over(request);
}

ucs_status_t Endpoint::hand_over(Request& request) {
    if (pending_ == nullptr && peer_ != nullptr) [[likely]] {
        const int result = request.post(request);
        if (result >= 0) {
            return result > 0 ? UCS_OK : UCS_INPROGRESS;
        }
        if (result != -EAGAIN) {
            if (request.parts == 0) {
                return status_of(result);
            }
            request.status = status_of(result);
            request.post = nullptr;
            return UCS_INPROGRESS;
        }
    }
    request.next = nullptr;
    if (pending_ == nullptr) {
        pending_ = &request;
    } else {
        pending_last_->next = &request;
    }
    pending_last_ = &request;
    if (peer_ != nullptr && !queued_) {
        queued_ = true;
        worker_.has_pending(*this);
    }
    return UCS_INPROGRESS;
}

bool Endpoint::retry() {
    while (pending_ != nullptr) {
        Request& request = *pending_;
        const int result = request.post(request);
        if (result == -EAGAIN) {
            return false;
        }
        pending_ = request.next;
        if (result > 0) {
            finish(request, UCS_OK);
        } else if (result < 0 && request.parts == 0) {
            finish(request, status_of(result));
        } else if (result < 0) {
            request.status = status_of(result);
            request.post = nullptr;
        }
    }
    queued_ = false;
    return true;
}

void Endpoint::cancel_pending(ucs_status_t status) {
    Request* next = std::exchange(pending_, nullptr);
    while (next != nullptr) {
        Request& request = *next;
        next = request.next;
        if (request.parts != 0) {
            request.status = status;
            request.post = nullptr;
        } else {
            finish(request, status);
        }
    }
    cancel_offers(worker_, *this, status);
    fail_receives(status);
}

void Endpoint::fail(ucs_status_t status) {
    if (failure_ != UCS_OK) {
        return;
    }
    failure_ = status;
    cancel_pending(status);
    worker_.has_failed(*this);
}

void Endpoint::report_failure() {
    if (reported_ || closing_ || internal_) {
        return;
    }
    reported_ = true;
    if (error_handler_.cb != nullptr && has_peer_errors()) {
        error_handler_.cb(error_handler_.arg, static_cast<ucp_ep*>(this), failure_);
    }
}

}  // namespace tagwire::ucp

using namespace tagwire::ucp;

namespace {

// The first endpoint that peers may have made already.
ucs_status_t create_by_address(Worker& worker, const ucp_ep_params_t& params, ucp_ep_h* ep) {
    WorkerAddress address;
    if (params.address == nullptr || !address.decode(params.address)) {
        return UCS_ERR_INVALID_ADDR;
    }
    ucs_status_t status = UCS_OK;
    Peer* peer = worker.peer(address, &status);
    if (peer == nullptr) {
        return status;
    }
    const uint32_t sequence = peer->next_endpoint++;
    const auto found = peer->endpoints.find(sequence);
    ucp_ep* made = found != peer->endpoints.end() ? static_cast<ucp_ep*>(found->second) : nullptr;
    if (made == nullptr) {
        made = new (std::nothrow) ucp_ep(worker);
        if (made == nullptr) {
            return UCS_ERR_NO_MEMORY;
        }
        made->connect_by_address(*peer, sequence);
    }
    made->set_internal(false);
    made->take_params(params);
    if (made->failure() != UCS_OK) {
        worker.has_failed(*made);
    }
    *ep = made;
    return UCS_OK;
}

}  // namespace

ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t* params, ucp_ep_h* ep) {
    const Worker::Guard guard(*worker);
    const auto given = [&](uint64_t field) { return (params->field_mask & field) != 0; };
    if (given(UCP_EP_PARAM_FIELD_CONN_REQUEST)) {
        return worker->sockets()->accept(params->conn_request, *params, ep);
    }
    if (given(UCP_EP_PARAM_FIELD_FLAGS) &&
        (params->flags & UCP_EP_PARAMS_FLAGS_CLIENT_SERVER) != 0) {
        return worker->sockets()->connect(*params, ep);
    }
    if (!given(UCP_EP_PARAM_FIELD_REMOTE_ADDRESS)) {
        return UCS_ERR_INVALID_PARAM;
    }
    return create_by_address(*worker, *params, ep);
}

// Of what made the endpoint, only what concerns this side can change (U11).
ucs_status_ptr_t ucp_ep_modify_nb(ucp_ep_h ep, const ucp_ep_params_t* params) {
    const Worker::Guard guard(ep->worker());
    constexpr uint64_t kFixed = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                                UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                UCP_EP_PARAM_FIELD_CONN_REQUEST |
                                UCP_EP_PARAM_FIELD_LOCAL_SOCK_ADDR;
    if ((params->field_mask & kFixed) != 0) {
        return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    }
    ep->take_params(*params);
    return nullptr;
}

ucs_status_t ucp_ep_query(ucp_ep_h ep, ucp_ep_attr_t* attr) {
    const Worker::Guard guard(ep->worker());
    if ((attr->field_mask & UCP_EP_ATTR_FIELD_NAME) != 0) {
        std::snprintf(attr->name, sizeof(attr->name), "%s", ep->name().c_str());
    }
    query_newer(*ep, attr);
    constexpr uint64_t kAddresses =
        UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR | UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR;
    if ((attr->field_mask & kAddresses) == 0) {
        return UCS_OK;
    }
    if (ep->connection() == nullptr) {
        return UCS_ERR_NOT_CONNECTED;
    }
    return connection_addresses(*ep->connection(), &attr->local_sockaddr, &attr->remote_sockaddr);
}

void ucp_ep_print_info(ucp_ep_h ep, FILE* stream) {
    const Worker::Guard guard(ep->worker());
    char text[64] = "not connected yet";
    if (ep->peer() != nullptr) {
        tw_address_format(&ep->peer()->address.address, text, sizeof(text));
    }
    std::fprintf(stream,
                 "#\n# UCP endpoint %s\n#\n#               peer: %s\n"
                 "#               lane[0]:  0:tagwire md[0]  -> md[0] tag rma am amo stream\n#\n",
                 ep->name().c_str(), text);
}

ucs_status_t ucp_ep_evaluate_perf(ucp_ep_h /* ep */, const ucp_ep_evaluate_perf_param_t* param,
                                  ucp_ep_evaluate_perf_attr_t* attr) {
    // One way, of a 10 Gbit/s link: what an estimate needs is the shape.
    constexpr double kLatency = 3e-6;
    constexpr double kBandwidth = 1.2e9;
    if ((attr->field_mask & UCP_EP_PERF_ATTR_FIELD_ESTIMATED_TIME) != 0) {
        const bool sized = (param->field_mask & UCP_EP_PERF_PARAM_FIELD_MESSAGE_SIZE) != 0;
        attr->estimated_time =
            kLatency + (sized ? static_cast<double>(param->message_size) / kBandwidth : 0);
    }
    return UCS_OK;
}
