// SPDX-License-Identifier: BSD-3-Clause
// What the card announces, and enforces: ConnectX-5 where the model has the
// feature, zero where it has not.
#pragma once

#include <cstdint>

namespace softcx {

inline constexpr uint32_t kVendorId = 0x02c9;
inline constexpr uint32_t kVendorPartId = 0x1017;  // ConnectX-5
inline constexpr uint32_t kFirmwareMajor = 16, kFirmwareMinor = 35, kFirmwareSub = 2000;
inline constexpr const char* kFirmwareVersion = "16.35.2000";
inline constexpr const char* kBoardId = "MT_0000000008";
inline constexpr const char* kHcaType = "MT4119";
// Vendor and device as the client library's PCI table matches them.
inline constexpr const char* kModalias = "pci:v000015B3d00001017sv000015B3sd00000008bc02sc00i00";

inline constexpr uint32_t kQptRawPacket = 8;  // IB_UVERBS_QPT_RAW_PACKET

inline constexpr uint32_t kMaxQueuePairs = 262144;
inline constexpr uint32_t kMaxWorkRequests = 32768;
inline constexpr uint32_t kMaxSendBlocks = 32768;  // 64-byte basic blocks
inline constexpr uint32_t kMaxSendDescriptor = 1024;
inline constexpr uint32_t kMaxLargeSend = 256 * 1024;  // bytes of a TSO send
inline constexpr uint32_t kMaxReceiveDescriptor = 512;
// There are no shared receive queues; with a limit of zero the client library would call
// the size wrong, instead of letting the device say that it has none.
inline constexpr uint32_t kMaxSharedReceiveRequests = 32767;
inline constexpr uint32_t kMaxSegments = 30;
inline constexpr uint32_t kMaxCompletionQueues = 16777216;
inline constexpr uint32_t kMaxCompletionEntries = 4194303;
inline constexpr uint32_t kMaxRegions = 16777216;
inline constexpr uint32_t kMaxDomains = 8388608;
inline constexpr uint32_t kMaxReceiveWqs = 8388608;
inline constexpr uint32_t kMaxTables = 65536;
inline constexpr uint32_t kMaxTableSize = 2048;
inline constexpr uint32_t kCompletionVectors = 1;
inline constexpr uint32_t kMaxModerationCount = 0xffff;
inline constexpr uint32_t kMaxModerationPeriod = 0xfff;  // microseconds
inline constexpr uint32_t kBlueFlameRegisterSize = 512;

// CQE compression: MLX5_IB_CQE_RES_FORMAT_HASH, _CSUM, _CSUM_STRIDX.
inline constexpr uint32_t kMaxCompressedCqes = 64;
inline constexpr uint8_t kCompressionFormats = 7;

// Striding receive rings (MLX5_MIN_SINGLE_STRIDE_LOG_NUM_BYTES and following of the kernel,
// with the extended range of stride numbers).
inline constexpr uint32_t kMinLogStrideBytes = 6, kMaxLogStrideBytes = 13;
inline constexpr uint32_t kMinLogStrides = 3, kMaxLogStrides = 16;

inline constexpr uint32_t kHashKeyLength = 40;
inline constexpr uint64_t kHashFields = 0xff;  // MLX5_RX_HASH_{SRC,DST}_* of IPv4, IPv6, TCP, UDP

inline constexpr uint32_t kMaxFlowPriority = 15;
inline constexpr uint32_t kMaxFlowTag = 0xffffff;

}  // namespace softcx
