// SPDX-License-Identifier: BSD-3-Clause
// Sleeping: a descriptor that becomes readable when the worker has something to do.
//
// It is an epoll set: the core's descriptor, the sockets of listeners and connections, and an
// event counter, which is written by ucp_worker_signal, and by the keeper when its turn in place of
// the sleeping program found something.
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "lib/ucp/keeper.h"
#include "lib/ucp/sockets.h"
#include "lib/ucp/worker.h"

namespace tagwire::ucp {
namespace {

bool watch(int set, int fd, uint32_t events, void* data) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = data;
    return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

ucs_status_t Worker::wait_fd(int* fd) {
    if (!context_.has(UCP_FEATURE_WAKEUP)) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (event_fd_ < 0) {
        event_fd_ = epoll_create1(EPOLL_CLOEXEC);
        signal_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (event_fd_ < 0 || signal_fd_ < 0 || !watch(event_fd_, signal_fd_, EPOLLIN, nullptr) ||
            !watch(event_fd_, sockets()->fd(), EPOLLIN, nullptr)) {
            return UCS_ERR_IO_ERROR;
        }
        // Without the core's own (a port that cannot wake anybody) the keeper has to look.
        int core_fd = -1;
        if (tw_worker_wait_fd(core_, &core_fd) == 0) {
            core_wakes_ = watch(event_fd_, core_fd, EPOLLIN, nullptr);
        }
        if (user_event_fd_ >= 0 &&
            !watch(user_event_fd_, event_fd_, EPOLLIN | EPOLLET, user_data_)) {
            return UCS_ERR_IO_ERROR;
        }
    }
    *fd = event_fd_;
    return UCS_OK;
}

void Worker::notify() {
    const uint64_t one = 1;
    while (signal_fd_ >= 0 && ::write(signal_fd_, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
}

ucs_status_t Worker::arm() {
    int fd;
    if (const ucs_status_t status = wait_fd(&fd); status != UCS_OK) {
        return status;
    }
    // Armed before and woken since, by whatever: the program is to look first.
    pollfd woken{event_fd_, POLLIN, 0};
    const bool was_woken = sleeps_ && ::poll(&woken, 1, 0) > 0;
    sleeps_ = false;
    uint64_t count;
    ssize_t signals;
    do {
        signals = ::read(signal_fd_, &count, sizeof(count));
    } while (signals < 0 && errno == EINTR);
    tw_progress(core_);
    if (signals > 0 || was_woken) {
        return UCS_ERR_BUSY;
    }
    Done done;
    while (read(&done)) {
        deferred_.push_back(done);
    }
    if (!deferred_.empty() || !failed_.empty() || sockets_->ready()) {
        return UCS_ERR_BUSY;
    }
    if (core_wakes_ && tw_worker_arm(core_) != 0) {
        return UCS_ERR_BUSY;
    }
    sleeps_ = true;
    if (!core_wakes_) {
        Keeper::instance().hurry();
    }
    return UCS_OK;
}

}  // namespace tagwire::ucp

using namespace tagwire::ucp;

ucs_status_t ucp_worker_get_efd(ucp_worker_h worker, int* fd) {
    const Worker::Guard guard(*worker);
    return worker->wait_fd(fd);
}

ucs_status_t ucp_worker_arm(ucp_worker_h worker) {
    const Worker::Guard guard(*worker);
    return worker->arm();
}

// From any thread, and from a signal handler: it touches nothing but the descriptor.
ucs_status_t ucp_worker_signal(ucp_worker_h worker) {
    worker->notify();
    return UCS_OK;
}

ucs_status_t ucp_worker_wait(ucp_worker_h worker) {
    int fd;
    if (const ucs_status_t status = ucp_worker_get_efd(worker, &fd); status != UCS_OK) {
        return status;
    }
    const ucs_status_t status = ucp_worker_arm(worker);
    if (status == UCS_ERR_BUSY) {
        return UCS_OK;
    }
    pollfd waited{fd, POLLIN, 0};
    while (status == UCS_OK && poll(&waited, 1, -1) < 0 && errno == EINTR) {
    }
    return status;
}

// Memory changes only in a worker's turn.
void ucp_worker_wait_mem(ucp_worker_h worker, void* /* address */) {
    if (ucp_worker_progress(worker) == 0) {
        sched_yield();
    }
}
