// SPDX-License-Identifier: BSD-3-Clause
// From a decoded send WQE to the wire.
#pragma once

#include "drivers/softcx/engine/send_wqe.h"

namespace softcx {

// Offloads (checksums, VLAN insertion, segmentation) are applied here. Frames to a
// unicast address of this port are received by it and don't reach the wire.
void transmit(EngineState& state, const SendWqe& wqe) noexcept;

}  // namespace softcx
