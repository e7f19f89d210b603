// SPDX-License-Identifier: BSD-3-Clause
// The processes of killed_test.cc.
#pragma once

namespace tagwire::fi_test {

// Tells its name on standard output, receives what has tag 1, and lends a region, until it is
// killed.
[[noreturn]] void run_victim();

// Starts a victim, kills it with every kind of operation under way, and expects each to end in
// time. Prints what files the two have made, a line each. The exit status: 0 when all was as
// expected.
int run_survivor();

}  // namespace tagwire::fi_test
