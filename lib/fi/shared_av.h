// SPDX-License-Identifier: BSD-3-Clause
// The table behind an address vector with a name (FI_SHARED_AV): one process inserts, others read.
// It lies in /dev/shm/tagwire-av-USER-NAME. The writer holds a lock on the file and removes it at
// the end; what a killed writer left is removed by the next one.
#pragma once

#include <netinet/in.h>
#include <rdma/fabric.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

namespace tagwire::fi {

class SharedTable {
  public:
    static constexpr size_t kCapacity = 65536;

    // -FI_EADDRINUSE: another process writes to it; -FI_ENOENT: nobody does, to read.
    static int open(const std::string& name, bool read_only, std::unique_ptr<SharedTable>* table);
    ~SharedTable();
    SharedTable(const SharedTable&) = delete;
    SharedTable& operator=(const SharedTable&) = delete;

    bool read_only() const { return read_only_; }
    size_t count() const { return layout_->count.load(std::memory_order_acquire); }
    const sockaddr_in& name(size_t index) const { return layout_->names[index]; }
    // False: it is full.
    bool append(const sockaddr_in& name, fi_addr_t address);
    // What fi_av_attr::map_addr shows: the address of each entry.
    fi_addr_t* map() { return layout_->addresses; }

  private:
    struct Layout {
        std::atomic<size_t> count;
        fi_addr_t addresses[kCapacity];
        sockaddr_in names[kCapacity];
    };

    SharedTable() = default;

    std::string path_;
    int fd_ = -1;
    bool read_only_ = false;
    Layout* layout_ = nullptr;
};

}  // namespace tagwire::fi
