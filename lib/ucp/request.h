// SPDX-License-Identifier: BSD-3-Clause
// Requests: what a program holds while an operation is under way.
//
// In memory: [Request][request_size bytes of the program]. The program's pointer is to
// the second part, and ucp_context_query tells the size of the first, so that a program
// can bring the memory itself (ucp_tag_send_nbr and its like).
#pragma once

#include <ucp/api/ucp.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/ucp/payload.h"
#include "tagwire/tagwire.h"

namespace tagwire::ucp {

class Worker;
class Endpoint;
struct Context;
struct Peer;
struct Epoch;

// What the context of a completion in the core's queue points to.
struct Operation {
    enum class Kind : uint8_t {
        kRequest,  // a Request
        kPeer,     // a Peer: a note of our own failed
        kEpoch,    // an Epoch: a send without a request has ended
        kBlock,    // a Block: a receive of the channel
        kClaimed,  // a Claimed: the receive of a message that a probe removed
    };
    Kind kind;
};

// How a program wants to hear of the end.
struct Callback {
    enum class Kind : uint8_t { kNone, kSend, kSendX, kTag, kTagX, kStream, kStreamX, kAmX };
    Kind kind = Kind::kNone;
    union {
        ucp_send_callback_t send = nullptr;
        ucp_send_nbx_callback_t send_x;
        ucp_tag_recv_callback_t tag;
        ucp_tag_recv_nbx_callback_t tag_x;
        ucp_stream_recv_callback_t stream;
        ucp_stream_recv_nbx_callback_t stream_x;
        ucp_am_recv_data_nbx_callback_t am_x;
    };
    void* user_data = nullptr;
};

// A put, a get and the data of an offer go to the core in parts of at most so many bytes.
inline constexpr uint64_t kLargestPart = uint64_t{256} << 20;

// What a call says of its request, from its plain arguments or from ucp_request_param_t.
struct Call {
    uint32_t mask = 0;  // ucp_op_attr_t
    uint32_t flags = 0;
    ucp_datatype_t datatype = ucp_dt_make_contig(1);
    void* request = nullptr;      // the program's memory
    bool always_request = false;  // also when the operation is complete at once
    Callback callback;
    void* info = nullptr;  // where the call leaves what it learned when complete at once

    bool may_complete_now() const { return (mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) == 0; }
};
Call call_of(const ucp_request_param_t* param, Callback::Kind kind);

struct Request final : Operation {
    enum class Type : uint8_t {
        kFree,   // in the pool
        kPlain,  // allocated by ucp_request_alloc, nothing posted yet
        kSend,   // tag, stream or eager active message: done when the core says so
        kTagReceive,
        kStreamReceive,
        kAmOffer,    // an active message whose data waits for the receiver's word
        kAmReceive,  // such data comes in
        kRemote,     // put, get, atomic
        kFlush,
        kClose,
    };
    // Hands it to the core. -EAGAIN: again after progress.
    using Post = int (*)(Request&);

    Type type = Type::kPlain;
    ucs_status_t status = UCS_OK;
    bool completed = false;
    bool released = false;    // by the program, before it was complete
    bool implicit = false;    // a flush tells its error
    bool incomplete = false;  // data of an offer: not all of it will come
    Worker* worker = nullptr;
    Endpoint* endpoint = nullptr;
    Peer* peer = nullptr;    // of a receive of offered data
    Epoch* epoch = nullptr;  // whose operation it is, for flushes
    Callback callback;
    Payload payload;
    Post post = nullptr;
    Request* next = nullptr;     // in the one list that it is in
    ucp_tag_recv_info_t info{};  // receives: the tag and the length

    // Of the protocols.
    uint64_t tag = 0;
    uint64_t mask = 0;    // of a tag receive
    uint64_t offset = 0;  // of what was posted, or received
    uint64_t posted = 0;  // bytes, of an operation in several parts
    uint32_t parts = 0;   // posted and not complete
    uint32_t flags = 0;
    void* header = nullptr;  // copied, of an active message
    uint32_t header_length = 0;
    uint64_t remote_address = 0;
    uint64_t remote_key = 0;
    uint64_t operand[2] = {};
    void* result = nullptr;

    void* user() { return this + 1; }
    static Request& of(void* user) { return static_cast<Request*>(user)[-1]; }
};

// Requests of a worker. request_init runs once for each object, when its chunk is made.
class RequestPool {
  public:
    explicit RequestPool(const Context& context) : context_(context) {}
    ~RequestPool();

    Request* get(Worker& worker);  // nullptr: out of memory
    void put(Request& request);
    size_t in_use() const { return in_use_; }
    // Those that the program holds and did not release, not even before their end.
    size_t unreleased() const;

  private:
    struct Free {
        char* memory;
        size_t size;
    };
    bool grow();

    const Context& context_;
    std::vector<Free> chunks_;
    Request* free_ = nullptr;
    size_t in_use_ = 0;
};

// A request for the call: the program's memory, or one from the worker's pool.
Request* new_request(Worker& worker, const Call& call, Request::Type type);
// The call failed: as if the request had never been.
void drop_request(Request& request, const Call& call);
// The operation has ended within the call that began it.
ucs_status_ptr_t end_at_once(Request& request, const Call& call, ucs_status_t status);
// What a call returns whose request was submitted, or could not be: UCS_INPROGRESS, UCS_OK when it
// is complete, or an error, and then the request has never been.
ucs_status_ptr_t answer(Request& request, const Call& call, ucs_status_t submitted);
// The operation has ended later.
void finish(Request& request, ucs_status_t status);

// Posts the parts of `length` bytes that have not been posted yet: `post_part` has each one's
// length, and request.posted is its offset. It is called again after -EAGAIN.
template <class PostPart>
int post_parts(Request& request, uint64_t length, PostPart post_part) {
    do {
        const size_t part = std::min<uint64_t>(kLargestPart, length - request.posted);
        if (const int error = post_part(part); error != 0) {
            return error;
        }
        request.posted += part;
        ++request.parts;
    } while (request.posted < length);
    request.post = nullptr;
    return 0;
}

}  // namespace tagwire::ucp
