// SPDX-License-Identifier: BSD-3-Clause
// The ports, the engine and the commands that work on them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "command_table.h"
#include "engine.h"
#include "options.h"
#include "port.h"

namespace tagwire::testpmd {

class Program {
  public:
    explicit Program(const Options& options);  // throws perf::Failure

    Engine& engine() { return *engine_; }
    const Options& options() const { return options_; }
    std::vector<Command> commands();
    bool wants_to_quit() const { return quit_; }

    void show_statistics_of_ports() const;
    // Stops forwarding, stops and closes the ports, as testpmd's quit does.
    void shut_down();

  private:
    std::vector<Command> control_commands();
    std::vector<Command> display_commands();
    std::vector<Command> config_commands();

    // The ports that "0" or "all" means. Throws perf::Failure when there is no such one.
    std::vector<Port*> ports(const std::string& word) const;
    void start_ports(const std::vector<Port*>& list);
    void stop_ports(const std::vector<Port*>& list);
    void wait_for_links() const;
    void set_mode(const std::string& mode);
    void show_port(const std::string& what, const std::string& which) const;
    void clear_port(const std::string& what, const std::string& which) const;
    void show_tag(const std::string& what);
    void wait_for_tags(uint32_t seconds);
    void dump_pool(const std::string& name) const;
    void show_help(const std::string& section);

    Options options_;
    MbufPool pool_{nullptr, &rte_mempool_free};
    Ports ports_;
    std::unique_ptr<Engine> engine_;
    bool quit_ = false;
};

}  // namespace tagwire::testpmd
