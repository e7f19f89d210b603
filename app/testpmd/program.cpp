// SPDX-License-Identifier: BSD-3-Clause
#include "program.h"

#include <fmt/format.h>
#include <rte_ethdev.h>
#include <unistd.h>

#include <algorithm>

#include "app/perf/failure.h"
#include "app/perf/interrupt.h"
#include "port_display.h"

namespace tagwire::testpmd {

using perf::Failure;

namespace {

constexpr int kLinkWaits = 90;  // tenths of a second, as testpmd waits
constexpr useconds_t kLinkWait = 100'000;

std::vector<uint16_t> all_ports() {
    std::vector<uint16_t> list;
    uint16_t id;
    RTE_ETH_FOREACH_DEV(id) {
        list.push_back(id);
    }
    return list;
}

void check_mask(const char* option, uint64_t mask, const std::vector<uint16_t>& ports) {
    for (uint16_t id = 0; mask != ~uint64_t{0} && id < 64; ++id) {
        if ((mask >> id & 1) != 0 && std::find(ports.begin(), ports.end(), id) == ports.end()) {
            throw Failure(fmt::format("{} names port {}, which is not there: {} port(s) found",
                                      option, id, ports.size()),
                          "give EAL a device for each port (--vdev, -a)");
        }
    }
}

}  // namespace

Program::Program(const Options& options) : options_(options) {
    const std::vector<uint16_t> ids = all_ports();
    if (ids.empty()) {
        fmt::print(stderr, "testpmd: No probed ethernet devices\n");
        if (!options_.interactive) {
            throw Failure(
                "there is no port to forward on",
                "name one with EAL arguments before '--': --vdev net_mlx5raw0,ibdev=mlx5_0, "
                "or --vdev net_memif0,role=server,socket=FILE");
        }
    }
    check_mask("--portmask", options_.portmask, ids);
    check_mask("--tag-portmask", options_.tag.portmask, ids);
    const uint32_t lcores = lcores_wanted(options_, ids.size());
    for (const uint16_t id : ids) {
        check_queues(id, options_);
    }
    pool_ = create_mbuf_pool(options_, ids, lcores);
    for (const uint16_t id : ids) {
        ports_.push_back(std::make_unique<Port>(id, options_, pool_.get()));
    }
    engine_ = std::make_unique<Engine>(options_, ports_, pool_.get());
    if (options_.start_ports && !ports_.empty()) {
        start_ports(ports("all"));
    }
}

std::vector<Port*> Program::ports(const std::string& word) const {
    std::vector<Port*> list;
    for (const auto& port : ports_) {
        if (word == "all" || std::to_string(port->id()) == word) {
            list.push_back(port.get());
        }
    }
    if (list.empty()) {
        std::string valid;
        for (const auto& port : ports_) {
            valid += fmt::format("{}{}", valid.empty() ? "" : ", ", port->id());
        }
        throw Failure(word == "all" ? "there is no port" : fmt::format("Invalid port {}", word),
                      valid.empty() ? "give EAL one with --vdev or -a"
                                    : fmt::format("The valid ports array is [ {} ]", valid));
    }
    return list;
}

void Program::start_ports(const std::vector<Port*>& list) {
    bool any = false;
    for (Port* port : list) {
        if (port->started()) {
            fmt::print(stderr, "Port {} is now not stopped\n", port->id());
            continue;
        }
        port->start();
        any = true;
    }
    if (!any) {
        throw Failure("Please stop the ports first");
    }
    if (options_.check_link) {
        wait_for_links();
    }
    fmt::print("Done\n");
}

void Program::wait_for_links() const {
    fmt::print("Checking link statuses...\n");
    const auto all_up = [&] {
        return std::all_of(ports_.begin(), ports_.end(),
                           [](const auto& port) { return !port->started() || port->link_is_up(); });
    };
    for (int i = 0; i < kLinkWaits && !all_up() && perf::g_interrupted == 0; ++i) {
        usleep(kLinkWait);
    }
    for (const auto& port : ports_) {
        if (port->started() && !port->link_is_up()) {
            fmt::print("Port {} Link down\n", port->id());
        }
    }
}

void Program::stop_ports(const std::vector<Port*>& list) {
    fmt::print("Stopping ports...\n");
    std::string refused;
    for (Port* port : list) {
        if (engine_->is_running()) {
            refused += fmt::format("{}{}", refused.empty() ? "" : ", ", port->id());
            continue;
        }
        port->stop();
    }
    fmt::print("Done\n");
    if (!refused.empty()) {
        throw Failure(fmt::format("Please remove port {} from forwarding configuration.", refused),
                      "stop ends forwarding");
    }
}

void Program::set_mode(const std::string& mode) {
    options_.mode = parse_forward_mode(mode);
    fmt::print("Set {} packet forwarding mode\n", options_.mode.name());
}

void Program::show_port(const std::string& what, const std::string& which) const {
    if (what == "summary") {
        show_port_summary_header();
    }
    for (const Port* port : ports(which)) {
        if (what == "info") {
            show_port_info(port->id());
        } else if (what == "stats") {
            show_port_stats(port->id());
        } else if (what == "xstats") {
            show_port_xstats(port->id());
        } else {
            show_port_summary(port->id());
        }
    }
}

void Program::clear_port(const std::string& what, const std::string& which) const {
    for (Port* port : ports(which)) {
        const bool extended = what == "xstats";
        const int error =
            extended ? rte_eth_xstats_reset(port->id()) : rte_eth_stats_reset(port->id());
        if (error != 0) {
            throw Failure(fmt::format("failed to clear {} (port {}): {}", what, port->id(),
                                      rte_strerror(error < 0 ? -error : error)));
        }
        port->note_statistics();
        if (!extended) {
            fmt::print("\n  NIC statistics for port {} cleared\n", port->id());
        }
    }
}

void Program::show_tag(const std::string& what) {
    const std::vector<TagReport> reports = engine_->tag_reports();
    if (reports.empty()) {
        throw Failure("no messages: forwarding was not started in a tag mode",
                      "set fwd tagecho, then start");
    }
    if (what == "peers") {
        show_tag_peers(reports);
    } else if (what == "match") {
        show_tag_match(reports);
    } else {
        show_tag_cq(reports);
    }
}

void Program::wait_for_tags(uint32_t seconds) {
    if (!engine_->is_running() || options_.mode.tag != TagMode::kGenerate ||
        options_.tag.count == 0) {
        throw Failure("nothing to wait for: no taggen with --tag-count runs");
    }
    for (uint32_t i = 0; i < 100 * seconds && !engine_->is_done(); ++i) {
        if (perf::g_interrupted != 0) {
            return;
        }
        usleep(10'000);
    }
    if (!engine_->is_done()) {
        throw Failure(fmt::format("taggen is not done after {} s", seconds));
    }
    fmt::print("Done.\n");
}

void Program::dump_pool(const std::string& name) const {
    rte_mempool* pool = rte_mempool_lookup(name.c_str());
    if (pool == nullptr) {
        throw Failure(fmt::format("Cannot find mempool {}", name), "dump_mempool lists all");
    }
    rte_mempool_dump(stdout, pool);
}

void Program::show_statistics_of_ports() const {
    fmt::print("\nPort statistics ====================================");
    for (const auto& port : ports_) {
        show_port_stats(port->id());
    }
}

void Program::shut_down() {
    if (engine_->is_running()) {
        engine_->stop();
    }
    for (const auto& port : ports_) {
        fmt::print("\nStopping port {}...\n", port->id());
        stop_ports({port.get()});
    }
    for (const auto& port : ports_) {
        fmt::print("\nShutting down port {}...\nClosing ports...\n", port->id());
        port->close();
        fmt::print("Done\n");
    }
    fmt::print("\nBye...\n");
}

}  // namespace tagwire::testpmd
