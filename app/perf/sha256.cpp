// SPDX-License-Identifier: BSD-3-Clause
#include "sha256.h"

#include <fmt/format.h>

#include <array>

#include "failure.h"

namespace tagwire::perf {
namespace {

void check(int result) {
    if (result != 1) {
        throw Failure("libcrypto has no usable SHA-256",
                      "check the OpenSSL configuration (openssl list -digest-algorithms)");
    }
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    check(context_ != nullptr ? 1 : 0);
    check(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
}

void Sha256::update(const void* data, size_t length) {
    check(EVP_DigestUpdate(context_.get(), data, length));
}

std::string Sha256::finish() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int length = 0;
    check(EVP_DigestFinal_ex(context_.get(), digest.data(), &length));
    check(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
    std::string text;
    for (unsigned int i = 0; i < length; ++i) {
        text += fmt::format("{:02x}", digest[i]);
    }
    return text;
}

}  // namespace tagwire::perf
