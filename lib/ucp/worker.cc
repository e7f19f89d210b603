// SPDX-License-Identifier: BSD-3-Clause
#include "lib/ucp/worker.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "lib/ucp/am.h"
#include "lib/ucp/fabric.h"
#include "lib/ucp/keeper.h"
#include "lib/ucp/log.h"
#include "lib/ucp/memory.h"
#include "lib/ucp/sockets.h"
#include "lib/ucp/status.h"

namespace tagwire::ucp {
namespace {

constexpr uint32_t kMinPeers = 1024;
constexpr auto kShutdownLimit = std::chrono::seconds(2);

uint64_t random_bits() {
    static thread_local std::random_device device;
    return uint64_t{device()} << 32 | device();
}

}  // namespace

Worker::Worker(Context& context, const ucp_worker_params_t& params)
    : context_(context), requests_(context), channel_(*this) {
    const auto given = [&](uint64_t field) { return (params.field_mask & field) != 0; };
    if (given(UCP_WORKER_PARAM_FIELD_THREAD_MODE)) {
        thread_mode_ = params.thread_mode;
    }
    if (given(UCP_WORKER_PARAM_FIELD_FLAGS)) {
        flags_ = params.flags;
    }
    if (given(UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT)) {
        alignment_ = std::max(alignment_, params.am_alignment);
    }
    if (given(UCP_WORKER_PARAM_FIELD_CLIENT_ID)) {
        client_id_ = params.client_id;
    }
    if (given(UCP_WORKER_PARAM_FIELD_USER_DATA)) {
        user_data_ = params.user_data;
    }
    if (given(UCP_WORKER_PARAM_FIELD_EVENT_FD)) {
        user_event_fd_ = params.event_fd;
    }
    if (given(UCP_WORKER_PARAM_FIELD_NAME)) {
        name_ = params.name;
    }
}

ucs_status_t Worker::open() {
    address_.uid = random_bits();
    if (name_.empty()) {
        char text[32];
        std::snprintf(text, sizeof(text), "%d:%04x", getpid(),
                      static_cast<unsigned>(address_.uid & 0xffff));
        name_ = text;
    }
    if (const ucs_status_t status = open_core(); status != UCS_OK) {
        return status;
    }
    if (const ucs_status_t status = channel_.open(); status != UCS_OK) {
        return status;
    }
    const std::lock_guard<std::mutex> lock(context_.mutex);
    if (const int error = open_regions(*this); error != 0) {
        log_error("ucp_worker_create: %s", tw_last_error());
        return status_of(error);
    }
    context_.workers.push_back(this);
    if (fabric().in_real_time()) {
        Keeper::instance().add(*this);
    }
    return UCS_OK;
}

ucs_status_t Worker::open_core() {
    tw_worker_attr attr;
    tw_worker_attr_init(&attr);
    attr.max_peers = std::max(
        kMinPeers,
        static_cast<uint32_t>(4 * std::min<size_t>(context_.expected_endpoints, 1u << 20)));
    if (const int error = fabric().open_worker(attr, &core_, &address_.address); error != 0) {
        return status_of(error);
    }
    const tw_cq_attr queue{sizeof(tw_cq_attr), 0};
    int error = tw_av_open(core_, &addresses_);
    if (error == 0) {
        error = tw_cq_open(core_, &queue, &queue_);
    }
    if (error == 0) {
        tag_endpoint_ = open_endpoint(&address_.tag_endpoint);
        channel_endpoint_ = open_endpoint(&address_.channel_endpoint);
        error = tag_endpoint_ == nullptr || channel_endpoint_ == nullptr ? -ENOMEM : 0;
    }
    if (error != 0) {
        log_error("ucp_worker_create: %s", tw_last_error());
    }
    return status_of(error);
}

// Sends without a request want to hear of errors alone.
tw_ep* Worker::open_endpoint(uint16_t* number) {
    tw_ep* endpoint = nullptr;
    tw_ep_attr attr{};
    attr.size = sizeof(attr);
    attr.endpoint = TW_EP_ANY;
    if (tw_ep_open(core_, &attr, &endpoint) != 0) {
        return nullptr;
    }
    tw_address name{};
    // A truncated receive leaves its buffer untouched, as in UCX.
    constexpr size_t kWhole = 1;
    if (tw_ep_bind_av(endpoint, addresses_) != 0 ||
        tw_ep_bind_cq(endpoint, queue_, TW_SEND | TW_SELECTIVE_COMPLETION) != 0 ||
        tw_ep_bind_cq(endpoint, queue_, TW_RECV) != 0 || tw_ep_enable(endpoint) != 0 ||
        tw_ep_setopt(endpoint, TW_OPT_WHOLE_MESSAGES, &kWhole, sizeof(kWhole)) != 0 ||
        tw_ep_name(endpoint, &name) != 0) {
        tw_ep_close(endpoint);
        return nullptr;
    }
    *number = name.endpoint;
    return endpoint;
}

Worker::~Worker() {
    Keeper::instance().remove(*this);
    {
        const std::lock_guard<std::mutex> lock(context_.mutex);
        std::erase(context_.workers, this);
        close_regions(*this);
    }
    close_core();
    sockets_.reset();
    while (!endpoints_.empty()) {
        delete static_cast<ucp_ep*>(endpoints_.begin()->second);
    }
    if (const size_t leaked = requests_.unreleased();
        leaked != 0 && (flags_ & UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK) == 0) {
        log_warning("worker %s is destroyed with %zu requests that were not released",
                    name_.c_str(), leaked);
    }
    for (const int fd : {event_fd_, signal_fd_}) {
        if (fd >= 0) {
            close(fd);
        }
    }
}

// What was sent is delivered first, as far as peers still listen.
void Worker::close_core() {
    if (core_ == nullptr) {
        return;
    }
    const auto limit = std::chrono::steady_clock::now() + kShutdownLimit;
    const bool endpoints_open = tag_endpoint_ != nullptr && channel_endpoint_ != nullptr;
    while (tw_worker_shutdown(core_) == -EAGAIN && std::chrono::steady_clock::now() < limit) {
        tw_progress(core_);
    }
    for (const auto& [uid, peer] : peers_) {
        if (endpoints_open) {
            tw_ep_reset_peer(tag_endpoint_, peer->tag_address);
            tw_ep_reset_peer(channel_endpoint_, peer->channel_address);
        }
    }
    for (tw_ep* endpoint : {tag_endpoint_, channel_endpoint_}) {
        while (endpoint != nullptr && tw_ep_close(endpoint) == -EBUSY &&
               std::chrono::steady_clock::now() < limit + kShutdownLimit) {
            tw_progress(core_);
        }
    }
    if (queue_ != nullptr) {
        tw_cq_close(queue_);
    }
    if (addresses_ != nullptr) {
        tw_av_close(addresses_);
    }
    fabric().close_worker(core_);
}

Peer* Worker::peer(const WorkerAddress& address, ucs_status_t* status) {
    std::unique_ptr<Peer>& slot = peers_[address.uid];
    if (slot == nullptr) {
        auto peer = std::make_unique<Peer>();
        peer->worker = this;
        peer->address = address;
        const tw_address tag = address.of_endpoint(address.tag_endpoint);
        const tw_address channel = address.of_endpoint(address.channel_endpoint);
        int error = tw_av_insert(addresses_, &tag, &peer->tag_address);
        if (error == 0) {
            error = tw_av_insert(addresses_, &channel, &peer->channel_address);
        }
        if (error != 0) {
            peers_.erase(address.uid);
            *status = status_of(error);
            return nullptr;
        }
        Channel::reset(*peer);
        slot = std::move(peer);
    }
    return slot.get();
}

void Worker::peer_failed(Peer& peer, ucs_status_t status) {
    Channel::reset(peer);
    cancel_fetches(*this, peer);
    for (const auto& [number, endpoint] : endpoints_) {
        if (endpoint->peer() == &peer) {
            endpoint->fail(status);
        }
    }
}

void Worker::ask_peers() {
    Meta meta;
    meta.kind = Meta::Kind::kAlive;
    for (const auto& [uid, peer] : peers_) {
        const bool wanted =
            std::any_of(endpoints_.begin(), endpoints_.end(), [&](const auto& entry) {
                const Endpoint& endpoint = *entry.second;
                return endpoint.peer() == peer.get() && endpoint.has_peer_errors() &&
                       endpoint.failure() == UCS_OK && !endpoint.closing();
            });
        if (wanted) {
            channel_.note(*peer, meta, nullptr, 0);
        }
    }
}

bool Worker::has_others(const Peer& peer) const {
    return std::any_of(endpoints_.begin(), endpoints_.end(), [&](const auto& entry) {
        const Endpoint& endpoint = *entry.second;
        return endpoint.peer() == &peer && !endpoint.closing() && !endpoint.is_internal() &&
               endpoint.failure() == UCS_OK;
    });
}

void Worker::abandon(Peer& peer) {
    Channel::reset(peer);
    cancel_fetches(*this, peer);
    tw_ep_reset_peer(tag_endpoint_, peer.tag_address);
    tw_ep_reset_peer(channel_endpoint_, peer.channel_address);
}

uint32_t Worker::add(Endpoint& endpoint) {
    endpoints_[++last_endpoint_] = &endpoint;
    return last_endpoint_;
}

void Worker::remove(Endpoint& endpoint) {
    endpoints_.erase(endpoint.number());
    std::erase(pending_, &endpoint);
    std::erase(failed_, &endpoint);
    std::erase(readable_, &endpoint);
}

Endpoint* Worker::endpoint(uint32_t number) const {
    const auto found = endpoints_.find(number);
    return found == endpoints_.end() ? nullptr : found->second;
}

AmHandler& Worker::am_handler(uint16_t id) {
    if (id >= am_handlers_.size()) {
        am_handlers_.resize(size_t{id} + 1);
    }
    return am_handlers_[id];
}

bool Worker::forget_receive(Request& request) {
    const auto found = std::find(receives_.begin(), receives_.end(), &request);
    if (found == receives_.end()) {
        return false;
    }
    receives_.erase(found);
    return true;
}

Sockets* Worker::sockets() {
    if (sockets_ == nullptr) {
        sockets_ = std::make_unique<Sockets>(*this);
    }
    return sockets_.get();
}

void Worker::print(FILE* stream) const {
    char text[64];
    tw_address_format(&address_.address, text, sizeof(text));
    std::fprintf(stream, "#\n# UCP worker '%s'\n#\n#                 address: %s (%zu bytes)\n",
                 name_.c_str(), text, WorkerAddress::kSize);
    std::fprintf(stream, "#                  device: tagwire/%s\n", fabric().device_name().c_str());
    std::fprintf(stream, "#               endpoints: %zu\n#        requests in use: %zu\n",
                 endpoints_.size(), requests_.in_use());
    int count = tw_worker_stats(core_, nullptr, 0);
    std::vector<tw_stat> stats(static_cast<size_t>(count));
    count = tw_worker_stats(core_, stats.data(), count);
    for (const tw_stat& stat : stats) {
        if (stat.value != 0) {
            std::fprintf(stream, "# %22s: %llu\n", stat.name,
                         static_cast<unsigned long long>(stat.value));
        }
    }
    std::fprintf(stream, "#\n");
}

}  // namespace tagwire::ucp

