// SPDX-License-Identifier: BSD-3-Clause
// libFuzzer target: decode_frame() reads nothing outside the frame (run it with
// AddressSanitizer) and a view it returns lies inside the frame.
#include <algorithm>
#include <cstdlib>
#include <memory>

#include "lib/wire/decode.h"

using namespace tagwire::wire;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) {
        return 0;
    }
    // The first byte says what the NIC claims to have verified, so that the
    // fuzzer gets past the checksums too.
    const Verified verified{(data[0] & 1) != 0, (data[0] & 2) != 0};
    const auto length = static_cast<uint32_t>(size - 1);
    const auto frame = std::make_unique<uint8_t[]>(length);
    std::copy(data + 1, data + size, frame.get());
    DecodeContext context;
    if (length >= 42) {  // addressed to whoever it names
        std::copy(frame.get(), frame.get() + 6, context.mac.begin());
        context.ip = *reinterpret_cast<const be32*>(frame.get() + 30);
        context.udp_port = *reinterpret_cast<const be16*>(frame.get() + 36);
    }
    FrameView view;
    if (decode_frame(frame.get(), length, context, verified, view) == Reject::kNone &&
        view.payload != nullptr &&
        (view.payload < frame.get() || view.payload + view.payload_length > frame.get() + length)) {
        std::abort();
    }
    return 0;
}
