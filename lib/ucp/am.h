// SPDX-License-Identifier: BSD-3-Clause
// Active messages. am_send.cc: sending, and the sender's side of offers. am_receive.cc: handlers,
// and the receiver's side.
#pragma once

#include "lib/ucp/channel.h"
#include "lib/ucp/worker.h"

namespace tagwire::ucp {

// A message of the channel. True: the block is not free again yet.
bool channel_message(Worker& worker, Block& block, const Meta& meta, size_t length);
// The endpoint that a message is for; one is made when the program has none yet. nullptr: the
// program has closed it.
Endpoint* endpoint_for(Worker& worker, Peer& peer, uint32_t destination);
bool is_closed(Worker& worker, Peer& peer, uint32_t destination);

bool take_message(Worker& worker, Block& block, const Meta& meta, size_t length);
bool take_offer(Worker& worker, Block& block, const Meta& meta, size_t length);
void take_grant(Worker& worker, Peer& peer, const Verdict& verdict);
void take_verdict(Worker& worker, const Verdict& verdict);
void take_revocation(Worker& worker, Peer& peer, const Verdict& verdict);
void end_am_receive(Request& request, const Done& done);
void cancel_offers(Worker& worker, Endpoint& endpoint, ucs_status_t status);
void cancel_fetches(Worker& worker, Peer& peer);

}  // namespace tagwire::ucp
