// SPDX-License-Identifier: BSD-3-Clause
// What a queue does with messages: generate them, send them back, or count them.
#pragma once

#include <tagwire/tagwire.h>

#include <memory>
#include <vector>

#include "options.h"
#include "tag_endpoint.h"
#include "tag_report.h"

namespace tagwire::testpmd {

class TagRole {
  public:
    virtual ~TagRole() = default;

    virtual void completed(Slot& slot, const tw_cq_entry& entry) = 0;
    virtual void failed(Slot& slot, const tw_cq_error& error) = 0;
    // `now` in seconds.
    virtual void turn(double now) = 0;
    // Forwarding ends: no new messages. True when there is nothing to wait for any more.
    virtual bool finish(double now) = 0;
    // All that was to be sent was, or failed.
    virtual bool is_done() const = 0;
    virtual void report(TagReport* report) const = 0;
};

std::unique_ptr<TagRole> make_generator(TagEndpoint& endpoint, const TagOptions& options,
                                        const std::vector<tw_address>& peers);
// tagecho and tagsink.
std::unique_ptr<TagRole> make_responder(TagEndpoint& endpoint, const TagOptions& options,
                                        TagMode mode);

}  // namespace tagwire::testpmd
