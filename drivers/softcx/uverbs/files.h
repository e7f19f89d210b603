// SPDX-License-Identifier: BSD-3-Clause
// The open files that stand for /dev/infiniband/uverbsN and its event files.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "drivers/softcx/model/context.h"

namespace softcx {

// Device numbers as the kernel gives them: 231:192 is uverbs0.
inline constexpr unsigned kUverbsMajor = 231, kUverbsFirstMinor = 192;

// A doorbell page lies at this page of the device file, plus its number. The pages below
// are those of mmap commands (clock.h, and some of old libraries).
inline constexpr uint32_t kFirstUarPage = 0x1000;
inline constexpr uint32_t kMaxUarPages = 65536;

// A descriptor or -errno. The file is a sparse memory file, so the client maps
// doorbell pages without help.
int open_device_file(uint32_t index, int flags);

// False at once for almost every descriptor of the process.
bool may_be_ours(int fd) noexcept;

// The open context behind the descriptor; nullptr when it is none, or one that a
// parent process opened.
std::shared_ptr<Context> context_of(int fd);

// True for a device file, also one that a parent process opened: `status` is what
// fstat said, and becomes what it says of the character device.
bool describe_device_file(int fd, struct ::stat& status);

// Fills in what stat says of /dev/infiniband/uverbsN.
void describe_device_node(uint32_t index, struct ::stat& status);

void remember_event_file(int fd, Context& context, uint32_t channel);

// The number of the completion channel behind the descriptor, if it is one of `context`.
std::optional<uint32_t> channel_of(int fd, const Context& context);

// `copy` is a new descriptor (dup, dup2, F_DUPFD) of what `fd` stands for.
void share_file(int fd, int copy);

// Before the descriptor is closed: the last one of a device file releases its objects.
void forget_file(int fd);

}  // namespace softcx
