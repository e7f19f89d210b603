// SPDX-License-Identifier: BSD-3-Clause
#include "lib/port/process_ports.h"

#include <fmt/format.h>
#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <sstream>
#include <vector>

#include "lib/port/eal_arguments.h"
#include "lib/port/eal_options.h"
#include "lib/port/failure.h"
#include "lib/port/misspelling.h"
#include "lib/port/softcx_attach.h"

namespace tagwire::port {
namespace {

constexpr uint16_t kJumboMtu = 9000;
constexpr uint16_t kUsualMtu = 1500;
// Enough for the answer of a process whose helper thread looks once in a millisecond, on a busy
// machine.
constexpr uint32_t kProbeMs = 30;
// Without hugepages: what a worker with its queues may use. Not touched, it costs nothing.
constexpr uint32_t kWorkerMegabytes = 512;

struct Slot {
    std::unique_ptr<Port> port;
    bool taken = false;
};

// Never destroyed: workers may be polled until the very end of the process.
struct Process {
    std::mutex mutex;
    bool ready = false;  // the EAL is up
    std::vector<Slot> slots;
};

Process& process() {
    static auto* instance = new Process;
    return *instance;
}

std::string first_card() {
    std::error_code ignored;
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::directory_iterator("/sys/class/infiniband", ignored)) {
        if (entry.path().filename().string().starts_with("mlx5")) {
            names.push_back(entry.path().filename());
        }
    }
    return names.empty() ? "" : *std::min_element(names.begin(), names.end());
}

bool wants_software(const Settings& settings) {
    return settings.vdev.empty() && (!settings.wire.empty() || first_card().empty());
}

std::string wire_of(const Settings& settings) {
    return settings.wire.empty() ? fmt::format("switch:tagwire-{}", geteuid()) : settings.wire;
}

// A wire in shared memory between the processes of one host: process ids are different there.
bool is_local_wire(const Settings& settings) {
    return wants_software(settings) && !wire_of(settings).starts_with("netdev:") &&
           !wire_of(settings).starts_with("pcap:");
}

// 24 bits that no other worker of the same network has: on a wire of one host the process id with
// the worker's number behind it, elsewhere random ones.
uint32_t distinct_number(const Settings& settings, unsigned index) {
    uint32_t process_ids = 0;
    std::ifstream("/proc/sys/kernel/pid_max") >> process_ids;
    const int bits = 24 - std::bit_width(std::max<uint32_t>(process_ids, 2) - 1);
    if (is_local_wire(settings) && bits > 0) {
        return (static_cast<uint32_t>(getpid()) << bits) + index;
    }
    static const uint32_t chosen = std::random_device()() & 0xffff00;
    return chosen + index;
}

// A wire on network devices has one port for each; on others any number finds room.
unsigned ports_of(const Settings& settings) {
    const std::string wire = wire_of(settings);
    if (!wants_software(settings) || !wire.starts_with("netdev:")) {
        return settings.workers;
    }
    const auto devices = static_cast<unsigned>(std::count(wire.begin(), wire.end(), ',') + 1);
    return std::min(devices, settings.workers);
}

std::string mac_text(uint32_t number) {
    return fmt::format("02:54:57:{:02x}:{:02x}:{:02x}", number >> 16 & 0xff, number >> 8 & 0xff,
                       number & 0xff);
}

std::vector<std::string> words(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> list;
    for (std::string word; stream >> word;) {
        list.push_back(word);
    }
    return list;
}

void start_eal(const Settings& settings) {
    for (const std::string& line : misspelt_variables(environ)) {
        rte_log(RTE_LOG_WARNING, RTE_LOGTYPE_USER1, "tagwire: %s\n", line.c_str());
    }
    if (wants_software(settings)) {
        attach_softcx({.library = settings.softcx,
                       .wire = wire_of(settings),
                       .mac = mac_text(distinct_number(settings, 0)),
                       .devices = ports_of(settings)});
    }
    std::vector<std::string> given = words(settings.eal_args);
    check_eal_arguments("TAGWIRE_EAL_ARGS", given);
    given.insert(given.begin(), "tagwire");
    if (!has_option(given, {"--no-pci", "-a", "--allow", "-b", "--block"})) {
        given.emplace_back("--no-pci");
    }
    if (!has_option(given, {"--log-level"})) {
        given.emplace_back("--log-level=*:error");
        // Which peer cannot be reached: most programs tell no more than the errno.
        given.emplace_back("--log-level=tagwire.*:notice");
    }
    initialize_eal(complete_eal_arguments(
        std::move(given),
        {.hugepage_bytes = uint64_t{1} << 30,
         .no_huge_megabytes = kWorkerMegabytes * std::max(settings.workers, 4u)}));
    // Runs the software device; does nothing without one. Usually the EAL knows it already.
    const int result = rte_vdev_init("softcx_step0", "");
    if (result != 0 && result != -EEXIST) {
        throw Failure(fmt::format("the EAL takes no device: {}", rte_strerror(-result)),
                      "the program has DPDK in use as a secondary process?");
    }
}

// The device of worker `index`, made if need be; returns its port.
uint16_t find_port(const Settings& settings, unsigned index) {
    std::string device = settings.vdev;
    if (has_option(words("tagwire " + settings.eal_args), {"--vdev", "-a", "--allow"})) {
        uint16_t port_id = 0;
        unsigned seen = 0;
        RTE_ETH_FOREACH_DEV(port_id) {
            if (seen++ == index) {
                return port_id;
            }
        }
        throw Failure(
            fmt::format("the EAL has {} ports, and {} workers are wanted", seen, index + 1),
            "name one more device in TAGWIRE_EAL_ARGS");
    }
    if (device.empty() && wants_software(settings)) {
        device = fmt::format("net_mlx5raw{},ibdev=mlx5_{}", index, index);
    } else if (device.empty()) {
        device = fmt::format("net_mlx5raw{},ibdev={},mac={}", index, first_card(),
                             mac_text(distinct_number(settings, index)));
    } else if (index > 0) {
        throw Failure("TAGWIRE_VDEV names one device, and a second worker is wanted",
                      "name one device for each worker in TAGWIRE_EAL_ARGS, as --vdev=...");
    }
    const std::string name = device.substr(0, device.find(','));
    if (name.starts_with("net_mlx5raw") && first_mlx5_device().empty()) {
        throw Failure(
            fmt::format("TAGWIRE_VDEV={} wants an mlx5 RDMA device, and there is none", device),
            "with a card, load mlx5_ib (modprobe mlx5_ib) and check ibv_devices; without one, "
            "leave TAGWIRE_VDEV unset, which takes the software card, or start the program under "
            "softcx-run");
    }
    const std::string arguments =
        name.size() < device.size() ? device.substr(name.size() + 1) : std::string{};
    uint16_t port_id = 0;
    if (rte_eth_dev_get_port_by_name(name.c_str(), &port_id) == 0) {
        return port_id;
    }
    if (const int result = rte_vdev_init(name.c_str(), arguments.c_str()); result != 0) {
        const std::string complaint = softcx_complaint();
        throw complaint.empty()
            ? Failure(fmt::format("the device '{}' cannot be opened: {}", device,
                                  rte_strerror(-result)),
                      "TAGWIRE_EAL_ARGS=--log-level=*:info says more")
            : Failure(fmt::format("the device '{}' cannot be opened: {}", device, complaint));
    }
    if (rte_eth_dev_get_port_by_name(name.c_str(), &port_id) != 0) {
        throw Failure(fmt::format("the device '{}' is no Ethernet port", device),
                      "TAGWIRE_VDEV takes what EAL's --vdev does");
    }
    return port_id;
}

uint16_t mtu_of(const Settings& settings) {
    if (settings.mtu != 0) {
        return settings.mtu;
    }
    return is_local_wire(settings) ? kJumboMtu : uint16_t{0};
}

}  // namespace

