// SPDX-License-Identifier: BSD-3-Clause
// What is refused is refused with a line in libfabric's log that says why (main.cc turns it on).
#include <rdma/fi_trigger.h>

#include "test/fi/fabric_fixture.h"

namespace tagwire::fi_test {
namespace {

// What `call` wrote to the log.
template <class Call>
std::string log_of(Call call) {
    testing::internal::CaptureStderr();
    call();
    return testing::internal::GetCapturedStderr();
}

#define EXPECT_LOG(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

std::string log_of_hints(const std::function<void(fi_info&)>& change) {
    const Info hints = make_hints();
    change(*hints);
    return log_of([&] {
        fi_info* info = nullptr;
        EXPECT_EQ(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &info),
                  -FI_ENODATA);
        fi_freeinfo(info);
    });
}

TEST(RefusedHints, AreNamed) {
    EXPECT_LOG(log_of_hints([](fi_info& hints) { hints.ep_attr->type = FI_EP_DGRAM; }),
               "endpoints are FI_EP_RDM and FI_EP_MSG, asked for is FI_EP_DGRAM");
    EXPECT_LOG(log_of_hints([](fi_info& hints) { hints.caps = FI_TAGGED | FI_COLLECTIVE; }),
               "capabilities FI_COLLECTIVE are not offered; these are: FI_MSG, ");
    EXPECT_LOG(log_of_hints([](fi_info& hints) { hints.tx_attr->op_flags = FI_COMMIT_COMPLETE; }),
               "transmit op_flags");
    EXPECT_LOG(log_of_hints([](fi_info& hints) { hints.rx_attr->op_flags = FI_PEEK; }),
               "receive op_flags FI_PEEK are not offered; these are: FI_MULTI_RECV, FI_COMPLETION");
    EXPECT_LOG(log_of_hints([](fi_info& hints) { hints.ep_attr->protocol = FI_PROTO_RXM; }),
               "asked for is FI_PROTO_RXM");
    EXPECT_LOG(log_of_hints([](fi_info& hints) { hints.addr_format = FI_ADDR_EFA; }),
               "asked for is FI_ADDR_EFA");
}

TEST(RefusedHints, OfUndefinedValuesAreNotTakenInSilence) {
    const std::function<void(fi_info&)> changes[] = {
        [](fi_info& hints) { hints.domain_attr->threading = static_cast<fi_threading>(99); },
        [](fi_info& hints) { hints.domain_attr->control_progress = static_cast<fi_progress>(99); },
        [](fi_info& hints) { hints.domain_attr->data_progress = static_cast<fi_progress>(99); },
        [](fi_info& hints) { hints.domain_attr->av_type = static_cast<fi_av_type>(99); },
        [](fi_info& hints) {
            hints.domain_attr->resource_mgmt = static_cast<fi_resource_mgmt>(99);
        },
        [](fi_info& hints) { hints.ep_attr->type = static_cast<fi_ep_type>(99); },
        [](fi_info& hints) { hints.ep_attr->protocol = 99; },
        [](fi_info& hints) { hints.addr_format = 99; },
    };
    for (const auto& change : changes) {
        const std::string log = log_of_hints(change);
        EXPECT_LOG(log, "undefined");
        EXPECT_LOG(log, "99");
    }
}

class Refused : public Pair {
  protected:
    void SetUp() override {
        const Info hints = make_hints();
        hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
        open(*hints);
    }
    // A call that is refused with `error`, and why.
    template <class Call>
    static void expect(const char* why, ssize_t error, Call call) {
        ssize_t result = 0;
        const std::string log = log_of([&] { result = call(); });
        EXPECT_EQ(result, error) << why;
        EXPECT_LOG(log, why);
        EXPECT_EQ(log.find("tw_"), std::string::npos) << "names the core's call: " << log;
        EXPECT_EQ(log.find("TW_"), std::string::npos) << "names the core's constant: " << log;
    }
};

TEST_F(Refused, ToCloseWhatIsInUse) {
    expect("a fabric does not close while", -FI_EBUSY, [&] { return fi_close(&fabric->fid); });
    expect("a domain does not close while", -FI_EBUSY,
           [&] { return fi_close(&left->domain->fid); });
    expect("the completion queue does not close", -FI_EBUSY,
           [&] { return fi_close(&left->cq->fid); });
    expect("the address vector does not close", -FI_EBUSY,
           [&] { return fi_close(&left->av->fid); });
}

TEST_F(Refused, ArgumentsOfObjects) {
    fid_cq* cq = nullptr;
    fi_cq_attr cq_attr{};
    cq_attr.format = static_cast<fi_cq_format>(99);
    expect("format 99", -FI_ENOSYS,
           [&] { return fi_cq_open(left->domain, &cq_attr, &cq, nullptr); });
    cq_attr.format = FI_CQ_FORMAT_MSG;
    cq_attr.wait_obj = static_cast<fi_wait_obj>(99);
    expect("wait_obj 99", -FI_EINVAL,
           [&] { return fi_cq_open(left->domain, &cq_attr, &cq, nullptr); });
    cq_attr.wait_obj = FI_WAIT_MUTEX_COND;
    expect("wait objects are", -FI_ENOSYS,
           [&] { return fi_cq_open(left->domain, &cq_attr, &cq, nullptr); });
    fid_av* av = nullptr;
    fi_av_attr av_attr{};
    av_attr.type = static_cast<fi_av_type>(99);
    expect("FI_AV_MAP or FI_AV_TABLE", -FI_EINVAL,
           [&] { return fi_av_open(left->domain, &av_attr, &av, nullptr); });
    av_attr.type = FI_AV_MAP;
    av_attr.rx_ctx_bits = 30;
    expect("rx_ctx_bits is at most 24", -FI_EINVAL,
           [&] { return fi_av_open(left->domain, &av_attr, &av, nullptr); });
    fid_cntr* counter = nullptr;
    fi_cntr_attr cntr_attr{};
    cntr_attr.flags = 1;
    expect("a counter takes no flags", -FI_EINVAL,
           [&] { return fi_cntr_open(left->domain, &cntr_attr, &counter, nullptr); });
    const Info undefined(fi_dupinfo(info.get()));
    undefined->domain_attr->threading = static_cast<fi_threading>(99);
    fid_domain* domain = nullptr;
    expect("threading is undefined: 99", -FI_EINVAL,
           [&] { return fi_domain(fabric, undefined.get(), &domain, nullptr); });
    const Info datagram(fi_dupinfo(info.get()));
    datagram->ep_attr->type = FI_EP_DGRAM;
    fid_ep* ep = nullptr;
    expect("fi_endpoint takes", -FI_EINVAL,
           [&] { return fi_endpoint(left->domain, datagram.get(), &ep, nullptr); });
    expect("a completion queue is bound with", -FI_EINVAL,
           [&] { return fi_ep_bind(left->ep, &left->cq->fid, 0); });
    expect("an alias is", -FI_EINVAL, [&] { return fi_ep_alias(left->ep, &ep, 0); });
}

TEST_F(Refused, ArgumentsOfAddressVectors) {
    const std::vector<char> name = left->name();
    fi_addr_t address = FI_ADDR_UNSPEC;
    expect("with FI_SYNC_ERR writes the errors to context", -FI_EINVAL,
           [&] { return fi_av_insert(left->av, name.data(), 1, &address, FI_SYNC_ERR, nullptr); });
    expect("fi_av_insert takes", -FI_EINVAL,
           [&] { return fi_av_insert(left->av, name.data(), 1, &address, FI_PEEK, nullptr); });
    expect("no address was given", -FI_EINVAL,
           [&] { return fi_av_insert(left->av, nullptr, 1, &address, 0, nullptr); });
    expect("an address needs a UDP port", 0, [&] {
        std::vector<char> portless = name;
        std::memset(portless.data() + 2, 0, 2);
        return fi_av_insert(left->av, portless.data(), 1, &address, 0, nullptr);
    });
    expect("not resolved", 0, [&] {
        return fi_av_insertsvc(left->av, "127.0.0.1", "no-such-service", &address, 0, nullptr);
    });
    expect("the address is not removed", -FI_EINVAL, [&] {
        fi_addr_t unknown = 4711;
        return fi_av_remove(left->av, &unknown, 1, 0);
    });
}

TEST_F(Refused, ArgumentsOfOperations) {
    char text[512] = {};
    iovec iov{text, sizeof(text)};
    fi_msg_tagged tagged{};
    tagged.msg_iov = &iov;
    tagged.iov_count = 1;
    tagged.addr = to_right;
    expect("fi_tsendmsg does not take the flags FI_PEEK; it takes ", -FI_EINVAL,
           [&] { return fi_tsendmsg(left->ep, &tagged, FI_PEEK); });
    expect("fi_trecvmsg does not take the flags FI_INJECT; it takes ", -FI_EINVAL,
           [&] { return fi_trecvmsg(left->ep, &tagged, FI_INJECT); });
    expect("triggered operation", -FI_EINVAL,
           [&] { return fi_tsendmsg(left->ep, &tagged, FI_TRIGGER); });
    expect("at most inject_size (256) bytes", -FI_EINVAL,
           [&] { return fi_inject(left->ep, text, sizeof(text), to_right); });
    expect("the operation is refused", -FI_EINVAL,
           [&] { return fi_send(left->ep, text, 1, nullptr, FI_ADDR_UNSPEC, nullptr); });
    expect("datatypes end with FI_DOUBLE", -FI_EOPNOTSUPP, [&] {
        return fi_atomic(left->ep, text, 1, nullptr, to_right, 0, 0, FI_LONG_DOUBLE, FI_SUM,
                         nullptr);
    });
    fid_ep* ep = nullptr;
    require(fi_endpoint(left->domain, info.get(), &ep, nullptr), "fi_endpoint");
    expect("call fi_enable first", -FI_EOPBADSTATE,
           [&] { return fi_send(ep, text, 1, nullptr, to_right, nullptr); });
    expect("call fi_enable first", -FI_EOPBADSTATE,
           [&] { return fi_recv(ep, text, 1, nullptr, FI_ADDR_UNSPEC, nullptr); });
    EXPECT_EQ(fi_close(&ep->fid), 0);
}

TEST_F(Refused, AndWhatWasCancelledNamesTheCallOfTheProgram) {
    char text[8] = {};
    require(fi_trecv(right->ep, text, sizeof(text), nullptr, FI_ADDR_UNSPEC, 1, 0, text),
            "fi_trecv");
    require(fi_cancel(&right->ep->fid, text), "fi_cancel");
    const fi_cq_err_entry error = expect_error(*right);
    EXPECT_EQ(error.err, FI_ECANCELED);
    EXPECT_EQ(std::string(fi_cq_strerror(right->cq, error.prov_errno, nullptr, nullptr, 0)),
              "cancelled by fi_cancel, or by closing the endpoint or the session");
}

}  // namespace
}  // namespace tagwire::fi_test
