// SPDX-License-Identifier: BSD-3-Clause
#include "console.h"

#include <cmdline.h>
#include <cmdline_socket.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "app/perf/failure.h"
#include "app/perf/interrupt.h"

namespace tagwire::testpmd {
namespace {

constexpr const char* kPrompt = "tagwire-testpmd> ";
constexpr int kLookForSignals = 100;  // ms: one may come between the look and the poll

}  // namespace

bool wait_for_input(int milliseconds) {
    for (int waited = 0; perf::g_interrupted == 0; waited += kLookForSignals) {
        if (milliseconds >= 0 && waited >= milliseconds) {
            return false;
        }
        pollfd input{STDIN_FILENO, POLLIN, 0};
        if (poll(&input, 1, kLookForSignals) > 0) {
            return true;
        }
    }
    return false;
}

Console::Console(Program& program)
    : program_(program),
      table_(program.commands(),
             [this](const std::string& what, const std::string& remedy) { report(what, remedy); }) {
    CommandTable::on_diagnosis([this](const std::string& diagnosis) { report(diagnosis, ""); });
}

void Console::report(const std::string& what, const std::string& remedy) {
    std::fflush(stdout);
    fmt::print(stderr, "{}{}{}\n", place_, what, remedy.empty() ? "" : " (" + remedy + ")");
    failed_ = true;
}

bool Console::run_file(const std::string& path) {
    std::ifstream file(path);
    if (!file) {
        throw perf::Failure(
            fmt::format("cannot read the command file {}: {}", path, std::strerror(errno)));
    }
    // No prompt, and nothing is echoed: only the parser is used.
    const std::unique_ptr<cmdline, decltype(&cmdline_free)> cl(
        cmdline_new(table_.context(), "", -1, -1), &cmdline_free);
    uint32_t number = 0, wrong = 0;
    for (std::string line;
         !program_.wants_to_quit() && perf::g_interrupted == 0 && std::getline(file, line);) {
        ++number;
        place_ = fmt::format("{}:{}: ", path, number);
        failed_ = false;
        switch (cmdline_parse(cl.get(), (line + "\n").c_str())) {
            case CMDLINE_PARSE_NOMATCH:
                report("Command not found: " + line, "help all");
                break;
            case CMDLINE_PARSE_BAD_ARGS:
                report("Bad arguments", "");
                break;
            case CMDLINE_PARSE_AMBIGUOUS:
                report("Ambiguous command", "");
                break;
            default:
                break;
        }
        wrong += failed_ ? 1 : 0;
    }
    place_.clear();
    fmt::print("Read CLI commands from {}\n", path);
    if (wrong != 0) {
        report(fmt::format("{} of {} lines of {} failed", wrong, number, path), "");
    }
    return wrong == 0;
}

void Console::interact() {
    // It sets the terminal up for editing, and back.
    cmdline* cl = cmdline_stdin_new(table_.context(), kPrompt);
    if (cl == nullptr) {
        throw perf::Failure("no prompt on standard input");
    }
    char c = 0;
    while (!program_.wants_to_quit() && wait_for_input(-1) && read(STDIN_FILENO, &c, 1) == 1 &&
           cmdline_in(cl, &c, 1) >= 0) {
    }
    cmdline_stdin_exit(cl);  // frees it, too
}

}  // namespace tagwire::testpmd
