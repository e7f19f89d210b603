// SPDX-License-Identifier: BSD-3-Clause
// The rows: each function runs in both processes at once, and says by Side::server() what
// which one does.
#pragma once

#include "test/e2e/rows/side.h"

namespace tagwire::rows {

void receives_with_tag_mask_and_source(Side&);   // T1
void sends_of_every_length(Side&);               // T2
void injected_buffers_are_free_at_once(Side&);   // T3
void remote_data_arrives(Side&);                 // T4
void the_match_rule(Side&);                      // T5
void the_order_of_receives_and_messages(Side&);  // T6
void directed_receives(Side&);                   // T7
void unexpected_messages_under_a_budget(Side&);  // T8
void truncation(Side&);                          // T9
void cancellation(Side&);                        // T10
void selective_completion(Side&);                // T11
void more_leaves_together(Side&);                // T12
void the_inject_flag(Side&);                     // T13
void completion_levels(Side&);                   // T14
void fences(Side&);                              // T15
void multi_receive(Side&);                       // T16
void peek(Side&);                                // T17
void claim(Side&);                               // T18
void discard(Side&);                             // T19
void authorization_keys(Side&);                  // T20
void receives_before_connect(Side&);             // T21
void errors_without_effect(Side&);               // T22
void nothing_before_enable(Side&);               // T23
void completion_queues(Side&);                   // T24

}  // namespace tagwire::rows