using namespace tagwire::ucp;

ucs_status_t ucp_worker_create(ucp_context_h context, const ucp_worker_params_t* params,
                               ucp_worker_h* worker_p) {
    if (context == nullptr || params == nullptr || worker_p == nullptr) {
        return UCS_ERR_INVALID_PARAM;
    }
    if ((params->field_mask & UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT) != 0 &&
        (params->am_alignment == 0 || (params->am_alignment & (params->am_alignment - 1)) != 0)) {
        return UCS_ERR_INVALID_PARAM;
    }
    auto worker = std::make_unique<ucp_worker>(*context, *params);
    if (const ucs_status_t status = worker->open(); status != UCS_OK) {
        return status;
    }
    *worker_p = worker.release();
    return UCS_OK;
}

void ucp_worker_destroy(ucp_worker_h worker) {
    delete worker;
}

unsigned ucp_worker_progress(ucp_worker_h worker) {
    const Worker::Guard guard(*worker);
    return worker->progress();
}

ucs_status_t ucp_worker_get_address(ucp_worker_h worker, ucp_address_t** address, size_t* length) {
    auto* bytes = static_cast<uint8_t*>(std::malloc(WorkerAddress::kSize));
    if (bytes == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    worker->address().encode(bytes);
    *address = reinterpret_cast<ucp_address_t*>(bytes);
    *length = WorkerAddress::kSize;
    return UCS_OK;
}

void ucp_worker_release_address(ucp_worker_h /* worker */, ucp_address_t* address) {
    std::free(address);
}

ucs_status_t ucp_worker_address_query(ucp_address_t* address, ucp_worker_address_attr_t* attr) {
    WorkerAddress decoded;
    if (!decoded.decode(address)) {
        return UCS_ERR_INVALID_ADDR;
    }
    if ((attr->field_mask & UCP_WORKER_ADDRESS_ATTR_FIELD_UID) != 0) {
        attr->worker_uid = decoded.uid;
    }
    return UCS_OK;
}

ucs_status_t ucp_worker_query(ucp_worker_h worker, ucp_worker_attr_t* attr) {
    const auto wanted = [&](uint64_t field) { return (attr->field_mask & field) != 0; };
    if (wanted(UCP_WORKER_ATTR_FIELD_THREAD_MODE)) {
        attr->thread_mode = worker->thread_mode();
    }
    if (wanted(UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER)) {
        attr->max_am_header = kMaxHeader;
    }
    if (wanted(UCP_WORKER_ATTR_FIELD_NAME)) {
        std::snprintf(attr->name, sizeof(attr->name), "%s", worker->name().c_str());
    }
    if (wanted(UCP_WORKER_ATTR_FIELD_MAX_INFO_STRING)) {
        attr->max_debug_string = 128;
    }
    if (wanted(UCP_WORKER_ATTR_FIELD_ADDRESS)) {
        return ucp_worker_get_address(worker, &attr->address, &attr->address_length);
    }
    return UCS_OK;
}

void ucp_worker_print_info(ucp_worker_h worker, FILE* stream) {
    const Worker::Guard guard(*worker);
    worker->print(stream);
}