Prospect prospect(const Settings& settings) {
    if (!settings.vdev.empty()) {
        return {settings.vdev.substr(0, settings.vdev.find(',')), "its own", false, settings.mtu};
    }
    if (!wants_software(settings)) {
        return {first_card(), "the network", false, settings.mtu};
    }
    return {"softcx", wire_of(settings), true, mtu_of(settings)};
}

tw_address address_of_worker(const Settings& settings, unsigned index) {
    const uint32_t number = distinct_number(settings, index);
    const std::string ip =
        index < settings.ip.size()
            ? settings.ip[index]
            : fmt::format("10.{}.{}.{}", number >> 16 & 0xff, number >> 8 & 0xff, number & 0xff);
    tw_address address{};
    if (tw_address_parse(fmt::format("{}:{}", ip, settings.udp_port).c_str(), &address) < 0) {
        throw Failure(fmt::format("{} is no address", ip), tw_last_error());
    }
    return address;
}

std::unique_ptr<Lease> Lease::acquire(const Settings& settings) {
    Process& all = process();
    const std::lock_guard guard(all.mutex);
    if (!all.ready) {
        start_eal(settings);
        all.ready = true;
    }
    unsigned index = 0;
    while (index < all.slots.size() && all.slots[index].taken) {
        ++index;
    }
    if (index >= ports_of(settings)) {
        throw Failure(fmt::format("all {} ports of this process are in use", ports_of(settings)),
                      ports_of(settings) == settings.workers
                          ? "TAGWIRE_WORKERS allows more; each takes a port of its own"
                          : "each takes a network device of its own: name more in TAGWIRE_WIRE");
    }
    if (index == all.slots.size()) {
        const uint16_t mtu = mtu_of(settings);
        const uint64_t held_bytes = uint64_t{settings.unexpected_mb} << 20;
        const auto held = static_cast<uint32_t>(held_bytes / (mtu != 0 ? mtu : kUsualMtu));
        all.slots.push_back({std::make_unique<Port>(find_port(settings, index),
                                                    PortOptions{.mtu = mtu, .held_frames = held}),
                             false});
    }
    all.slots[index].taken = true;
    return std::unique_ptr<Lease>(new Lease(all.slots[index].port.get(), index, settings));
}

Lease::~Lease() {
    Process& all = process();
    const std::lock_guard guard(all.mutex);
    all.slots[index_].taken = false;
}

tw_worker_attr Lease::worker_attr() const {
    tw_worker_attr attr;
    tw_worker_attr_init(&attr);
    attr.port_id = port_->id();
    attr.queue_id = 0;
    attr.address = address_of_worker(settings_, index_);
    std::copy_n(port_->mac().addr_bytes, sizeof(attr.mac), attr.mac);
    attr.mtu = port_->mtu();
    attr.max_operations = settings_.max_operations;
    attr.max_peers = settings_.max_peers;
    attr.unexpected_bytes = uint64_t{settings_.unexpected_mb} << 20;
    attr.peer_timeout_ms = settings_.peer_timeout_ms;
    attr.probe_ms = kProbeMs;
    return attr;
}

}  // namespace tagwire::port
