// SPDX-License-Identifier: BSD-3-Clause
// tagwire-perf: EAL arguments, "--", then this program's own.
#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "addresses.h"
#include "client.h"
#include "fabric.h"
#include "failure.h"
#include "file_list.h"
#include "interrupt.h"
#include "lib/port/eal_arguments.h"
#include "lib/port/port.h"
#include "options.h"
#include "report.h"
#include "server.h"

namespace tagwire::perf {
namespace {

struct CommandLine {
    std::vector<std::string> eal;
    std::vector<char*> own;  // starts with the program, as main's argv
};

// Without "--" everything is this program's own.
CommandLine split(int argc, char** argv) {
    CommandLine line;
    const auto separator = std::find_if(argv + 1, argv + argc,
                                        [](const char* text) { return std::string(text) == "--"; });
    const bool separated = separator != argv + argc;
    line.eal.emplace_back(argv[0]);
    if (separated) {
        line.eal.insert(line.eal.end(), argv + 1, separator);
    }
    line.own.push_back(argv[0]);
    line.own.insert(line.own.end(), separated ? separator + 1 : argv + 1, argv + argc);
    return line;
}

// A measurement takes long; that its results cannot be kept is said before it.
void check_json_target(const std::string& path) {
    if (!path.empty() && path != "-" && !std::ofstream(path, std::ios::app)) {
        throw Failure(fmt::format("cannot write the JSON results to {}: {}", path, strerror(errno)),
                      "--json takes a file that can be written, or '-' for standard output",
                      ExitCode::kUsage);
    }
}

// Where a server starts need not be a place for files, unless it was named as one.
void check_folder(const Options& options) {
    const bool named = options.directory != Options{}.directory;
    std::error_code ignored;
    if (named && (!std::filesystem::is_directory(options.directory, ignored) ||
                  access(options.directory.c_str(), W_OK | X_OK) != 0)) {
        throw Failure("received files cannot go to " + options.directory,
                      "--dir takes a folder that exists and can be written", ExitCode::kUsage);
    }
}

// Before the EAL takes its time.
void check_arguments(const Options& options) {
    for (const std::string& text : {options.ip, options.server}) {
        if (!text.empty()) {
            parse_address(text, options.udp_port);
        }
    }
    if (!options.ip.empty() && !options.server.empty() &&
        format_address(parse_address(options.ip, options.udp_port)) ==
            format_address(parse_address(options.server, options.udp_port))) {
        throw Failure("the client has the server's address " + options.server,
                      "give the two sides different ones with --ip", ExitCode::kUsage);
    }
    list_files(options.file.paths);
    list_files(options.share);
    check_folder(options);
    check_json_target(options.json);
}

// softcx without a wire of its own: no other process can be on it.
void warn_of_loopback(const port::PortPath& path, const Report& report) {
    if (path.wire.find("wire loopback") != std::string::npos) {
        report.say(
            "warning: the wire is a loopback inside this process, where nobody else is; start both "
            "sides under softcx-run --wire switch:NAME");
    }
}

void run(const Options& options, Report& report) {
    const port::Port port(options.port, {.mtu = options.mtu});
    report.set_path(port.path());
    for (const std::string& size : port.sizes()) {
        report.say(size);
    }
    warn_of_loopback(port.path(), report);
    Fabric::Config config;
    config.address =
        parse_address(options.ip.empty() ? default_ip(port.mac()) : options.ip, options.udp_port);
    config.timeout_s = options.timeout_s;
    Fabric fabric(port, config);
    report.set("local", fabric.name());
    report.say("local address " + fabric.name());
    if (options.role == Role::kServer) {
        run_server(fabric, options, report);
    } else {
        run_client(fabric, options, report);
    }
    fabric.shut_down();
}

void print_failure(const port::Failure& failure) {
    fmt::print(stderr, "tagwire-perf: error: {}\n", failure.what());
    if (!failure.remedy().empty()) {
        fmt::print(stderr, "tagwire-perf: {}\n", failure.remedy());
    }
}

// The EAL is up; whatever happens, the JSON document is written.
ExitCode run_and_report(const Options& options, Report& report) {
    ExitCode exit_code = ExitCode::kSuccess;
    try {
        run(options, report);
    } catch (const Interrupted& interrupt) {
        // Ending a server that waits for clients is its normal end.
        exit_code = options.role == Role::kServer && options.keep ? ExitCode::kSuccess
                                                                  : interrupt.exit_code();
        report.say("interrupted");
    } catch (const Failure& failure) {
        exit_code = failure.exit_code();
        report.fail(failure.what(), failure.remedy());
        print_failure(failure);
    } catch (const port::Failure& failure) {
        exit_code = ExitCode::kFailure;
        report.fail(failure.what(), failure.remedy());
        print_failure(failure);
    } catch (const std::exception& error) {
        exit_code = ExitCode::kFailure;
        report.fail(error.what(), "");
        print_failure(Failure(error.what()));
    }
    try {
        report.finish(exit_code == ExitCode::kSuccess);
    } catch (const Failure& failure) {
        print_failure(failure);
        exit_code = ExitCode::kFailure;
    }
    return exit_code;
}

ExitCode main_program(int argc, char** argv) {
    CommandLine line = split(argc, argv);
    try {
        const Options options = parse_options(static_cast<int>(line.own.size()), line.own.data());
        check_arguments(options);
        Report report(options.json);
        report.set("role", options.role == Role::kServer ? "server" : "client");
        port::EalArguments eal = port::complete_eal_arguments(std::move(line.eal));
        port::choose_device(eal, "tagwire-perf");
        for (const std::string& choice : eal.choices) {
            report.say(choice);
        }
        port::initialize_eal(eal);
        install_interrupt_handlers();
        const ExitCode exit_code = run_and_report(options, report);
        rte_eal_cleanup();
        return exit_code;
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
}  // namespace tagwire::perf

int main(int argc, char** argv) {
    return static_cast<int>(tagwire::perf::main_program(argc, argv));
}
