// SPDX-License-Identifier: BSD-3-Clause
// Contexts, configuration, workers, wakeup: what is asked and answered.
#include <poll.h>

#include <cstdio>
#include <cstdlib>

#include "test/ucp/sim_fabric.h"

namespace tagwire::test {
namespace {

template <typename Print>
std::string printed(Print&& print) {
    char* text = nullptr;
    size_t size = 0;
    FILE* stream = open_memstream(&text, &size);
    print(stream);
    std::fclose(stream);
    std::string result(text, size);
    std::free(text);
    return result;
}

TEST(UcpConfig, IsReadChangedAndPrinted) {
    setenv("UCX_NET_DEVICES", "eth7", 1);
    setenv("MINE_UCX_TLS", "tcp", 1);
    ucp_config_t* config = nullptr;
    ASSERT_EQ(ucp_config_read("MINE", nullptr, &config), UCS_OK);
    unsetenv("UCX_NET_DEVICES");
    unsetenv("MINE_UCX_TLS");
    EXPECT_EQ(ucp_config_modify(config, "RNDV_THRESH", "1234"), UCS_OK);
    EXPECT_EQ(ucp_config_modify(config, "RNDV_PUT_FORCE_FLUSH", "y"), UCS_OK);
    EXPECT_EQ(ucp_config_modify(config, "ADDRESS_VERSION", "v2"), UCS_OK);
    EXPECT_EQ(ucp_config_modify(config, "NO_SUCH_NAME", "1"), UCS_ERR_NO_ELEM);
    const std::string text = printed([&](FILE* stream) {
        ucp_config_print(config, stream, "title",
                         static_cast<ucs_config_print_flags_t>(UCS_CONFIG_PRINT_CONFIG |
                                                               UCS_CONFIG_PRINT_HEADER));
    });
    EXPECT_NE(text.find("# title"), std::string::npos);
    EXPECT_NE(text.find("UCX_NET_DEVICES=eth7\n"), std::string::npos);
    EXPECT_NE(text.find("UCX_TLS=tcp\n"), std::string::npos);
    EXPECT_NE(text.find("UCX_RNDV_THRESH=1234\n"), std::string::npos);
    ucp_config_release(config);
}

TEST(UcpLibrary, TellsItsVersion) {
    unsigned major;
    unsigned minor;
    unsigned release;
    ucp_get_version(&major, &minor, &release);
    EXPECT_EQ(major, static_cast<unsigned>(UCP_API_MAJOR));
    EXPECT_EQ(minor, static_cast<unsigned>(UCP_API_MINOR));
    EXPECT_EQ(std::string(ucp_get_version_string()).rfind(std::to_string(major) + ".", 0), 0u);
    ucp_lib_attr_t attr{};
    attr.field_mask = UCP_LIB_ATTR_FIELD_MAX_THREAD_LEVEL;
    EXPECT_EQ(ucp_lib_query(&attr), UCS_OK);
    EXPECT_EQ(attr.max_thread_level, UCS_THREAD_MODE_MULTI);
}

class UcpWorker : public UcpPair {};

TEST_F(UcpWorker, ContextAndWorkerTellAboutThemselves) {
    ucp_context_attr_t context{};
    context.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE | UCP_ATTR_FIELD_THREAD_MODE |
                         UCP_ATTR_FIELD_MEMORY_TYPES | UCP_ATTR_FIELD_NAME;
    ASSERT_EQ(ucp_context_query(a.context, &context), UCS_OK);
    EXPECT_GT(context.request_size, 0u);
    EXPECT_EQ(context.memory_types, UCS_BIT(UCS_MEMORY_TYPE_HOST));
    EXPECT_STRNE(context.name, "");
    ucp_worker_attr_t worker{};
    worker.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE | UCP_WORKER_ATTR_FIELD_ADDRESS |
                        UCP_WORKER_ATTR_FIELD_NAME | UCP_WORKER_ATTR_FIELD_MAX_INFO_STRING;
    ASSERT_EQ(ucp_worker_query(a.worker, &worker), UCS_OK);
    EXPECT_EQ(worker.thread_mode, UCS_THREAD_MODE_SINGLE);
    EXPECT_GT(worker.address_length, 0u);
    ucp_worker_address_attr_t first{UCP_WORKER_ADDRESS_ATTR_FIELD_UID, 0};
    EXPECT_EQ(ucp_worker_address_query(worker.address, &first), UCS_OK);
    EXPECT_NE(first.worker_uid, 0u);
    ucp_worker_release_address(a.worker, worker.address);
}

TEST_F(UcpWorker, PrintsWhatPeopleAndProgramsRead) {
    EXPECT_NE(printed([&](FILE* f) { ucp_context_print_info(a.context, f); }).find("tagwire/"),
              std::string::npos);
    EXPECT_NE(printed([&](FILE* f) { ucp_worker_print_info(a.worker, f); }).find("address"),
              std::string::npos);
    EXPECT_NE(printed([&](FILE* f) { ucp_ep_print_info(to_b, f); }).find("10.0.0.2"),
              std::string::npos);
    EXPECT_NE(printed([&](FILE* f) { ucp_mem_print_info("64k", a.context, f); }).find("65536"),
              std::string::npos);
}

TEST_F(UcpWorker, BadAddressesAndFeaturesAreRefused) {
    char bad[64] = "no address";
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<ucp_address_t*>(bad);
    ucp_ep_h ep = nullptr;
    EXPECT_EQ(ucp_ep_create(a.worker, &params, &ep), UCS_ERR_INVALID_ADDR);
    params.field_mask = 0;
    EXPECT_EQ(ucp_ep_create(a.worker, &params, &ep), UCS_ERR_INVALID_PARAM);
    ucp_params_t features{};
    features.field_mask = UCP_PARAM_FIELD_FEATURES;
    features.features = uint64_t{1} << 40;
    ucp_context_h context = nullptr;
    EXPECT_EQ(ucp_init(&features, nullptr, &context), UCS_ERR_INVALID_PARAM);
}

TEST_F(UcpWorker, DescriptorBecomesReadableWhenItIsSignalled) {
    int fd = -1;
    ASSERT_EQ(ucp_worker_get_efd(a.worker, &fd), UCS_OK);
    pollfd waited{fd, POLLIN, 0};
    // A timer of the core may wake it as well, in real time.
    const auto becomes_quiet = [&] {
        for (int i = 0; i < 1000; ++i) {
            if (ucp_worker_arm(a.worker) == UCS_OK && poll(&waited, 1, 0) == 0) {
                return true;
            }
            ucp_worker_progress(a.worker);
        }
        return false;
    };
    ASSERT_TRUE(becomes_quiet());
    EXPECT_EQ(ucp_worker_signal(a.worker), UCS_OK);
    EXPECT_EQ(poll(&waited, 1, 0), 1);
    EXPECT_EQ(ucp_worker_arm(a.worker), UCS_ERR_BUSY) << "the signal may have been meant for now";
    EXPECT_TRUE(becomes_quiet());
}

TEST_F(UcpWorker, CannotBeArmedWhileSomethingIsToBeDone) {
    char in = 0;
    void* receive = ucp_tag_recv_nb(a.worker, &in, 1, kByte, 1, UINT64_MAX, ignore_received);
    while (ucp_worker_arm(a.worker) == UCS_ERR_BUSY) {
        ucp_worker_progress(a.worker);
    }
    EXPECT_EQ(wait(ucp_tag_send_nb(to_a, "x", 1, kByte, 1, ignore_sent)), UCS_OK);
    void* second = ucp_tag_recv_nb(a.worker, &in, 1, kByte, 2, UINT64_MAX, ignore_received);
    ASSERT_EQ(ucp_tag_send_nb(to_a, "y", 1, kByte, 2, ignore_sent), nullptr);
    for (int i = 0; i < 1000; ++i) {
        ucp_worker_progress(b.worker);  // the core of a hears it meanwhile
    }
    EXPECT_EQ(ucp_worker_arm(a.worker), UCS_ERR_BUSY);
    EXPECT_EQ(wait(receive), UCS_OK);
    EXPECT_EQ(wait(second), UCS_OK);
}

TEST_F(UcpWorker, WithoutTheFeatureThereIsNoWakeup) {
    UcpPeer plain(UCP_FEATURE_TAG);
    int fd;
    EXPECT_EQ(ucp_worker_get_efd(plain.worker, &fd), UCS_ERR_INVALID_PARAM);
}

TEST_F(UcpWorker, EstimatesTheTimeOfAMessage) {
    ucp_ep_evaluate_perf_param_t param{UCP_EP_PERF_PARAM_FIELD_MESSAGE_SIZE, 1 << 20};
    ucp_ep_evaluate_perf_attr_t attr{UCP_EP_PERF_ATTR_FIELD_ESTIMATED_TIME, 0};
    ASSERT_EQ(ucp_ep_evaluate_perf(to_b, &param, &attr), UCS_OK);
    const double large = attr.estimated_time;
    param.message_size = 8;
    ASSERT_EQ(ucp_ep_evaluate_perf(to_b, &param, &attr), UCS_OK);
    EXPECT_GT(large, attr.estimated_time);
}

}  // namespace
}  // namespace tagwire::test
