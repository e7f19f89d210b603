// SPDX-License-Identifier: BSD-3-Clause
#include "lib/port/softcx_attach.h"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include "lib/port/failure.h"

namespace tagwire::port {
namespace {

// What drivers/softcx/uverbs/interpose*.cc define, without the calls of trap mode.
constexpr const char* kCalls[] = {
    "open",         "open64",  "openat",   "openat64", "__open_2", "__open64_2", "__openat_2",
    "__openat64_2", "stat",    "lstat",    "fstat",    "stat64",   "lstat64",    "fstat64",
    "statx",        "__xstat", "__lxstat", "__fxstat", "close",    "socket",     "ioctl",
    "opendir",      "access",  "fopen",    "fopen64",  "readlink", "realpath",   "dup",
    "dup2",         "dup3",    "fcntl",    "fcntl64",
};

// The libraries between an ethdev driver and the kernel.
constexpr std::string_view kLibraries[] = {"libibverbs.so", "libmlx5.so", "libmlx5-rdmav",
                                           "libnl-3.so", "libnl-route-3.so"};

#if defined(__x86_64__)
constexpr auto kJumpSlot = R_X86_64_JUMP_SLOT;
constexpr auto kGlobData = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr auto kJumpSlot = R_AARCH64_JUMP_SLOT;
constexpr auto kGlobData = R_AARCH64_GLOB_DAT;
#else
#error "which relocations name a function of another library here?"
#endif

struct Call {
    const char* name;
    void* function;
};

// The tables of a loaded object that say where it keeps the addresses of other objects' functions.
struct Object {
    ElfW(Addr) base = 0;
    const ElfW(Sym) * symbols = nullptr;
    const char* names = nullptr;
    std::array<const ElfW(Rela)*, 2> relocations{};
    std::array<size_t, 2> counts{};
    ElfW(Addr) read_only_start = 0;  // of what the loader protects when it is done (RELRO)
    ElfW(Addr) read_only_end = 0;
};

Object read_object(const dl_phdr_info& info) {
    Object object;
    object.base = info.dlpi_addr;
    const ElfW(Dyn)* entry = nullptr;
    for (ElfW(Half) i = 0; i < info.dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = info.dlpi_phdr[i];
        if (header.p_type == PT_DYNAMIC) {
            entry = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + header.p_vaddr);
        } else if (header.p_type == PT_GNU_RELRO) {
            object.read_only_start = info.dlpi_addr + header.p_vaddr;
            object.read_only_end = object.read_only_start + header.p_memsz;
        }
    }
    for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
        switch (entry->d_tag) {
            case DT_SYMTAB:
                object.symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
                break;
            case DT_STRTAB:
                object.names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
                break;
            case DT_JMPREL:
                object.relocations[0] = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr);
                break;
            case DT_PLTRELSZ:
                object.counts[0] = entry->d_un.d_val / sizeof(ElfW(Rela));
                break;
            case DT_RELA:
                object.relocations[1] = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr);
                break;
            case DT_RELASZ:
                object.counts[1] = entry->d_un.d_val / sizeof(ElfW(Rela));
                break;
            default:
                break;
        }
    }
    return object;
}

void write_slot(const Object& object, ElfW(Addr) slot, void* function) {
    const auto page = static_cast<ElfW(Addr)>(sysconf(_SC_PAGESIZE));
    void* start = reinterpret_cast<void*>(slot & ~(page - 1));
    if (mprotect(start, page, PROT_READ | PROT_WRITE) != 0) {
        throw Failure(fmt::format("softcx cannot be attached: mprotect: {}", std::strerror(errno)),
                      "start the program under softcx-run");
    }
    __atomic_store_n(reinterpret_cast<void**>(slot), function, __ATOMIC_RELEASE);
    if (slot >= object.read_only_start && slot < (object.read_only_end & ~(page - 1))) {
        mprotect(start, page, PROT_READ);
    }
}

void lead_to_softcx(const Object& object, const std::vector<Call>& calls) {
    if (object.symbols == nullptr || object.names == nullptr) {
        return;
    }
    for (size_t table = 0; table < object.relocations.size(); ++table) {
        for (size_t i = 0; object.relocations[table] != nullptr && i < object.counts[table]; ++i) {
            const ElfW(Rela)& relocation = object.relocations[table][i];
            const auto type = ELF64_R_TYPE(relocation.r_info);
            if (type != kJumpSlot && type != kGlobData) {
                continue;
            }
            const auto& symbol = object.symbols[ELF64_R_SYM(relocation.r_info)];
            const char* name = object.names + symbol.st_name;
            for (const Call& call : calls) {
                if (std::strcmp(call.name, name) == 0) {
                    write_slot(object, object.base + relocation.r_offset, call.function);
                }
            }
        }
    }
}

