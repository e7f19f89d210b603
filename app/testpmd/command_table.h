// SPDX-License-Identifier: BSD-3-Clause
// Commands for rte_cmdline, made of patterns; and what is wrong with a line that is none.
#pragma once

#include <cmdline_parse.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tagwire::testpmd {

using Words = std::vector<std::string>;  // of the line, the command's own ones too

struct Command {
    // Words as they are typed ("show port info|stats"), or in capitals what stands there: PORTS (a
    // port number or "all"), NUMBER, and WORD for anything.
    std::string pattern;
    std::string section;  // of the help
    std::string help;
    std::function<void(const Words&)> run;  // may throw perf::Failure
};

class CommandTable {
  public:
    // `failed` gets what the command threw.
    CommandTable(std::vector<Command> commands,
                 std::function<void(const std::string& what, const std::string& remedy)> failed);
    ~CommandTable();
    CommandTable(const CommandTable&) = delete;
    CommandTable& operator=(const CommandTable&) = delete;

    cmdline_parse_ctx_t* context() { return context_.data(); }
    const std::vector<Command>& commands() const { return commands_; }

    // Why the last line that rte_cmdline refused is no command; empty when it starts like none.
    // rte_cmdline calls back for every line, so it is known as soon as it was refused.
    static const std::string& diagnosis();
    // Called with it at once, before rte_cmdline's own "Bad arguments".
    static void on_diagnosis(std::function<void(const std::string&)> callback);

  private:
    struct Token;
    struct Instruction;

    static void run(void* words, cmdline* cl, void* instruction);

    std::vector<Command> commands_;
    std::function<void(const std::string&, const std::string&)> failed_;
    std::vector<std::unique_ptr<Instruction>> instructions_;
    std::vector<cmdline_parse_inst_t*> context_;
};

}  // namespace tagwire::testpmd
