// SPDX-License-Identifier: BSD-3-Clause
#include <new>

#include "lib/ucp/tag.h"

using namespace tagwire::ucp;

// A probe that removes claims the message: no receive but ucp_tag_msg_recv_* sees it any more.
ucp_tag_message_h ucp_tag_probe_nb(ucp_worker_h worker, ucp_tag_t tag, ucp_tag_t mask, int remove,
                                   ucp_tag_recv_info_t* info) {
    const Worker::Guard guard(*worker);
    // What a probe that does not remove returns: it says "found", and nothing can be received by
    // it.
    static ucp_recv_desc found;
    ucp_recv_desc* message = remove != 0 ? new (std::nothrow) ucp_recv_desc{} : &found;
    if (message == nullptr) {
        return nullptr;
    }
    tw_context& context = remove != 0 ? message->context : worker->peek_context();
    tw_msg_tagged peek{};
    peek.addr = TW_ADDR_UNSPEC;
    peek.tag = tag;
    peek.ignore = ~mask;
    peek.context = &context;
    Done done{};
    const bool peeked = tw_trecvmsg(worker->tag_endpoint(), &peek,
                                    TW_PEEK | (remove != 0 ? TW_CLAIM : uint64_t{0})) == 0 &&
                        worker->collect(&context, &done);
    if (!peeked || done.error != 0) {
        if (remove != 0) {
            delete message;
        }
        return nullptr;
    }
    info->sender_tag = done.tag;
    info->length = done.message_length;
    return message;
}
