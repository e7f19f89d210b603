// SPDX-License-Identifier: BSD-3-Clause
// Two domains of one process, each a port of one software switch, with an endpoint each.
#pragma once

#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace tagwire::fi_test {

inline void require(ssize_t result, const char* what) {
    if (result < 0) {
        throw std::runtime_error(std::string(what) + ": " + fi_strerror(static_cast<int>(-result)));
    }
}

struct InfoDeleter {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, InfoDeleter>;

inline Info make_hints() {
    Info hints(fi_allocinfo());
    hints->fabric_attr->prov_name = strdup("tagwire");
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    return hints;
}

inline Info get_info(const fi_info& hints, uint32_t version = FI_VERSION(1, 17)) {
    fi_info* info = nullptr;
    require(fi_getinfo(version, nullptr, nullptr, 0, &hints, &info), "fi_getinfo");
    return Info(info);
}

struct Side {
    // `prepare` has the address vector before an endpoint is bound to it.
    Side(fid_fabric* fabric, fi_info* info, uint64_t bind_flags = 0,
         const std::function<void(fid_av*)>& prepare = {}) {
        require(fi_domain(fabric, info, &domain, nullptr), "fi_domain");
        fi_av_attr av_attr{};
        av_attr.type = FI_AV_TABLE;
        require(fi_av_open(domain, &av_attr, &av, nullptr), "fi_av_open");
        if (prepare) {
            prepare(av);
        }
        fi_cq_attr cq_attr{};
        cq_attr.format = FI_CQ_FORMAT_TAGGED;
        cq_attr.wait_obj = FI_WAIT_FD;
        require(fi_cq_open(domain, &cq_attr, &cq, nullptr), "fi_cq_open");
        require(fi_endpoint(domain, info, &ep, nullptr), "fi_endpoint");
        require(fi_ep_bind(ep, &av->fid, 0), "bind av");
        require(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV | bind_flags), "bind cq");
        require(fi_enable(ep), "fi_enable");
    }
    ~Side() {
        EXPECT_EQ(fi_close(&ep->fid), 0);
        EXPECT_EQ(fi_close(&cq->fid), 0);
        EXPECT_EQ(fi_close(&av->fid), 0);
        EXPECT_EQ(fi_close(&domain->fid), 0);
    }
    Side(const Side&) = delete;
    Side& operator=(const Side&) = delete;

    std::vector<char> name() const {
        std::vector<char> bytes(64);
        size_t length = bytes.size();
        require(fi_getname(&ep->fid, bytes.data(), &length), "fi_getname");
        bytes.resize(length);
        return bytes;
    }
    fi_addr_t insert(const Side& other) {
        fi_addr_t address = FI_ADDR_UNSPEC;
        EXPECT_EQ(fi_av_insert(av, other.name().data(), 1, &address, 0, nullptr), 1);
        return address;
    }

    fid_domain* domain = nullptr;
    fid_av* av = nullptr;
    fid_cq* cq = nullptr;
    fid_ep* ep = nullptr;
};

class Pair : public testing::Test {
  protected:
    void open(const fi_info& hints, uint64_t bind_flags = 0) {
        info = get_info(hints);
        require(fi_fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
        left = std::make_unique<Side>(fabric, info.get(), bind_flags);
        right = std::make_unique<Side>(fabric, info.get(), bind_flags);
        to_right = left->insert(*right);
        to_left = right->insert(*left);
    }
    void TearDown() override {
        left.reset();
        right.reset();
        if (fabric != nullptr) {
            EXPECT_EQ(fi_close(&fabric->fid), 0);
        }
    }

    // The next completion of `side`, while the other side works, too. 1, or the error of
    // fi_cq_read.
    ssize_t wait(Side& side, fi_cq_tagged_entry* entry, fi_addr_t* source = nullptr) {
        Side& other = &side == left.get() ? *right : *left;
        for (long turn = 0; turn < 20'000'000; ++turn) {
            fi_addr_t from = FI_ADDR_NOTAVAIL;
            const ssize_t result = fi_cq_readfrom(side.cq, entry, 1, &from);
            if (result != -FI_EAGAIN) {
                if (source != nullptr) {
                    *source = from;
                }
                return result;
            }
            fi_cq_read(other.cq, nullptr, 0);
        }
        return -FI_ETIMEDOUT;
    }
    fi_cq_tagged_entry expect(Side& side, uint64_t flags, fi_addr_t* source = nullptr) {
        fi_cq_tagged_entry entry{};
        EXPECT_EQ(wait(side, &entry, source), 1);
        EXPECT_EQ(entry.flags, flags);
        return entry;
    }
    fi_cq_err_entry expect_error(Side& side) {
        fi_cq_tagged_entry entry{};
        EXPECT_EQ(wait(side, &entry), -FI_EAVAIL);
        fi_cq_err_entry error{};
        EXPECT_EQ(fi_cq_readerr(side.cq, &error, 0), 1);
        return error;
    }

    Info info;
    fid_fabric* fabric = nullptr;
    std::unique_ptr<Side> left;
    std::unique_ptr<Side> right;
    fi_addr_t to_right = FI_ADDR_UNSPEC;
    fi_addr_t to_left = FI_ADDR_UNSPEC;
};

}  // namespace tagwire::fi_test
