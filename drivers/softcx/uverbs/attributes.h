// SPDX-License-Identifier: BSD-3-Clause
// The attributes of one ioctl, read with the kernel's checks.
#pragma once

#include <rdma/rdma_user_ioctl_cmds.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>

#include "drivers/softcx/uverbs/command.h"

namespace softcx {

class Attributes {
  public:
    explicit Attributes(std::span<ib_uverbs_attr> attributes) : attributes_(attributes) {}

    bool has(uint16_t id) const { return find(id) != nullptr; }

    bool has_duplicates() const {
        for (size_t i = 0; i < attributes_.size(); ++i)
            for (size_t j = i + 1; j < attributes_.size(); ++j)
                if (attributes_[i].attr_id == attributes_[j].attr_id)
                    return true;
        return false;
    }

    // An attribute that the method does not know may be optional to the client.
    int allow_only(std::initializer_list<int> known) const {
        for (const ib_uverbs_attr& attribute : attributes_) {
            const bool is_known =
                std::find(known.begin(), known.end(), attribute.attr_id) != known.end();
            if (!is_known && (attribute.flags & UVERBS_ATTR_F_MANDATORY) != 0)
                return EPROTONOSUPPORT;
        }
        return 0;
    }

    // A number. Zero bytes above it may follow; constants come as 64 bits.
    template <class Number>
    int read(uint16_t id, Number& value) const {
        const ib_uverbs_attr* attribute = find(id);
        if (attribute == nullptr || attribute->len < sizeof(Number))
            return EINVAL;
        std::span<const uint8_t> bytes;
        if (const int error = input(id, bytes))
            return error;
        return read_request(bytes, value);
    }

    // Eight bytes or less lie in the attribute itself. Empty when it is absent.
    int input(uint16_t id, std::span<const uint8_t>& bytes) const {
        const ib_uverbs_attr* attribute = find(id);
        bytes = {};
        if (attribute == nullptr || attribute->len == 0)
            return 0;
        if (attribute->len <= sizeof(attribute->data)) {
            bytes = {reinterpret_cast<const uint8_t*>(&attribute->data), attribute->len};
            return 0;
        }
        if (!memory_is_mapped(attribute->data, attribute->len, false))
            return EFAULT;
        bytes = {reinterpret_cast<const uint8_t*>(attribute->data), attribute->len};
        return 0;
    }

    int output(uint16_t id, std::span<uint8_t>& bytes) const {
        const ib_uverbs_attr* attribute = find(id);
        bytes = {};
        if (attribute == nullptr || attribute->len == 0)
            return 0;
        if (!memory_is_mapped(attribute->data, attribute->len, true))
            return EFAULT;
        bytes = {reinterpret_cast<uint8_t*>(attribute->data), attribute->len};
        return 0;
    }

    int handle(uint16_t id, uint32_t& value) const {
        const ib_uverbs_attr* attribute = find(id);
        if (attribute == nullptr || attribute->len != 0 || attribute->data > UINT32_MAX)
            return EINVAL;
        value = static_cast<uint32_t>(attribute->data);
        return 0;
    }

    void set_handle(uint16_t id, uint32_t value) const { find(id)->data = value; }

    void mark_written(uint16_t id) const {
        if (ib_uverbs_attr* attribute = find(id))
            attribute->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
    }

  private:
    ib_uverbs_attr* find(uint16_t id) const {
        for (ib_uverbs_attr& attribute : attributes_)
            if (attribute.attr_id == id)
                return &attribute;
        return nullptr;
    }

    std::span<ib_uverbs_attr> attributes_;
};

}  // namespace softcx