// Of the object that this code is in: a provider, a library, or the program.
ElfW(Addr) own_base(std::string* path) {
    Dl_info own{};
    dladdr(reinterpret_cast<void*>(&attach_softcx), &own);
    *path = own.dli_fname != nullptr ? own.dli_fname : "";
    return reinterpret_cast<ElfW(Addr)>(own.dli_fbase);
}

struct Walk {
    std::vector<Object> objects;
    ElfW(Addr) own_base;
};

int collect(dl_phdr_info* info, size_t, void* argument) {
    auto* walk = static_cast<Walk*>(argument);
    const std::string_view path = info->dlpi_name != nullptr ? info->dlpi_name : "";
    const std::string_view file = path.substr(path.rfind('/') + 1);
    bool wanted = info->dlpi_addr == walk->own_base;
    for (const std::string_view library : kLibraries) {
        wanted = wanted || file.starts_with(library);
    }
    if (wanted) {
        walk->objects.push_back(read_object(*info));
    }
    return 0;
}

// Variables for the time in which softcx reads them. Programs that this one starts must not
// inherit them: they would have this process's MAC address.
class Variables {
  public:
    ~Variables() {
        for (const char* name : set_) {
            unsetenv(name);
        }
    }
    void set(const char* name, const std::string& value) {
        if (std::getenv(name) == nullptr) {
            setenv(name, value.c_str(), 1);
            set_.push_back(name);
        }
    }

  private:
    std::vector<const char*> set_;
};

std::string find_library(const std::string& named, const std::string& own_path) {
    if (!named.empty()) {
        return named;
    }
    namespace fs = std::filesystem;
    const fs::path folder = fs::path(own_path).parent_path();
    // Installed beside it, one above (lib/libfabric/libtagwire-fi.so), or in the build tree.
    for (const fs::path& candidate : {folder / "libsoftcx.so", folder / "../libsoftcx.so",
                                      folder / "../../drivers/softcx/libsoftcx.so"}) {
        std::error_code ignored;
        if (fs::exists(candidate, ignored)) {
            return fs::canonical(candidate, ignored);
        }
    }
    return "libsoftcx.so";
}

}  // namespace

bool softcx_is_here() {
    return dlsym(RTLD_DEFAULT, "softcx_describe") != nullptr;
}

std::string softcx_complaint() {
    using Tell = const char* (*)();
    const auto tell = reinterpret_cast<Tell>(dlsym(RTLD_DEFAULT, "softcx_error"));
    return tell != nullptr ? tell() : std::string{};
}

void attach_softcx(const SoftcxSettings& settings) {
    if (softcx_is_here()) {
        return;
    }
    Variables variables;
    if (!settings.wire.empty() && std::getenv("SOFTCX_WIRE") == nullptr) {
        variables.set("SOFTCX_WIRE", settings.wire);
        variables.set("SOFTCX_WIRE_VARIABLE", "TAGWIRE_WIRE");
    }
    if (!settings.mac.empty() && std::getenv("SOFTCX_NETDEV") == nullptr) {
        variables.set("SOFTCX_MAC", settings.mac);
    }
    variables.set("SOFTCX_DEVICES", std::to_string(settings.devices));
    std::string own_path;
    Walk walk{{}, own_base(&own_path)};
    const std::string library = find_library(settings.library, own_path);
    // Global, so that the EAL plugin that steps it, and people's programs, find its symbols.
    void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (handle == nullptr) {
        throw Failure(
            fmt::format("no RDMA device, and the software one cannot be loaded: {}", dlerror()),
            "install libsoftcx.so beside this library, name it in TAGWIRE_SOFTCX, or "
            "name a DPDK port in TAGWIRE_VDEV");
    }
    std::vector<Call> calls;
    for (const char* name : kCalls) {
        if (void* function = dlsym(handle, name)) {
            calls.push_back({name, function});
        }
    }
    // It reads its variables when it is first asked for something.
    using Describe = const char* (*)();
    reinterpret_cast<Describe>(dlsym(handle, "softcx_describe"))();
    if (const std::string complaint = softcx_complaint(); !complaint.empty()) {
        throw Failure("the software card cannot be used: " + complaint);
    }
    dl_iterate_phdr(collect, &walk);
    for (const Object& object : walk.objects) {
        lead_to_softcx(object, calls);
    }
}

}  // namespace tagwire::port
