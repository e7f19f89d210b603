// SPDX-License-Identifier: BSD-3-Clause
// GET_CONTEXT and the queries.
#include <endian.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <unistd.h>

#include <algorithm>

#include "drivers/softcx/model/capabilities.h"
#include "drivers/softcx/model/events.h"
#include "drivers/softcx/model/port.h"
#include "drivers/softcx/uverbs/command.h"
#include "drivers/softcx/uverbs/files.h"

namespace softcx {

namespace {

// enum ib_port_state, ib_mtu, ib_port_phys_state, ib_port_speed, ib_port_width and
// rdma_link_layer of the kernel: the uapi carries the numbers only.
constexpr uint8_t kPortDown = 1, kPortActive = 4;
constexpr uint8_t kMtu4096 = 5;
constexpr uint8_t kPhysDisabled = 3, kPhysLinkUp = 5;
constexpr uint8_t kWidth4x = 2;
constexpr uint8_t kSpeedEdr = 32;  // 25 Gb/s a lane, 100 Gb/s
constexpr uint8_t kLinkLayerEthernet = 2;
constexpr uint8_t kGrhRequired = 1;  // IB_UVERBS_QPF_GRH_REQUIRED
constexpr uint32_t kPortCapabilities = 1u << 16 /* CM_SUP */ | 1u << 26 /* IP_BASED_GIDS */;

int check_context_request(const mlx5_ib_alloc_ucontext_req_v2& request) {
    // DEVX is not modelled; the client library opens without it then.
    if (request.flags != 0)
        return EINVAL;
    if (request.comp_mask != 0 || request.reserved0 != 0 || request.reserved1 != 0 ||
        request.reserved2 != 0)
        return EOPNOTSUPP;
    if (request.total_num_bfregs == 0 ||
        request.num_low_latency_bfregs > request.total_num_bfregs - 1)
        return EINVAL;
    // Doorbell pages come from UAR objects only; every library since 2020 asks so.
    if ((request.lib_caps & MLX5_LIB_CAP_DYN_UAR) == 0)
        return EOPNOTSUPP;
    return 0;
}

ib_uverbs_query_device_resp device_properties(const Device& device) {
    ib_uverbs_query_device_resp properties{};
    properties.fw_ver = uint64_t{kFirmwareMajor} << 32 | kFirmwareMinor << 16 | kFirmwareSub;
    properties.node_guid = htobe64(device.node_guid);
    properties.sys_image_guid = htobe64(device.node_guid);
    properties.max_mr_size = ~uint64_t{0};
    properties.page_size_cap = ~uint64_t{0xfff};
    properties.vendor_id = kVendorId;
    properties.vendor_part_id = kVendorPartId;
    properties.max_qp = kMaxQueuePairs;
    properties.max_qp_wr = kMaxWorkRequests;
    properties.device_cap_flags = IB_UVERBS_DEVICE_PORT_ACTIVE_EVENT |
                                  IB_UVERBS_DEVICE_SYS_IMAGE_GUID | IB_UVERBS_DEVICE_RAW_IP_CSUM |
                                  IB_UVERBS_DEVICE_MANAGED_FLOW_STEERING;
    properties.max_sge = kMaxSegments;
    properties.max_cq = kMaxCompletionQueues;
    properties.max_cqe = kMaxCompletionEntries;
    properties.max_mr = kMaxRegions;
    properties.max_pd = kMaxDomains;
    properties.max_pkeys = 1;
    properties.local_ca_ack_delay = 16;
    properties.phys_port_cnt = 1;
    return properties;
}

mlx5_ib_query_device_resp vendor_properties(size_t room) {
    mlx5_ib_query_device_resp properties{};
    properties.response_length = static_cast<uint32_t>(std::min(room, sizeof(properties)));
    properties.rss_caps.rx_hash_fields_mask = kHashFields;
    properties.rss_caps.rx_hash_function = MLX5_RX_HASH_FUNC_TOEPLITZ;
    properties.tso_caps.max_tso = kMaxLargeSend;
    properties.tso_caps.supported_qpts = 1u << kQptRawPacket;
    properties.cqe_comp_caps.max_num = kMaxCompressedCqes;
    properties.cqe_comp_caps.supported_format = kCompressionFormats;
    properties.flags =
        MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_COMP | MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD;
    properties.striding_rq_caps.min_single_stride_log_num_of_bytes = kMinLogStrideBytes;
    properties.striding_rq_caps.max_single_stride_log_num_of_bytes = kMaxLogStrideBytes;
    properties.striding_rq_caps.min_single_wqe_log_num_of_strides = kMinLogStrides;
    properties.striding_rq_caps.max_single_wqe_log_num_of_strides = kMaxLogStrides;
    properties.striding_rq_caps.supported_qpts = 1u << kQptRawPacket;
    properties.mlx5_ib_support_multi_pkt_send_wqes = MLX5_IB_ALLOW_MPW | MLX5_IB_SUPPORT_EMPW;
    return properties;
}

}  // namespace

mlx5_ib_alloc_ucontext_resp context_properties(uint8_t cqe_version) {
    mlx5_ib_alloc_ucontext_resp properties{};
    properties.qp_tab_size = kMaxQueuePairs;
    properties.bf_reg_size = kBlueFlameRegisterSize;
    properties.tot_bfregs = 0;
    properties.cache_line_size = 64;
    properties.max_sq_desc_sz = kMaxSendDescriptor;
    properties.max_rq_desc_sz = kMaxReceiveDescriptor;
    properties.max_send_wqebb = kMaxSendBlocks;
    properties.max_recv_wr = kMaxWorkRequests;
    properties.max_srq_recv_wr = kMaxSharedReceiveRequests;
    properties.num_ports = 1;
    properties.response_length = sizeof(properties);
    properties.cqe_version = cqe_version;
    properties.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE;
    properties.eth_min_inline = MLX5_USER_INLINE_MODE_NONE;
    properties.comp_mask = MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_CORE_CLOCK_OFFSET;
    properties.hca_core_clock_offset = 0;  // in its page
    properties.clock_info_versions = 1u << MLX5_IB_CLOCK_INFO_V1;
    properties.log_uar_size = 12;
    properties.num_uars_per_page = static_cast<uint32_t>(::getpagesize()) / 4096;
    return properties;
}

int get_context(const Command& command) {
    Context& context = command.context;
    if (context.opened)
        return EINVAL;
    if (command.vendor_request.size() != sizeof(mlx5_ib_alloc_ucontext_req) &&
        command.vendor_request.size() < offsetof(mlx5_ib_alloc_ucontext_req_v2, max_cqe_version))
        return EINVAL;
    if (command.vendor_response.size() < offsetof(mlx5_ib_alloc_ucontext_resp, cqe_version))
        return EINVAL;
    mlx5_ib_alloc_ucontext_req_v2 request;
    if (const int error = read_request(command.vendor_request, request))
        return error;
    if (const int error = check_context_request(request))
        return error;

    auto events = std::make_shared<EventQueue>();
    const int async_fd = events->open(false);
    if (async_fd < 0)
        return -async_fd;
    context.async_events = std::move(events);
    context.opened = true;
    context.cqe_version = request.max_cqe_version >= 1 ? 1 : 0;

    ib_uverbs_get_context_resp response{};
    response.async_fd = static_cast<uint32_t>(async_fd);
    response.num_comp_vectors = kCompletionVectors;
    write_response(command.response, response);
    write_response(command.vendor_response, context_properties(context.cqe_version));
    return 0;
}

int query_device(const Command& command) {
    write_response(command.response, device_properties(command.device()));
    return 0;
}

int query_device_ex(const Command& command) {
    ib_uverbs_ex_query_device request;
    if (const int error = read_request(command.request, request))
        return error;
    if (request.comp_mask != 0 || request.reserved != 0)
        return EINVAL;
    if (!all_zero(command.vendor_request))
        return EINVAL;

    ib_uverbs_ex_query_device_resp response{};
    response.base = device_properties(command.device());
    response.response_length =
        static_cast<uint32_t>(std::min(command.response.size(), sizeof(response)));
    response.timestamp_mask = ~uint64_t{0};
    response.hca_core_clock = kCoreClockKhz;
    response.device_cap_flags_ex =
        response.base.device_cap_flags | IB_UVERBS_DEVICE_RAW_SCATTER_FCS;
    response.rss_caps.supported_qpts = 1u << kQptRawPacket;
    response.rss_caps.max_rwq_indirection_tables = kMaxTables;
    response.rss_caps.max_rwq_indirection_table_size = kMaxTableSize;
    response.max_wq_type_rq = kMaxReceiveWqs;
    response.raw_packet_caps = IB_UVERBS_RAW_PACKET_CAP_IP_CSUM |
                               IB_UVERBS_RAW_PACKET_CAP_CVLAN_STRIPPING |
                               IB_UVERBS_RAW_PACKET_CAP_SCATTER_FCS;
    response.cq_moderation_caps.max_cq_moderation_count = kMaxModerationCount;
    response.cq_moderation_caps.max_cq_moderation_period = kMaxModerationPeriod;
    write_response(command.response, response);
    write_response(command.vendor_response, vendor_properties(command.vendor_response.size()));
    return 0;
}

int query_port(const Command& command) {
    ib_uverbs_query_port request;
    if (const int error = read_request(command.request, request))
        return error;
    if (request.port_num != kPortNumber)
        return EINVAL;
    const bool up = link_is_up(command.device().port);
    ib_uverbs_query_port_resp response{};
    response.port_cap_flags = kPortCapabilities;
    response.max_msg_sz = 0x40000000;
    response.gid_tbl_len = kGidTableLength;
    response.pkey_tbl_len = 1;
    response.state = up ? kPortActive : kPortDown;
    response.max_mtu = kMtu4096;
    response.active_mtu = kMtu4096;
    response.active_width = kWidth4x;
    response.active_speed = kSpeedEdr;
    response.phys_state = up ? kPhysLinkUp : kPhysDisabled;
    response.link_layer = kLinkLayerEthernet;
    response.flags = kGrhRequired;
    write_response(command.response, response);
    return 0;
}

}  // namespace softcx
