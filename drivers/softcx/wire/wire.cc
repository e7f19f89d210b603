// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/wire/wire.h"

#include <string_view>
#include <vector>

#include "drivers/softcx/wire/local_wire.h"
#include "drivers/softcx/wire/netdev_wire.h"
#include "drivers/softcx/wire/pcap_wire.h"
#include "drivers/softcx/wire/switch_wire.h"

namespace softcx {

namespace {

constexpr std::string_view kSwitch = "switch:";
constexpr std::string_view kNetdev = "netdev:";
constexpr std::string_view kPcap = "pcap:";
constexpr const char* kNetdevRemedy =
    "use names of network devices, each once, such as netdev:veth0,veth1";

std::string behind(const std::string& specification, std::string_view prefix) {
    return specification.substr(prefix.size());
}

std::string check_netdevs(const std::string& text, uint32_t devices) {
    std::vector<std::string> names;
    if (!parse_netdev_names(text, names))
        return kNetdevRemedy;
    if (names.size() != devices)
        return "it names " + std::to_string(names.size()) + " network devices for " +
               std::to_string(devices) + " devices: name one for each (SOFTCX_DEVICES)";
    return {};
}

}  // namespace

std::unique_ptr<Wire> open_wire(const std::string& specification, uint32_t device_index,
                                std::string* error) {
    if (specification == "pair")
        return open_pair_wire(device_index, error);
    if (specification == "loopback")
        return open_loopback_wire(error);
    if (specification.starts_with(kSwitch))
        return open_switch_wire(behind(specification, kSwitch), error);
    *error = check_wire(specification, device_index + 1);
    return nullptr;
}

std::unique_ptr<Wire> open_wire(const std::string& specification, uint32_t device_index,
                                PortCounters& counters, std::string* error) {
    if (specification.starts_with(kNetdev))
        return open_netdev_wire(behind(specification, kNetdev), device_index, counters, error);
    if (specification.starts_with(kPcap))
        return open_pcap_wire(behind(specification, kPcap), device_index, counters, error);
    return open_wire(specification, device_index, error);
}

std::string check_wire(const std::string& specification, uint32_t devices) {
    if (specification == "loopback")
        return {};
    if (specification == "pair")
        return devices % 2 == 0 ? ""
                                : "a pair joins two devices: set SOFTCX_DEVICES to an even number";
    if (specification.starts_with(kSwitch))
        return specification.size() > kSwitch.size() ? "" : "name the switch, as in switch:lab";
    if (specification.starts_with(kNetdev))
        return check_netdevs(behind(specification, kNetdev), devices);
    if (specification.starts_with(kPcap)) {
        PcapPlan plan;
        std::string remedy;
        parse_pcap_plan(behind(specification, kPcap), devices, plan, &remedy);
        return remedy;
    }
    return "no such wire: use loopback, pair, switch:NAME, netdev:NAME,NAME... or "
           "pcap:in=FILE,out=FILE";
}

uint32_t devices_of_wire(const std::string& specification) {
    std::vector<std::string> names;
    if (specification.starts_with(kNetdev) &&
        parse_netdev_names(behind(specification, kNetdev), names))
        return static_cast<uint32_t>(names.size());
    return 0;
}

}  // namespace softcx
