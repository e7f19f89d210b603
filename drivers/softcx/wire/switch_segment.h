// SPDX-License-Identifier: BSD-3-Clause
// The shared memory of a learning switch: /dev/shm/softcx-NAME. Who is alive is told
// by the kernel, through locks that vanish with their process:
//   flock on the file     held while ports come and go
//   byte kUseByte         read-locked by every attached port
//   byte kPortByte + n    write-locked by the owner of port n
// They are open-file-description locks, which also tell two ports of one process
// apart (fcntl(2), "Open file description locks").
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "drivers/softcx/wire/fdb.h"
#include "drivers/softcx/wire/frame_ring.h"

namespace softcx {

inline constexpr uint32_t kSwitchPorts = 32;
inline constexpr uint64_t kSwitchRingSize = 2u << 20;

struct alignas(64) SwitchPort {
    std::atomic<uint64_t> sources;     // ports that ever sent to this one
    std::atomic<uint64_t> tail_drops;  // frames to this port that found its ring full
    std::atomic<uint32_t> owner;       // process id, for people
};

struct SwitchLayout {
    static constexpr uint64_t kMagic = 0x53584357'53574954;
    static constexpr uint32_t kVersion = 1;

    std::atomic<uint64_t> magic;  // written last
    uint32_t version;
    uint32_t ports;
    uint64_t ring_size;
    std::atomic<uint64_t> active;  // bit per attached port
    std::array<SwitchPort, kSwitchPorts> port;
    ForwardingDatabase fdb;
    FrameRingHeader ring[kSwitchPorts][kSwitchPorts];  // [source][destination]
};

class SwitchSegment {
  public:
    // Attaches to the switch, which is made if need be. nullptr and a text otherwise.
    static std::unique_ptr<SwitchSegment> attach(const std::string& name, std::string* error);
    ~SwitchSegment();
    SwitchSegment(const SwitchSegment&) = delete;
    SwitchSegment& operator=(const SwitchSegment&) = delete;

    SwitchLayout& layout() noexcept { return *layout_; }
    uint32_t port() const noexcept { return port_; }
    uint64_t others() const noexcept {
        return layout_->active.load(std::memory_order_acquire) & ~(uint64_t{1} << port_);
    }

    // The ring from this port; its memory is reserved now, so that a full /dev/shm is an
    // error here and not a signal later. Not open when there is no room.
    FrameProducer open_producer(uint32_t destination) noexcept;
    FrameConsumer open_consumer(uint32_t source) noexcept;

    // Takes ports whose process died off the switch.
    void reclaim_dead_ports() noexcept;

  private:
    SwitchSegment() = default;
    bool open_file(const std::string& path, std::string* error);
    bool initialise(std::string* error);
    bool check_version(std::string* error) const;
    bool map(std::string* error);
    bool take_port(std::string* error);
    bool is_dead(uint32_t port) const noexcept;
    void release_port(uint32_t port) noexcept;
    uint8_t* ring_data(uint32_t source, uint32_t destination) noexcept;

    std::string path_;
    int fd_ = -1;
    pid_t process_ = 0;  // a forked child must not detach its parent's port
    SwitchLayout* layout_ = nullptr;
    uint32_t port_ = kSwitchPorts;
};

}  // namespace softcx
