// SPDX-License-Identifier: BSD-3-Clause
// One turn of a worker: the core's turn, then every completion to the request, the channel
// message or the peer that it belongs to, then what could not be done earlier.
#include <algorithm>
#include <cstdlib>

#include "lib/ucp/am.h"
#include "lib/ucp/log.h"
#include "lib/ucp/sockets.h"
#include "lib/ucp/status.h"
#include "lib/ucp/tag.h"
#include "lib/ucp/worker.h"

namespace tagwire::ucp {
namespace {

Done done_of(const tw_cq_entry& entry) {
    return {entry.context, entry.flags, entry.length, entry.data, entry.tag, entry.length, 0};
}

Done done_of(const tw_cq_error& error) {
    Done done = done_of(error.entry);
    done.message_length = error.message_length;
    done.error = error.error;
    return done;
}

}  // namespace

// A callback that calls it gets nothing done: the turn that called the callback goes on.
unsigned Worker::progress() {
    if (in_progress_) [[unlikely]] {
        return 0;
    }
    in_progress_ = true;
    ++turns_;
    short_sends_ = 0;
    sleeps_ = false;
    const int events = tw_progress(core_);
    unsigned count = events > 0 ? static_cast<unsigned>(events) : 0;
    count += dispatch();
    if (!pending_.empty() || !receives_.empty() || channel_.waits()) [[unlikely]] {
        retry();
    }
    if (sockets_ != nullptr) {
        count += sockets_->poll();
    }
    if (!flushes_.empty()) {
        end_flushes();
    }
    if (!failed_.empty()) [[unlikely]] {
        report_failures();
    }
    in_progress_ = false;
    return count;
}

// The core's part of a turn: completions keep their place in its queue.
void Worker::push() {
    short_sends_ = 0;
    tw_progress(core_);
}

// `enough` turns of the program since the last look: it is at work itself.
Worker::Kept Worker::keep_alive(unsigned enough, std::chrono::steady_clock::time_point now) {
    if (!lock_.try_lock()) {
        return {false, sleeps_ && !core_wakes_};
    }
    if (now - asked_ > context_.keepalive_interval) {
        asked_ = now;
        ask_peers();
    }
    const bool idle = turns_ - turns_seen_ < enough;
    turns_seen_ = turns_;
    const bool found = idle && tw_progress(core_) > 0;
    if (found) {
        tw_progress(core_);  // sends what the first one answered
    }
    const Kept kept{found, sleeps_ && !core_wakes_};
    if (found && sleeps_) {
        notify();
    }
    lock_.unlock();
    return kept;
}

// Taken from the core's queue several at a time.
bool Worker::read(Done* done) {
    if (next_read_ == read_) [[unlikely]] {
        const ssize_t count = tw_cq_read(queue_, entries_.data(), entries_.size());
        if (count <= 0) [[likely]] {
            return read_error(done, count);
        }
        next_read_ = 0;
        read_ = static_cast<unsigned>(count);
    }
    *done = done_of(entries_[next_read_++]);
    return true;
}

bool Worker::read_error(Done* done, ssize_t count) {
    tw_cq_error error;
    if (count != -TW_EAVAIL || tw_cq_readerr(queue_, &error) != 1) {
        return false;
    }
    *done = done_of(error);
    return true;
}

unsigned Worker::dispatch() {
    unsigned count = 0;
    Done done;
    while (!deferred_.empty())
        [[unlikely]] {
            done = deferred_.front();
            deferred_.pop_front();
            end_operation(done);
            ++count;
        }
    while (read(&done)) {
        end_operation(done);
        ++count;
    }
    return count;
}

bool Worker::collect(const void* context, Done* done) {
    Done next;
    while (read(&next)) {
        if (next.context == context) {
            *done = next;
            return true;
        }
        deferred_.push_back(next);
    }
    return false;
}

void Worker::end_operation(const Done& done) {
    auto* operation = static_cast<Operation*>(done.context);
    if (operation == nullptr) [[unlikely]] {
        return;
    }
    switch (operation->kind) {
        case Operation::Kind::kRequest:
            end_request(*static_cast<Request*>(operation), done);
            break;
        case Operation::Kind::kBlock:
            channel_.arrived(*static_cast<Block*>(operation), done);
            break;
        case Operation::Kind::kPeer:
            peer_failed(*static_cast<Peer*>(operation), status_of(done.error));
            break;
        case Operation::Kind::kEpoch:
            end_short_send(*static_cast<Epoch*>(operation), done);
            break;
        case Operation::Kind::kClaimed:
            end_claimed(*operation, done);
            break;
    }
}

void Worker::end_short_send(Epoch& epoch, const Done& done) {
    Endpoint& endpoint = *epoch.endpoint;
    if (done.error == 0) [[likely]] {
        endpoint.peer()->reached = true;
    } else {
        const ucs_status_t status = status_of(done.error);
        if (is_peer_failure(status)) {
            peer_failed(*endpoint.peer(), status);
        } else {
            endpoint.note_error(status);
        }
    }
    endpoint.short_send_ended(epoch);
}

void Worker::end_request(Request& request, const Done& done) {
    const ucs_status_t status = status_of(done.error);
    Peer* const peer = request.endpoint != nullptr ? request.endpoint->peer() : nullptr;
    switch (request.type) {
        case Request::Type::kTagReceive:
            end_tag_receive(request, done);
            return;
        case Request::Type::kAmReceive:
            end_am_receive(request, done);
            return;
        default:
            break;
    }
    if (peer != nullptr && status == UCS_OK) {
        peer->reached = true;
    }
    if (request.status == UCS_OK) {
        const bool forced = request.endpoint != nullptr && request.endpoint->is_forced();
        request.status = forced ? UCS_ERR_CANCELED : status;
    }
    --request.parts;
    if (request.parts == 0 && request.post == nullptr && request.type != Request::Type::kAmOffer) {
        finish(request, request.status);
    }
    if (peer != nullptr && is_peer_failure(status)) [[unlikely]] {
        peer_failed(*peer, status);
    }
}

void Worker::retry() {
    while (!receives_.empty() && receives_.front()->post(*receives_.front()) == 0) {
        receives_.pop_front();
    }
    channel_.retry();
    std::vector<Endpoint*> waiting;
    waiting.swap(pending_);
    for (Endpoint* endpoint : waiting) {
        if (!endpoint->retry()) {
            pending_.push_back(endpoint);
        }
    }
}

ucs_status_t Worker::wait(ucs_status_ptr_t request) {
    if (!UCS_PTR_IS_PTR(request)) {
        return UCS_PTR_RAW_STATUS(request);
    }
    ucs_status_t status;
    {
        const Guard guard(*this);
        if (in_progress_) {
            log_error("a blocking call inside a callback cannot make progress");
            ucp_request_free(request);
            return UCS_ERR_NO_PROGRESS;
        }
    }
    do {
        const Guard guard(*this);
        progress();
        status = ucp_request_check_status(request);
    } while (status == UCS_INPROGRESS);
    ucp_request_free(request);
    return status;
}

void Worker::report_failures() {
    std::vector<Endpoint*> failed;
    failed.swap(failed_);
    for (size_t i = 0; i < failed.size(); ++i) {
        // A handler may have destroyed the next one.
        if (std::any_of(endpoints_.begin(), endpoints_.end(),
                        [&](const auto& entry) { return entry.second == failed[i]; })) {
            failed[i]->report_failure();
        }
    }
}

}  // namespace tagwire::ucp
