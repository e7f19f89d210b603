// SPDX-License-Identifier: BSD-3-Clause
// Where messages of kinds that are not matched go: to the layer that speaks them.
// Such a layer sends with Worker::transport(), and gets here what comes back.
#pragma once

#include "lib/transport/transport.h"

namespace tagwire {

class Endpoint;

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
};

}  // namespace tagwire
