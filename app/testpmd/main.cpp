// SPDX-License-Identifier: BSD-3-Clause
// tagwire-testpmd: EAL arguments, "--", then this program's own.
#include <fmt/format.h>
#include <rte_eal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "app/perf/failure.h"
#include "app/perf/interrupt.h"
#include "console.h"
#include "lib/port/eal_arguments.h"
#include "options.h"
#include "program.h"

namespace tagwire::testpmd {
namespace {

using perf::ExitCode;
using perf::Failure;

struct CommandLine {
    std::vector<std::string> eal;
    std::vector<char*> own;  // starts with the program, as main's argv
};

// Without "--" everything is the EAL's, as with testpmd; but not what only asks.
CommandLine split(int argc, char** argv) {
    CommandLine line;
    const auto separator = std::find_if(argv + 1, argv + argc,
                                        [](const char* text) { return std::string(text) == "--"; });
    line.eal.assign(argv, separator);
    line.own.push_back(argv[0]);
    if (separator != argv + argc) {
        line.own.insert(line.own.end(), separator + 1, argv + argc);
    } else if (argc == 2 &&
               (line.eal[1] == "--help" || line.eal[1] == "-h" || line.eal[1] == "--version")) {
        line.own.push_back(argv[1]);
        line.eal.pop_back();
    }
    return line;
}

void print_failure(const port::Failure& failure) {
    std::fflush(stdout);
    fmt::print(stderr, "tagwire-testpmd: error: {}\n", failure.what());
    if (!failure.remedy().empty()) {
        fmt::print(stderr, "tagwire-testpmd: {}\n", failure.remedy());
    }
}

void lock_memory() {
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        fmt::print(stderr, "testpmd: mlockall() failed with error \"{}\"\n", std::strerror(errno));
    }
}

// A generator with a number of messages ends by itself; all else by enter, or the input's end.
void forward_until_told(Program& program) {
    const Options& options = program.options();
    const bool ends = options.mode.tag == TagMode::kGenerate && options.tag.count != 0;
    fmt::print("No commandline core given, start packet forwarding\n");
    if (!program.engine().is_running()) {  // a command file may have started it
        program.engine().start(options.tx_first);
    }
    if (!ends) {
        fmt::print("Press enter to exit\n");
    }
    constexpr int kTurn = 100;  // ms
    bool at_end = false;
    for (uint64_t waited = 0; perf::g_interrupted == 0 && !(ends && program.engine().is_done());
         waited += kTurn) {
        if (options.stats_period_s != 0 &&
            waited % (uint64_t{1000} * options.stats_period_s) == 0 && waited != 0) {
            program.show_statistics_of_ports();
        }
        char c = 0;
        if (at_end) {
            usleep(1000 * kTurn);
        } else if (wait_for_input(kTurn)) {
            at_end = read(STDIN_FILENO, &c, 1) <= 0;
            if (!at_end || !ends) {
                return;
            }
        }
    }
}

ExitCode run(Program& program) {
    const Options& options = program.options();
    bool right = true;
    Console console(program);
    try {
        if (!options.command_file.empty()) {
            right = console.run_file(options.command_file);
        }
        if (program.wants_to_quit() || perf::g_interrupted != 0) {
            // The file said it all.
        } else if (options.interactive) {
            if (options.auto_start && !program.engine().is_running()) {
                fmt::print("Start automatic packet forwarding\n");
                program.engine().start(0);
            }
            console.interact();
        } else {
            forward_until_told(program);
        }
    } catch (const port::Failure& failure) {
        print_failure(failure);
        right = false;
    }
    if (perf::g_interrupted != 0) {
        std::fflush(stdout);
        fmt::print(stderr, "\nSignal {} received, preparing to exit...\n",
                   int{perf::g_interrupted});
    }
    program.shut_down();
    return right && program.engine().is_right() ? ExitCode::kSuccess : ExitCode::kFailure;
}

ExitCode main_program(int argc, char** argv) {
    CommandLine line = split(argc, argv);
    // Lines appear as they are printed, in a pipe too: scripts wait for them.
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
    try {
        const Options options = parse_options(static_cast<int>(line.own.size()), line.own.data());
        port::EalArguments eal = port::complete_eal_arguments(
            std::move(line.eal), {}, 1 + std::max<uint32_t>(options.cores, options.rx_queues));
        port::choose_device(eal, "tagwire-testpmd");
        for (const std::string& choice : eal.choices) {
            fmt::print("testpmd: {}\n", choice);
        }
        port::initialize_eal(eal);
        perf::install_interrupt_handlers();
        if (options.lock_memory) {
            lock_memory();
        }
        ExitCode code = ExitCode::kFailure;
        {
            Program program(options);
            code = run(program);
        }
        rte_eal_cleanup();
        return code;
    } catch (const Failure& failure) {
        if (failure.exit_code() != ExitCode::kSuccess) {
            print_failure(failure);
        }
        return failure.exit_code();
    } catch (const port::Failure& failure) {
        print_failure(failure);
        return ExitCode::kFailure;
    }
}

}  // namespace
}  // namespace tagwire::testpmd

int main(int argc, char** argv) {
    const auto code = tagwire::testpmd::main_program(argc, argv);
    if (tagwire::perf::g_interrupted != 0) {
        // So that whoever started us sees what ended us.
        std::fflush(stdout);
        std::raise(tagwire::perf::g_interrupted);
    }
    return static_cast<int>(code);
}
