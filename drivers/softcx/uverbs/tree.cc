// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/softcx/uverbs/tree.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <vector>

#include "drivers/softcx/log.h"
#include "drivers/softcx/model/capabilities.h"
#include "drivers/softcx/model/counters.h"
#include "drivers/softcx/model/machine.h"
#include "drivers/softcx/model/port.h"
#include "drivers/softcx/uverbs/files.h"
#include "drivers/softcx/uverbs/pci_tree.h"

namespace softcx {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "softcx-sys-";
constexpr const char* kLockName = "lock";

struct Tree {
    std::mutex mutex;
    std::string root;
    int lock_fd = -1;
    pid_t owner = 0;
    bool tried = false;
};

Tree& tree() {
    // Never destroyed: paths may be asked for until the very end.
    static Tree* instance = [] {
        auto* made = new Tree;
        ::pthread_atfork([] { tree().mutex.lock(); }, [] { tree().mutex.unlock(); },
                         [] { tree().mutex.unlock(); });
        return made;
    }();
    return *instance;
}

void write_file(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444);
    if (fd < 0)
        throw fs::filesystem_error("open", path, std::error_code(errno, std::system_category()));
    const std::string line = text + "\n";
    const bool complete =
        ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
    const int error = errno;
    ::close(fd);
    if (!complete)
        throw fs::filesystem_error("write", path, std::error_code(error, std::system_category()));
}

std::string in_groups(const uint8_t* bytes, int count) {
    std::string text;
    char group[8];
    for (int i = 0; i < count; i += 2) {
        std::snprintf(group, sizeof(group), "%s%02x%02x", i == 0 ? "" : ":", bytes[i],
                      bytes[i + 1]);
        text += group;
    }
    return text;
}

std::string guid_text(uint64_t guid) {
    uint8_t bytes[8];
    for (int i = 0; i < 8; ++i)
        bytes[i] = static_cast<uint8_t>(guid >> (56 - 8 * i));
    return in_groups(bytes, 8);
}

void write_port(const fs::path& folder, const Port& port, const std::string* netdev) {
    write_file(folder / "state", "4: ACTIVE");
    write_file(folder / "phys_state", "5: LinkUp");
    write_file(folder / "rate", "100 Gb/sec (4X EDR)");
    write_file(folder / "link_layer", "Ethernet");
    write_file(folder / "cap_mask", "0x04010000");
    write_file(folder / "lid", "0x0");
    write_file(folder / "sm_lid", "0x0");
    write_file(folder / "pkeys/0", "0xffff");
    for (const std::string_view name : counter_names(CounterFolder::kHardware))
        write_file(folder / "hw_counters" / name, "0");
    write_file(folder / "hw_counters/lifespan", "10");
    for (const std::string_view name : counter_names(CounterFolder::kPort))
        write_file(folder / "counters" / name, "0");
    fs::create_directories(folder / "gid_attrs/ndevs");
    for (uint32_t index = 0; index < kGidTableLength; ++index) {
        Gid gid;
        GidType type;
        const bool used = gid_entry(port, index, gid, type);
        const std::string name = std::to_string(index);
        write_file(folder / "gids" / name, in_groups(gid.data(), 16));
        if (!used)
            continue;
        write_file(folder / "gid_attrs/types" / name,
                   type == GidType::kRoceV1 ? "IB/RoCE v1" : "RoCE v2");
        if (netdev != nullptr)
            write_file(folder / "gid_attrs/ndevs" / name, *netdev);
    }
}

// What `device` of the class folder names: the PCI function where there is one.
void write_parent(const fs::path& sys, const fs::path& folder, const Device& device) {
    const std::string* netdev = machine().configuration.netdev_of(device.index);
    if (netdev != nullptr) {
        const fs::path function = write_pci_function(sys, device, *netdev, write_file);
        fs::create_directory_symlink(fs::relative(function, folder), folder / "device");
        return;
    }
    write_file(folder / "device/modalias", kModalias);
    write_file(folder / "device/vendor", "0x15b3");
    write_file(folder / "device/device", "0x1017");
    write_file(folder / "device/numa_node", "-1");
}

void write_device(const fs::path& sys, const Device& device) {
    const fs::path classes = sys / "class";
    const std::string node = "uverbs" + std::to_string(device.index);
    const fs::path verbs = classes / "infiniband_verbs" / node;
    write_file(verbs / "ibdev", device.name);
    write_file(verbs / "dev", std::to_string(kUverbsMajor) + ":" +
                                  std::to_string(kUverbsFirstMinor + device.index));
    write_file(verbs / "abi_version", "1");

    const fs::path folder = classes / "infiniband" / device.name;
    write_file(folder / "node_type", "1: CA");
    write_file(folder / "node_guid", guid_text(device.node_guid));
    write_file(folder / "sys_image_guid", guid_text(device.node_guid));
    write_file(folder / "node_desc", "softcx " + device.name);
    write_file(folder / "fw_ver", kFirmwareVersion);
    write_file(folder / "board_id", kBoardId);
    write_file(folder / "hca_type", kHcaType);
    write_file(folder / "hw_rev", "0");
    write_parent(sys, folder, device);
    write_port(folder / "ports/1", device.port, machine().configuration.netdev_of(device.index));
}

