// SPDX-License-Identifier: BSD-3-Clause
#include "tag_control.h"

#include <rte_byteorder.h>

#include <cstring>

namespace tagwire::testpmd {
namespace {

constexpr uint32_t kMagic = 0x54777470;
constexpr uint8_t kVersion = 1;

struct Encoded {
    rte_be32_t magic;
    uint8_t version;
    uint8_t kind;
    uint8_t mode;
    uint8_t family;
    uint8_t ip[16];
    rte_be16_t udp_port;
    rte_be16_t endpoint;
    rte_be32_t reserved;
    rte_be64_t run, largest, messages, bytes, digest, mismatches;
    uint8_t unused[16];
};
static_assert(sizeof(Encoded) == kControlSize);

}  // namespace

void encode_control(const Control& control, std::byte* data) {
    Encoded out{};
    out.magic = rte_cpu_to_be_32(kMagic);
    out.version = kVersion;
    out.kind = static_cast<uint8_t>(control.kind);
    out.mode = static_cast<uint8_t>(control.mode);
    out.family = control.sender.family;
    std::memcpy(out.ip, control.sender.ip, sizeof(out.ip));
    out.udp_port = rte_cpu_to_be_16(control.sender.udp_port);
    out.endpoint = rte_cpu_to_be_16(control.sender.endpoint);
    out.run = rte_cpu_to_be_64(control.run);
    out.largest = rte_cpu_to_be_64(control.largest);
    out.messages = rte_cpu_to_be_64(control.messages);
    out.bytes = rte_cpu_to_be_64(control.bytes);
    out.digest = rte_cpu_to_be_64(control.digest);
    out.mismatches = rte_cpu_to_be_64(control.mismatches);
    std::memcpy(data, &out, sizeof(out));
}

bool decode_control(const std::byte* data, size_t size, Control* control) {
    Encoded in;
    if (size != sizeof(in)) {
        return false;
    }
    std::memcpy(&in, data, sizeof(in));
    if (rte_be_to_cpu_32(in.magic) != kMagic || in.version != kVersion || in.kind < 1 ||
        in.kind > static_cast<uint8_t>(ControlKind::kReport) ||
        in.mode > static_cast<uint8_t>(TagMode::kSink)) {
        return false;
    }
    *control = {};
    control->kind = static_cast<ControlKind>(in.kind);
    control->mode = static_cast<TagMode>(in.mode);
    control->sender.family = in.family;
    std::memcpy(control->sender.ip, in.ip, sizeof(in.ip));
    control->sender.udp_port = rte_be_to_cpu_16(in.udp_port);
    control->sender.endpoint = rte_be_to_cpu_16(in.endpoint);
    control->run = rte_be_to_cpu_64(in.run);
    control->largest = rte_be_to_cpu_64(in.largest);
    control->messages = rte_be_to_cpu_64(in.messages);
    control->bytes = rte_be_to_cpu_64(in.bytes);
    control->digest = rte_be_to_cpu_64(in.digest);
    control->mismatches = rte_be_to_cpu_64(in.mismatches);
    return true;
}

}  // namespace tagwire::testpmd
