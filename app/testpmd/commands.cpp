// SPDX-License-Identifier: BSD-3-Clause
// The commands at the prompt. Names are those of DPDK's testpmd where the meaning is the same.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <set>

#include "app/perf/failure.h"
#include "program.h"

namespace tagwire::testpmd {

using perf::Failure;

namespace {

// Below ten digits: the table sees to it.
uint32_t number(const std::string& word) {
    return static_cast<uint32_t>(std::stoul(word));
}

std::string alternatives(const std::vector<std::string>& words) {
    return fmt::format("{}", fmt::join(words, "|"));
}

}  // namespace

std::vector<Command> Program::commands() {
    std::vector<Command> all = control_commands();
    for (std::vector<Command> more : {display_commands(), config_commands()}) {
        all.insert(all.end(), std::make_move_iterator(more.begin()),
                   std::make_move_iterator(more.end()));
    }
    return all;
}

std::vector<Command> Program::control_commands() {
    return {
        {"start", "control", "Start packet forwarding with current configuration.",
         [this](const Words&) { engine_->start(0); }},
        {"start tx_first", "control", "The same, after sending one burst of packets.",
         [this](const Words&) { engine_->start(1); }},
        {"start tx_first NUMBER", "control", "The same, after sending that many bursts.",
         [this](const Words& words) { engine_->start(number(words[2])); }},
        {"stop", "control", "Stop packet forwarding, and display accumulated statistics.",
         [this](const Words&) { engine_->stop(); }},
        {"wait tag NUMBER", "control",
         "Wait up to NUMBER seconds until taggen has sent all, and has its answers.",
         [this](const Words& words) { wait_for_tags(number(words[2])); }},
        {"quit", "control", "Stop and close everything, then end.",
         [this](const Words&) { quit_ = true; }},
        {"help", "control", "The sections of the help.", [this](const Words&) { show_help(""); }},
        {"help control|display|config|ports|all", "control", "The commands of a section.",
         [this](const Words& words) { show_help(words[1]); }},
    };
}

std::vector<Command> Program::display_commands() {
    return {
        {"show port info|stats|xstats|summary PORTS", "display",
         "Display information for a port, or all.",
         [this](const Words& words) { show_port(words[2], words[3]); }},
        {"clear port stats|xstats PORTS", "display", "Clear a port's counters, or those of all.",
         [this](const Words& words) { clear_port(words[2], words[3]); }},
        {"show fwd stats all", "display",
         "Display what was forwarded since start, and the cycles that it took.",
         [this](const Words&) { engine_->show_statistics(); }},
        {"clear fwd stats all", "display", "Clear these.",
         [this](const Words&) { engine_->clear_statistics(); }},
        {"show tag peers|match|cq", "display",
         "Display the messages of each peer, the matching, the completion queues.",
         [this](const Words& words) { show_tag(words[2]); }},
        {"show config fwd", "display", "Display which lcore forwards what, and where to.",
         [this](const Words&) { engine_->show_config(); }},
        {"dump_mempool", "display", "Display all mempools.",
         [](const Words&) { rte_mempool_list_dump(stdout); }},
        {"dump_mempool WORD", "display", "Display a mempool.",
         [this](const Words& words) { dump_pool(words[1]); }},
    };
}

std::vector<Command> Program::config_commands() {
    const std::string plain = alternatives(plain_mode_names());
    const std::string tag = alternatives(tag_mode_names());
    return {
        {"set fwd " + plain + "|" + tag, "config",
         "Set the forwarding mode, from the next start on.",
         [this](const Words& words) { set_mode(words[2]); }},
        {"set fwd " + tag + " " + plain, "config",
         "The same, with a plain mode for frames that are no messages.",
         [this](const Words& words) { set_mode(words[2] + "," + words[3]); }},
        {"set burst NUMBER", "config", "Set the number of packets per burst.",
         [this](const Words& words) {
             const uint32_t burst = number(words[2]);
             if (burst == 0 || burst > kMaxBurst) {
                 throw Failure(
                     fmt::format("nb pkt per burst: {} is not between 1 and {} (maximum "
                                 "packet per burst), ignored",
                                 burst, kMaxBurst));
             }
             options_.burst = static_cast<uint16_t>(burst);
             fmt::print("Number of packets per burst set to {}\n", burst);
         }},
        {"port start PORTS", "ports", "Start a port, or all.",
         [this](const Words& words) { start_ports(ports(words[2])); }},
        {"port stop PORTS", "ports", "Stop a port, or all.",
         [this](const Words& words) { stop_ports(ports(words[2])); }},
    };
}

void Program::show_help(const std::string& section) {
    if (section.empty()) {
        fmt::print(
            "\nHelp is available for the following sections:\n\n"
            "    help control                    : Start and stop forwarding.\n"
            "    help display                    : Displaying port, stats and config information.\n"
            "    help config                     : Configuration information.\n"
            "    help ports                      : Configuring ports.\n"
            "    help all                        : All of the above sections.\n\n");
        return;
    }
    for (const Command& command : commands()) {
        if (section == "all" || section == command.section) {
            fmt::print("{}\n    {}\n\n", command.pattern, command.help);
        }
    }
}

}  // namespace tagwire::testpmd
