// SPDX-License-Identifier: BSD-3-Clause
// What UCX's headers have had since 1.14 to 1.18. Nothing where they are older.
#include "test/ucp/sim_fabric.h"

#if UCP_API_VERSION >= UCP_VERSION(1, 18)

namespace tagwire::test {
namespace {

class UcpNewer : public UcpPair {
  protected:
    ucp_mem_h map(void* address, size_t length) {
        ucp_mem_map_params_t params{};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address = address;
        params.length = length;
        ucp_mem_h memory = nullptr;
        EXPECT_EQ(ucp_mem_map(b.context, &params, &memory), UCS_OK);
        return memory;
    }
    ucp_rkey_h key_of(ucp_mem_h memory) {
        const ucp_memh_pack_params_t params{};
        void* packed = nullptr;
        size_t size = 0;
        EXPECT_EQ(ucp_memh_pack(memory, &params, &packed, &size), UCS_OK);
        ucp_rkey_h key = nullptr;
        EXPECT_EQ(ucp_ep_rkey_unpack(to_b, packed, &key), UCS_OK);
        const ucp_memh_buffer_release_params_t release{};
        ucp_memh_buffer_release(packed, &release);
        return key;
    }
};

TEST_F(UcpNewer, AMappedMemorysOwnPackGivesAKey) {
    std::string memory(64, '\0');
    ucp_mem_h mapped = map(memory.data(), memory.size());
    ucp_rkey_h key = key_of(mapped);
    const uint64_t address = reinterpret_cast<uintptr_t>(memory.data());
    EXPECT_EQ(ucp_put(to_b, "bytes", 5, address, key), UCS_OK);
    EXPECT_EQ(memory.substr(0, 5), "bytes");
    ucp_rkey_destroy(key);
    ucp_memh_pack_params_t exporting{};
    exporting.field_mask = UCP_MEMH_PACK_PARAM_FIELD_FLAGS;
    exporting.flags = UCP_MEMH_PACK_FLAG_EXPORT;
    void* packed = nullptr;
    size_t size = 0;
    EXPECT_EQ(ucp_memh_pack(mapped, &exporting, &packed, &size), UCS_ERR_UNSUPPORTED);
    EXPECT_EQ(ucp_mem_unmap(b.context, mapped), UCS_OK);
}

TEST_F(UcpNewer, KeysCompare) {
    std::string memory(64, '\0');
    ucp_mem_h first = map(memory.data(), 32);
    ucp_mem_h second = map(memory.data() + 32, 32);
    ucp_rkey_h a1 = key_of(first);
    ucp_rkey_h a2 = key_of(first);
    ucp_rkey_h b1 = key_of(second);
    ucp_rkey_compare_params_t params{};
    int there = 0;
    int back = 0;
    ASSERT_EQ(ucp_rkey_compare(a.worker, a1, a2, &params, &there), UCS_OK);
    EXPECT_EQ(there, 0);
    ASSERT_EQ(ucp_rkey_compare(a.worker, a1, b1, &params, &there), UCS_OK);
    ASSERT_EQ(ucp_rkey_compare(a.worker, b1, a1, &params, &back), UCS_OK);
    EXPECT_NE(there, 0);
    EXPECT_EQ(there, -back);
    params.field_mask = 1;
    EXPECT_EQ(ucp_rkey_compare(a.worker, a1, b1, &params, &there), UCS_ERR_INVALID_PARAM);
    for (ucp_rkey_h key : {a1, a2, b1}) {
        ucp_rkey_destroy(key);
    }
    ucp_mem_unmap(b.context, first);
    ucp_mem_unmap(b.context, second);
}

TEST_F(UcpNewer, ADatatypeTellsItsPackedSize) {
    ucp_datatype_attr_t attr{};
    attr.field_mask = UCP_DATATYPE_ATTR_FIELD_PACKED_SIZE | UCP_DATATYPE_ATTR_FIELD_COUNT;
    attr.count = 7;
    ASSERT_EQ(ucp_dt_query(ucp_dt_make_contig(12), &attr), UCS_OK);
    EXPECT_EQ(attr.packed_size, 84u);
    const ucp_dt_iov_t pieces[] = {{nullptr, 5}, {nullptr, 0}, {nullptr, 11}};
    attr.count = 3;
    EXPECT_EQ(ucp_dt_query(ucp_dt_make_iov(), &attr), UCS_ERR_INVALID_PARAM);
    attr.field_mask |= UCP_DATATYPE_ATTR_FIELD_BUFFER;
    attr.buffer = pieces;
    ASSERT_EQ(ucp_dt_query(ucp_dt_make_iov(), &attr), UCS_OK);
    EXPECT_EQ(attr.packed_size, 16u);
}

TEST_F(UcpNewer, AnEndpointTellsItsTransportAndItsUserData) {
    ucp_transport_entry_t entries[4] = {};
    ucp_ep_attr_t attr{};
    attr.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS | UCP_EP_ATTR_FIELD_USER_DATA;
    attr.transports = {entries, 4, sizeof(entries[0])};
    ASSERT_EQ(ucp_ep_query(to_b, &attr), UCS_OK);
    ASSERT_EQ(attr.transports.num_entries, 1u);
    EXPECT_STREQ(entries[0].transport_name, "tagwire");
    EXPECT_STREQ(entries[0].device_name, "simulator");
    EXPECT_EQ(attr.user_data, &a);
}

}  // namespace
}  // namespace tagwire::test

#endif
