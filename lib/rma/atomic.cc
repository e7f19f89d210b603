// SPDX-License-Identifier: BSD-3-Clause
// Atomics are posted. Operands are copied, so that they are the caller's again at once.
#include "lib/rma/execute.h"
#include "lib/rma/remote_memory.h"
#include "lib/tagwire/error.h"
#include "lib/tagwire/iov.h"
#include "lib/transport/scatter.h"

namespace tagwire {

using transport::MessageKind;
using wire::AtomicForm;

namespace {

// The sum of the counts; TW_ATOMIC_SIZE + 1 when it is beyond every limit.
template <typename Ioc>
uint64_t elements(const Ioc* ioc, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count && sum <= TW_ATOMIC_SIZE; ++i) {
        sum += std::min<uint64_t>(ioc[i].count, TW_ATOMIC_SIZE + 1);
    }
    return std::min<uint64_t>(sum, TW_ATOMIC_SIZE + 1);
}

}  // namespace

int RemoteMemory::take_ioc(const tw_ioc* ioc, size_t count, size_t size, uint64_t wanted,
                           Local& local) noexcept {
    if (ioc == nullptr || count == 0 || count > TW_IOV_LIMIT) {
        return refuse(EINVAL, "an ioc has 1 to TW_IOV_LIMIT (8) entries");
    }
    if (elements(ioc, count) != wanted) {
        return refuse(EINVAL, "operands, compares, results and rma_ioc have as many elements");
    }
    iovec iov[TW_IOV_LIMIT];
    for (size_t i = 0; i < count; ++i) {
        iov[i] = {ioc[i].addr, ioc[i].count * size};
    }
    return take_iov(iov, count, local.iov, &local.count, &local.length);
}

int RemoteMemory::check(const AtomicCall& call, AtomicBuffers& buffers) noexcept {
    if (!is_atomic(call.datatype, call.op, call.form)) {
        return refuse(EOPNOTSUPP,
                      "this atomic does not exist for the datatype and the call: see "
                      "tw_atomic_valid");
    }
    if (call.remote == nullptr || call.remote_count == 0 || call.remote_count > TW_IOV_LIMIT) {
        return refuse(EINVAL, "rma_ioc has 1 to TW_IOV_LIMIT (8) entries");
    }
    const size_t size = size_of(call.datatype);
    const uint64_t count = elements(call.remote, call.remote_count);
    if (count == 0) {
        return refuse(EINVAL, "an atomic has at least one element");
    }
    if (count * size > TW_ATOMIC_SIZE) {
        return refuse(EMSGSIZE, "an atomic has at most TW_ATOMIC_SIZE (1024) bytes of operands");
    }
    buffers.length = count * size;
    if ((call.flags & TW_INJECT) != 0 && buffers.length > TW_INJECT_SIZE) {
        return refuse(EINVAL, "an injected atomic has at most TW_INJECT_SIZE (256) bytes");
    }
    buffers.operand_length = call.op == TW_ATOMIC_READ ? 0 : buffers.length;
    buffers.compare_length = call.form == AtomicForm::kCompare ? buffers.length : 0;
    int error = 0;
    if (buffers.operand_length != 0) {
        error = take_ioc(call.operands, call.operand_count, size, count, buffers.operands);
    }
    if (error == 0 && buffers.compare_length != 0) {
        error = take_ioc(call.compares, call.compare_count, size, count, buffers.compares);
    }
    if (error == 0 && call.form != AtomicForm::kBase) {
        error = take_ioc(call.results, call.result_count, size, count, buffers.results);
    }
    return error;
}

// Operands, then compares.
uint8_t* RemoteMemory::keep_operands(RmaRequest& request, const AtomicBuffers& buffers) noexcept {
    uint8_t* kept = request.copy;
    if (buffers.operand_length + buffers.compare_length > sizeof(request.copy)) {
        request.operands = operands_.acquire();  // as many as requests
        kept = request.operands->bytes;
    }
    transport::gather(buffers.operands.iov, 0, kept, static_cast<uint32_t>(buffers.operand_length));
    transport::gather(buffers.compares.iov, 0, kept + buffers.operand_length,
                      static_cast<uint32_t>(buffers.compare_length));
    return kept;
}

int RemoteMemory::atomic(Endpoint& endpoint, const AtomicCall& call) noexcept {
    AtomicBuffers buffers;
    if (const int error = check(call, buffers); error != 0) [[unlikely]] {
        return error;
    }
    PeerId peer;
    RmaRequest* request;
    if (const int error =
            begin(endpoint, call.peer, requests_for(call.remote_count), &peer, &request);
        error != 0) [[unlikely]] {
        return error;
    }
    const bool fetches = call.form != AtomicForm::kBase;
    describe(*request, call.context, call.flags, TW_ATOMIC | (fetches ? TW_READ : TW_WRITE));
    request->buffer = fetches ? buffers.results.iov[0].iov_base : nullptr;
    request->length = buffers.length;
    uint8_t* operand = keep_operands(*request, buffers);
    uint8_t* compare = operand + buffers.operand_length;
    const size_t size = size_of(call.datatype);
    for (size_t i = 0; i < call.remote_count; ++i) {
        RmaRequest& part = call.remote_count == 1 ? *request : part_of(*request);
        const tw_rma_ioc& remote = call.remote[i];
        const uint64_t length = remote.count * size;
        part.receive.iov_count = fetches ? buffers.results.take(length, part.receive.iov) : 0;
        part.receive.capacity = fetches ? length : 0;
        *reinterpret_cast<wire::AtomicRequest*>(part.head) = {await_reply(part),
                                                              static_cast<uint8_t>(call.op),
                                                              static_cast<uint8_t>(call.datatype),
                                                              static_cast<uint8_t>(call.form),
                                                              0,
                                                              static_cast<uint32_t>(remote.count)};
        transport::SendOperation& send = part.send;
        send.header = {remote.key, remote.address, sizeof(wire::AtomicRequest),
                       MessageKind::kAtomicRequest, transport::kWantsAnswer};
        if ((call.flags & TW_FENCE) != 0 && i == 0) {
            send.header.flags |= transport::kFence;
        }
        send.iov[0] = {part.head, sizeof(wire::AtomicRequest)};
        send.iov_count = 1;
        if (buffers.operand_length != 0 && length != 0) {
            send.iov[send.iov_count++] = {operand, length};
            send.header.length += length;
            operand += length;
        }
        if (buffers.compare_length != 0 && length != 0) {
            send.iov[send.iov_count++] = {compare, length};
            send.header.length += length;
            compare += length;
        }
        if (const int error = start(part, peer); error != 0) [[unlikely]] {
            return abandon(part, error);
        }
    }
    endpoint.operation_began();
    complete_at_once(*request, call.flags);
    return 0;
}

}  // namespace tagwire