// Folders of processes that were killed: their lock is free.
void remove_stale(const fs::path& base) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(base, ignored)) {
        const std::string name = entry.path().filename();
        if (name.rfind(kPrefix, 0) != 0)
            continue;
        const int fd = ::open((entry.path() / kLockName).c_str(), O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (::flock(fd, LOCK_EX | LOCK_NB) == 0)
            fs::remove_all(entry.path(), ignored);
        ::close(fd);
    }
}

// The lock is taken before it has its name, so that a folder in the making is not
// mistaken for a stale one.
int take_lock(const fs::path& root) {
    const fs::path unnamed = root / "lock.new";
    const int fd = ::open(unnamed.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || ::flock(fd, LOCK_EX | LOCK_NB) != 0)
        throw fs::filesystem_error("lock", unnamed, std::error_code(errno, std::system_category()));
    fs::rename(unnamed, root / kLockName);
    return fd;
}

std::vector<std::string> possible_bases() {
    std::vector<std::string> bases{"/dev/shm"};
    if (const char* chosen = std::getenv("TMPDIR"))
        bases.emplace_back(chosen);
    bases.emplace_back("/tmp");
    return bases;
}

bool build_in(const std::string& base, Tree& made) {
    std::string pattern = base + "/" + kPrefix + "XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr)
        return false;
    made.root = pattern;
    made.owner = ::getpid();
    try {
        made.lock_fd = take_lock(pattern);
        remove_stale(base);
        const fs::path sys = fs::path(pattern) / "sys";
        fs::create_directories(sys / "class/infiniband");
        write_file(sys / "class/infiniband_verbs/abi_version", "6");
        // Folders in memory list what is newest first, and programs take the first device.
        const auto& devices = machine().devices;
        for (auto device = devices.rbegin(); device != devices.rend(); ++device)
            write_device(sys, **device);
        if (!machine().configuration.netdevs.empty())
            link_pci_functions_of_machine(sys);
        return true;
    } catch (const fs::filesystem_error& error) {
        log(LogLevel::kWarn, "no device files below %s: %s", base.c_str(), error.what());
    }
    std::error_code ignored;
    fs::remove_all(pattern, ignored);
    made.root.clear();
    return false;
}

// `path` is `folder` or below it.
bool is_below(const char* path, std::string_view folder) {
    if (std::strncmp(path, folder.data(), folder.size()) != 0)
        return false;
    const char next = path[folder.size()];
    return next == '\0' || next == '/';
}

}  // namespace

const std::string& tree_root() {
    Tree& made = tree();
    // Made outside the lock: it looks at the environment and may log.
    machine();
    const std::lock_guard lock(made.mutex);
    const bool foreign = made.tried && made.owner != 0 && made.owner != ::getpid();
    if (made.tried && !foreign)
        return made.root;
    made.tried = true;
    made.root.clear();
    for (const std::string& base : possible_bases())
        if (build_in(base, made))
            return made.root;
    log(LogLevel::kError, "no room for the device files: make /dev/shm or TMPDIR writable");
    return made.root;
}

void remove_tree() noexcept {
    Tree& made = tree();
    const std::lock_guard lock(made.mutex);
    if (made.root.empty() || made.owner != ::getpid())
        return;
    std::error_code ignored;
    fs::remove_all(made.root, ignored);
    // Peers that were killed may have been the last ones beside this process.
    try {
        remove_stale(fs::path(made.root).parent_path());
    } catch (const std::exception& error) {
        log(LogLevel::kInfo, "what killed processes left stays: %s", error.what());
    }
    made.root.clear();
}

const char* path_in_tree(const char* path, char* room, unsigned long size) {
    if (path == nullptr || std::strncmp(path, "/sys/", 5) != 0)
        return nullptr;
    const bool pci = is_below(path, "/sys/bus/pci/devices");
    if (!pci && !is_below(path, "/sys/class/infiniband") &&
        !is_below(path, "/sys/class/infiniband_verbs"))
        return nullptr;
    if (pci && machine().configuration.netdevs.empty())
        return nullptr;
    const std::string& root = tree_root();
    if (root.empty())
        return nullptr;
    const int length = std::snprintf(room, size, "%s%s", root.c_str(), path);
    return length > 0 && static_cast<unsigned long>(length) < size ? room : nullptr;
}

int device_of_node(const char* path) {
    constexpr const char* kNode = "/dev/infiniband/uverbs";
    constexpr size_t kLength = 22;
    if (path == nullptr || std::strncmp(path, kNode, kLength) != 0)
        return -1;
    const char* digits = path + kLength;
    const char* end = digits + std::strlen(digits);
    unsigned index = 0;
    const auto [stop, error] = std::from_chars(digits, end, index);
    if (error != std::errc{} || stop != end || index >= machine().devices.size())
        return -1;
    return static_cast<int>(index);
}

}  // namespace softcx
