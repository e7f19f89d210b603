// SPDX-License-Identifier: BSD-3-Clause
#include "lib/fi/refusal.h"

#include <fmt/format.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>

#include "lib/fi/provider.h"

namespace tagwire::fi {
namespace {

struct Word {
    std::string_view core;
    std::string_view libfabric;
};

// Those that are not the same behind "tw_" and "fi_".
constexpr std::array kWords = {
    Word{"max_operations", "TAGWIRE_MAX_OPERATIONS"},
    Word{"tw_progress", "fi_cq_read"},
    Word{"tw_worker_open", "fi_domain"},
    Word{"tw_ep_open", "fi_endpoint"},
    Word{"tw_ep_enable", "fi_enable"},
    Word{"tw_ep_bind_av", "fi_ep_bind"},
    Word{"tw_ep_bind_cq", "fi_ep_bind"},
    Word{"tw_ep_bind_cntr", "fi_ep_bind"},
    Word{"tw_ep_bind_eq", "fi_ep_bind"},
    Word{"tw_ep_bind_receiver", "fi_ep_bind"},
    Word{"tw_ep_name", "fi_getname"},
    Word{"tw_ep_getopt", "fi_getopt"},
    Word{"tw_ep_setopt", "fi_setopt"},
    Word{"tw_pep_open", "fi_passive_ep"},
    Word{"tw_pep_name", "fi_getname"},
    Word{"tw_mr_open", "fi_mr_reg"},
    Word{"tw_mr_bind_cntr", "fi_mr_bind"},
    Word{"tw_atomic_valid", "fi_atomicvalid"},
    Word{"tw_worker_close", "fi_close"},
    Word{"tw_ep_close", "fi_close"},
    Word{"tw_pep_close", "fi_close"},
    Word{"tw_av_close", "fi_close"},
    Word{"tw_cq_close", "fi_close"},
    Word{"tw_cntr_close", "fi_close"},
    Word{"tw_eq_close", "fi_close"},
    Word{"tw_mr_close", "fi_close"},
    Word{"TW_IOV_LIMIT", "iov_limit"},
    Word{"TW_INJECT_SIZE", "inject_size"},
    Word{"TW_MAX_MESSAGE_SIZE", "max_msg_size"},
};

bool in_word(char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

std::string translated(std::string_view word) {
    const auto* found =
        std::find_if(kWords.begin(), kWords.end(), [&](const Word& w) { return w.core == word; });
    if (found != kWords.end()) {
        return std::string(found->libfabric);
    }
    if (word.starts_with("tw_")) {
        return "fi_" + std::string(word.substr(3));
    }
    return word.starts_with("TW_") ? "FI_" + std::string(word.substr(3)) : std::string(word);
}

}  // namespace

int refuse(int error, fi_log_subsys part, const std::string& why, const char* function, int line) {
    if (fi_log_enabled(&provider, FI_LOG_WARN, part) != 0) {
        fi_log(&provider, FI_LOG_WARN, part, function, line, "%s: %s\n", fi_strerror(-error),
               why.c_str());
    }
    return error;
}

int refuse_busy(fi_log_subsys part, const char* object, const char* users, const char* function,
                int line) {
    return refuse(
        -FI_EBUSY, part,
        fmt::format("{} does not close while {} are open: close these first", object, users),
        function, line);
}

int refuse_flags(const char* call, uint64_t flags, uint64_t taken, const char* function, int line) {
    const std::string takes =
        taken == 0 ? "it takes none" : "it takes " + names_of(taken, FI_TYPE_OP_FLAGS);
    return refuse(-FI_EINVAL, FI_LOG_CORE,
                  fmt::format("{} does not take the flags {}; {}", call,
                              names_of(flags & ~taken, FI_TYPE_OP_FLAGS), takes),
                  function, line);
}

int check_wait_object(fi_wait_obj object, const char* function, int line) {
    switch (object) {
        case FI_WAIT_NONE:
        case FI_WAIT_UNSPEC:
        case FI_WAIT_SET:
        case FI_WAIT_FD:
        case FI_WAIT_YIELD:
            return 0;
        case FI_WAIT_MUTEX_COND:
        case FI_WAIT_POLLFD:
            return refuse(-FI_ENOSYS, FI_LOG_CORE,
                          "wait objects are FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_SET "
                          "and FI_WAIT_YIELD",
                          function, line);
    }
    return refuse(
        -FI_EINVAL, FI_LOG_CORE,
        fmt::format("wait_obj {} is none of enum fi_wait_obj", static_cast<unsigned>(object)),
        function, line);
}

int refuse_descriptor(const char* function, int line) {
    return refuse(-FI_ENOSYS, FI_LOG_CORE,
                  "there is no descriptor: open the object with the wait object FI_WAIT_FD",
                  function, line);
}

std::string names_of(uint64_t bits, fi_type type) {
    std::string text;
    for (; bits != 0; bits &= bits - 1) {
        const uint64_t bit = uint64_t{1} << std::countr_zero(bits);
        std::array<char, 64> name{};
        fi_tostr_r(name.data(), name.size(), &bit, type);
        if (name[0] == '\0') {
            // Calls also take bits that are capabilities elsewhere, as FI_TAGGED.
            fi_tostr_r(name.data(), name.size(), &bit, FI_TYPE_CAPS);
        }
        text += text.empty() ? "" : ", ";
        text += name[0] != '\0' ? std::string(name.data()) : fmt::format("{:#x}", bit);
    }
    return text;
}

std::string name_of(uint32_t value, fi_type type) {
    std::array<char, 64> name{};
    fi_tostr_r(name.data(), name.size(), &value, type);
    const std::string_view text(name.data());
    return text.starts_with("FI_") ? std::string(text) : fmt::format("{} (undefined)", value);
}

std::string in_libfabric_words(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        const auto letter = std::find_if(text.begin(), text.end(), in_word);
        const auto end = std::find_if_not(letter, text.end(), in_word);
        result.append(text.begin(), letter);
        result += translated({letter, end});
        text.remove_prefix(static_cast<size_t>(end - text.begin()));
    }
    return result;
}

}  // namespace tagwire::fi
