// SPDX-License-Identifier: BSD-3-Clause
// rows.py starts this twice, under softcx-run, with a socket between the two:
//   tagwire-rows [EAL arguments] -- server|client SOCKET ROW...
// Each side goes through the rows; the client prints one line for each, the server what it
// found wrong. Ends at the first row that fails.
#include <rte_eal.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "lib/port/eal_arguments.h"
#include "lib/port/port.h"
#include "test/e2e/rows/rows.h"

namespace tagwire::rows {
namespace {

struct Row {
    int number;
    const char* what;
    void (*function)(Side&);
};

constexpr Row kRows[] = {
    {1, "trecv, trecvv, trecvmsg", receives_with_tag_mask_and_source},
    {2, "tsend, tsendv, tsendmsg", sends_of_every_length},
    {3, "tinject, tinjectdata", injected_buffers_are_free_at_once},
    {4, "tsenddata, REMOTE_CQ_DATA", remote_data_arrives},
    {5, "match rule", the_match_rule},
    {6, "order", the_order_of_receives_and_messages},
    {7, "directed receive", directed_receives},
    {8, "unexpected messages", unexpected_messages_under_a_budget},
    {9, "truncation", truncation},
    {10, "cancel", cancellation},
    {11, "selective completion", selective_completion},
    {12, "MORE", more_leaves_together},
    {13, "INJECT", the_inject_flag},
    {14, "completion levels", completion_levels},
    {15, "FENCE", fences},
    {16, "MULTI_RECV", multi_receive},
    {17, "PEEK", peek},
    {18, "CLAIM", claim},
    {19, "DISCARD", discard},
    {20, "AUTH_KEY", authorization_keys},
    {21, "posting before connect", receives_before_connect},
    {22, "errors", errors_without_effect},
    {23, "enable", nothing_before_enable},
    {24, "completion queue", completion_queues},
};

const Row* find_row(const std::string& number) {
    for (const Row& row : kRows) {
        if (std::to_string(row.number) == number) {
            return &row;
        }
    }
    return nullptr;
}

int run(int argc, char** argv) {
    const port::Port port(0, {});
    SideOptions options;
    options.server = std::strcmp(argv[0], "server") == 0;
    options.socket = std::stoi(argv[1]);
    Side side(options);
    for (int i = 2; i < argc; ++i) {
        const Row* row = find_row(argv[i]);
        if (row == nullptr) {
            throw Failure(std::string("there is no row ") + argv[i]);
        }
        try {
            const std::string saw = side.run(row->number, row->function);
            if (!options.server) {
                fmt::print("T{} ok {}: {}\n", row->number, row->what, saw);
            }
        } catch (const Failure& failure) {
            fmt::print("T{} FAILED {}: {}\n", row->number, row->what, failure.what());
            // The worker still refers to the row's memory.
            std::fflush(stdout);
            std::_Exit(1);
        }
        std::fflush(stdout);
    }
    return 0;
}

}  // namespace
}  // namespace tagwire::rows

int main(int argc, char** argv) {
    int own = 1;
    while (own < argc && std::strcmp(argv[own], "--") != 0) {
        ++own;
    }
    if (argc - own < 3) {
        std::fprintf(stderr,
                     "usage: tagwire-rows [EAL arguments] -- server|client SOCKET ROW...\n");
        return 2;
    }
    try {
        auto eal =
            tagwire::port::complete_eal_arguments(std::vector<std::string>(argv, argv + own));
        tagwire::port::choose_device(eal, "tagwire-rows");
        tagwire::port::initialize_eal(eal);
        const int status = tagwire::rows::run(argc - own - 1, argv + own + 1);
        rte_eal_cleanup();
        return status;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "tagwire-rows: %s\n", error.what());
        return 1;
    }
}
