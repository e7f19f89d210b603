// SPDX-License-Identifier: BSD-3-Clause
// Where libFuzzer enters each target of the device model.
#include "test/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    softcx::fuzz::choose_log_level();
    softcx::fuzz::Input input(data, size);
    softcx::fuzz::run(input);
    return 0;
}
