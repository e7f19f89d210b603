// SPDX-License-Identifier: BSD-3-Clause
#include "lib/ucp/channel.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>

#include "lib/ucp/am.h"
#include "lib/ucp/log.h"
#include "lib/ucp/status.h"
#include "lib/ucp/worker.h"

namespace tagwire::ucp {
namespace {

constexpr size_t kPosted = 128;
constexpr size_t kCapacity = kMaxEager + kMaxHeader + sizeof(Offer);
constexpr uint64_t kChannelMask = (uint64_t{1} << 48) - 1;

uint64_t channel_data(const Peer& peer) {
    return uint64_t{peer.next} << 48 | peer.channel;
}

}  // namespace

// 0 | kind 4 | destination 25 | header length 13 | flags 5 | id 16
uint64_t Meta::encode() const {
    return uint64_t{static_cast<uint8_t>(kind)} << 59 | uint64_t{destination} << 34 |
           uint64_t{header_length} << 21 | uint64_t{flags} << 16 | id;
}

Meta Meta::decode(uint64_t tag) {
    Meta meta;
    meta.kind = static_cast<Kind>(tag >> 59 & 0xf);
    meta.destination = tag >> 34 & 0x1ffffff;
    meta.header_length = tag >> 21 & 0x1fff;
    meta.flags = tag >> 16 & 0x1f;
    meta.id = static_cast<uint16_t>(tag);
    return meta;
}

Block* new_block(Worker& worker, size_t capacity) {
    const size_t align = std::max<size_t>(worker.alignment(), alignof(Block));
    const size_t before = (sizeof(Block) + align - 1) / align * align;
    const size_t size = (before + capacity + align - 1) / align * align;
    auto* memory = static_cast<char*>(std::aligned_alloc(align, size));
    if (memory == nullptr) {
        return nullptr;
    }
    auto* block = new (memory + before - sizeof(Block)) Block;
    block->kind = Operation::Kind::kBlock;
    block->worker = &worker;
    block->memory = memory;
    return block;
}

void delete_block(Block* block) {
    std::free(block->memory);
}

Channel::~Channel() {
    for (Block* block : blocks_) {
        delete_block(block);
    }
    for (auto& [id, inbound] : inbound_) {
        for (auto& [place, held] : inbound.held) {
            delete_block(held.block);
        }
    }
}

ucs_status_t Channel::open() {
    for (size_t i = 0; i < kPosted; ++i) {
        Block* block = new_block(worker_, kCapacity);
        if (block == nullptr) {
            return UCS_ERR_NO_MEMORY;
        }
        add(block);
    }
    return unposted_.empty() ? UCS_OK : UCS_ERR_NO_RESOURCE;
}

int Channel::post(Block& block) {
    block.use = Block::Use::kPosted;
    return tw_trecv(worker_.channel_endpoint(), block.data(), kCapacity, TW_ADDR_UNSPEC, 0,
                    ~kDataBit, &block);
}

void Channel::add(Block* block) {
    if (block == nullptr) {
        return;  // out of memory: one receive less
    }
    block->slot = blocks_.size();
    blocks_.push_back(block);
    if (post(*block) != 0) [[unlikely]] {
        unposted_.push_back(block);
    }
}

void Channel::take(Block& block) {
    blocks_[block.slot] = blocks_.back();
    blocks_[block.slot]->slot = block.slot;
    blocks_.pop_back();
}

void Channel::reset(Peer& peer) {
    static thread_local std::random_device device;
    peer.channel = (uint64_t{device()} << 32 | device()) & kChannelMask;
    peer.next = 0;
    peer.greeted = false;
    peer.controls.clear();
}

int Channel::send(Peer& peer, const Meta& meta, const iovec* pieces, size_t count,
                  Operation* context, uint64_t flags) {
    if (!peer.greeted) [[unlikely]] {
        peer.greeted = true;  // the hello itself comes through here
        uint8_t hello[WorkerAddress::kSize];
        worker_.address().encode(hello);
        const iovec piece{hello, sizeof(hello)};
        if (const int error = send(peer, Meta{}, &piece, 1, &peer, TW_INJECT); error != 0) {
            peer.greeted = false;
            return error;
        }
    }
    tw_msg_tagged message{};
    message.iov = pieces;
    message.iov_count = count;
    message.addr = peer.channel_address;
    message.tag = meta.encode();
    message.context = context;
    message.data = channel_data(peer);
    const int error = tw_tsendmsg(worker_.channel_endpoint(), &message, TW_REMOTE_CQ_DATA | flags);
    if (error == 0) {
        ++peer.next;
    }
    return error;
}

// A message of at most TW_INJECT_SIZE bytes of an endpoint.
int Channel::send_short(Endpoint& endpoint, const Meta& meta, const iovec* pieces, size_t count) {
    const int error = send(*endpoint.peer(), meta, pieces, count, &endpoint.short_send(),
                           TW_INJECT | TW_COMPLETION);
    if (error != 0) [[unlikely]] {
        endpoint.short_send_failed();
    }
    return error;
}

int Channel::send(Request& request, const Meta& meta, const iovec* pieces, size_t count) {
    const int error = send(*request.endpoint->peer(), meta, pieces, count, &request, TW_COMPLETION);
    request.parts += error == 0 ? 1 : 0;
    return error;
}

void Channel::note(Peer& peer, const Meta& meta, const void* body, size_t length) {
    const auto* bytes = static_cast<const uint8_t*>(body);
    if (peer.controls.empty()) {
        const iovec piece{const_cast<void*>(body), length};
        if (send(peer, meta, &piece, 1, &peer, TW_INJECT) == 0) {
            return;
        }
        waiting_.push_back(&peer);
    }
    peer.controls.push_back({meta, std::vector<uint8_t>(bytes, bytes + length)});
}

void Channel::retry() {
    while (!unposted_.empty() && post(*unposted_.back()) == 0) {
        unposted_.pop_back();
    }
    std::erase_if(waiting_, [&](Peer* peer) {
        while (!peer->controls.empty()) {
            Peer::Control& control = peer->controls.front();
            const iovec piece{control.body.data(), control.body.size()};
            const int error = send(*peer, control.meta, &piece, 1, peer, TW_INJECT);
            if (error == -EAGAIN) {
                return false;
            }
            peer->controls.pop_front();
        }
        return true;
    });
}

void Channel::arrived(Block& block, const Done& done) {
    take(block);
    if (done.error != 0) {
        add(&block);  // its sender died in the middle of it
        return;
    }
    Inbound& inbound = inbound_[done.data & kChannelMask];
    const auto place = static_cast<uint16_t>(done.data >> 48);
    if (place != inbound.next) [[unlikely]] {
        inbound.held[place] = {&block, done.tag, done.length};
        add(new_block(worker_, kCapacity));
        return;
    }
    deliver(inbound, {&block, done.tag, done.length});
    for (auto next = inbound.held.find(inbound.next); next != inbound.held.end();
         next = inbound.held.find(inbound.next)) {
        const Held held = next->second;
        inbound.held.erase(next);
        deliver(inbound, held);
    }
}

bool Channel::hello(Inbound& inbound, const Held& held) {
    WorkerAddress address;
    ucs_status_t status = UCS_ERR_INVALID_ADDR;
    if (held.length != WorkerAddress::kSize || !address.decode(held.block->data()) ||
        (inbound.peer = worker_.peer(address, &status)) == nullptr) {
        log_error("a peer cannot be answered: %s", tw_last_error());
        return false;
    }
    inbound.peer->reached = true;
    return true;
}

// The block is posted again unless the program, or a stream, keeps it.
void Channel::deliver(Inbound& inbound, const Held& held) {
    ++inbound.next;
    const Meta meta = Meta::decode(held.tag);
    Block& block = *held.block;
    bool keeps = false;
    if (meta.kind == Meta::Kind::kHello) {
        hello(inbound, held);
    } else if (inbound.peer != nullptr) {
        block.peer = inbound.peer;
        keeps = channel_message(worker_, block, meta, held.length);
    }
    add(keeps ? new_block(worker_, kCapacity) : &block);
}

}  // namespace tagwire::ucp
