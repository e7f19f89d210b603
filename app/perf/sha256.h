// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <memory>
#include <string>

namespace tagwire::perf {

class Sha256 {
  public:
    Sha256();
    void update(const void* data, size_t length);
    std::string finish();  // 64 lower-case hexadecimal digits; starts over

  private:
    std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace tagwire::perf
