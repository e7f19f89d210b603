// SPDX-License-Identifier: BSD-3-Clause
// Where messages of kinds that are not matched go: to the layer that speaks them.
// Such a layer sends with Worker::transport(), and gets here what comes back.
#pragma once

#include <memory>

#include "lib/transport/transport.h"
#include "tagwire/worker.h"

namespace tagwire {

class Endpoint;
class Worker;

class KindHandler {
  public:
    virtual ~KindHandler() = default;

    // A message of the kind arrived for an open endpoint: accept, keep, discard or refuse it.
    virtual void arrived(Endpoint& endpoint, transport::IncomingMessage& message) noexcept = 0;
    // It was kept, and its sender died before it was complete: it is gone.
    virtual void lost(transport::IncomingMessage& message, int status) noexcept = 0;
    virtual void receive_done(transport::ReceiveOperation& operation,
                              const transport::IncomingMessage& message, int status) noexcept = 0;
    virtual void send_done(transport::SendOperation& operation, int status) noexcept = 0;
    // The endpoint closes: what was kept for it is to be discarded.
    virtual void closing(Endpoint&) noexcept {}
    // In each turn from Worker::set_stalled() on.
    virtual void resume() noexcept {}
    // There is room now.
    virtual bool can_resume() const noexcept { return false; }
    // Named counters, as tw_worker_stats(): returns how many there are.
    virtual int stats(tw_stat*, int) const { return 0; }
};

// lib/rma: what takes the kinds from kPut to kAtomicReply.
std::unique_ptr<KindHandler> make_remote_memory(Worker& worker);

}  // namespace tagwire
