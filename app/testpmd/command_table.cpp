// SPDX-License-Identifier: BSD-3-Clause
#include "command_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "app/perf/failure.h"

namespace tagwire::testpmd {
namespace {

constexpr size_t kWordSize = 128;
constexpr size_t kMaxWords = CMDLINE_PARSE_RESULT_BUFSIZE / kWordSize;

const std::vector<std::string> kNothing = {"nothing"};

bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

// As rte_cmdline has it, which does not export its own.
bool is_end_of_line(char c) {
    return c == '\0' || c == '\n' || c == '\r' || c == '#';
}

const char* skip_blanks(const char* text) {
    while (is_blank(*text)) {
        ++text;
    }
    return text;
}

// How far the line got that is being parsed, over all commands: they are tried one after the other.
struct Progress {
    size_t depth = 0;
    bool complete = false;
    std::string found;                  // the first word that fits none
    std::vector<std::string> expected;  // instead of it

    void note(size_t at, const std::vector<std::string>& wanted, const std::string& word) {
        if (at > depth) {
            depth = at;
            expected.clear();
        }
        if (at != depth) {
            return;
        }
        found = word;
        if (expected == kNothing) {
            expected.clear();
        }
        for (const std::string& one : wanted) {
            if ((wanted != kNothing || expected.empty()) &&
                std::find(expected.begin(), expected.end(), one) == expected.end()) {
                expected.push_back(one);
            }
        }
    }
};

Progress g_progress;
std::string g_diagnosis;
std::function<void(const std::string&)> g_on_diagnosis;

std::string word_at(const char* text) {
    const char* end = text;
    while (!cmdline_isendoftoken(*end)) {
        ++end;
    }
    return {text, end};
}

std::string describe(const Progress& progress, const char* line) {
    std::istringstream words(line);
    std::string before, word;
    for (size_t i = 0; i < progress.depth && words >> word; ++i) {
        before += (before.empty() ? "" : " ") + word;
    }
    const std::string wanted = fmt::format("{}{}", progress.expected.size() > 1 ? "one of " : "",
                                           fmt::join(progress.expected, ", "));
    if (progress.found.empty()) {
        return fmt::format("'{}' is not complete: next comes {}", before, wanted);
    }
    if (progress.expected == kNothing) {
        return fmt::format("'{}' is too much after '{}'", progress.found, before);
    }
    return fmt::format("'{}' does not fit after '{}': there comes {}", progress.found, before,
                       wanted);
}

}  // namespace

// rte_cmdline knows the header at the beginning, and calls back through its operations.
struct CommandTable::Token {
    enum class Kind { kWords, kPorts, kNumber, kAny, kEndOfTable };

    cmdline_token_hdr header{};
    Kind kind = Kind::kWords;
    std::vector<std::string> words;
    size_t index = 0;
    bool last = false;
    std::vector<std::string> next;  // what follows, for people

    std::vector<std::string> texts() const {
        switch (kind) {
            case Kind::kWords:
                return words;
            case Kind::kPorts:
                return {"a port number", "all"};
            case Kind::kNumber:
                return {"a number"};
            case Kind::kAny:
            case Kind::kEndOfTable:
                break;
        }
        return {"a word"};
    }

    bool fits(const std::string& word) const {
        const bool number = !word.empty() && word.size() < 10 &&
                            std::all_of(word.begin(), word.end(),
                                        [](unsigned char c) { return std::isdigit(c) != 0; });
        switch (kind) {
            case Kind::kWords:
                return std::find(words.begin(), words.end(), word) != words.end();
            case Kind::kPorts:
                return number || word == "all";
            case Kind::kNumber:
                return number;
            case Kind::kAny:
                return !word.empty();
            case Kind::kEndOfTable:
                break;
        }
        return false;
    }

    // The last instruction of the table: every other one was tried.
    static int end_of_line(const char* line) {
        g_diagnosis.clear();
        if (!g_progress.complete && g_progress.depth > 0) {
            g_diagnosis = describe(g_progress, line);
            if (g_on_diagnosis) {
                g_on_diagnosis(g_diagnosis);
            }
        }
        g_progress = {};
        return -1;
    }

    static int parse(cmdline_parse_token_hdr_t* header, const char* text, void* result,
                     unsigned size) {
        const Token& token = *reinterpret_cast<const Token*>(header);
        // Without a result it is about completion, not a line.
        if (token.kind == Kind::kEndOfTable) {
            return result != nullptr ? end_of_line(text) : -1;
        }
        const std::string word = word_at(text);
        const bool fits = token.fits(word) && word.size() < kWordSize;
        if (result == nullptr) {
            return fits ? static_cast<int>(word.size()) : -1;
        }
        if (!fits || size < kWordSize) {
            g_progress.note(token.index, token.texts(), word);
            return -1;
        }
        std::memcpy(result, word.c_str(), word.size() + 1);
        const char* rest = skip_blanks(text + word.size());
        const bool ends = is_end_of_line(*rest);
        if (token.last && ends) {
            g_progress.complete = true;
        } else if (token.last || ends) {
            g_progress.note(token.index + 1, token.last ? kNothing : token.next, word_at(rest));
        }
        return static_cast<int>(word.size());
    }

    static int count_completions(cmdline_parse_token_hdr_t* header) {
        const Token& token = *reinterpret_cast<const Token*>(header);
        return token.kind == Kind::kPorts ? 1 : static_cast<int>(token.words.size());
    }

    static int completion(cmdline_parse_token_hdr_t* header, int index, char* to, unsigned size) {
        const Token& token = *reinterpret_cast<const Token*>(header);
        const std::string word =
            token.kind == Kind::kPorts ? "all" : token.words.at(static_cast<size_t>(index));
        const bool room = word.size() < size;
        if (room) {
            std::memcpy(to, word.c_str(), word.size() + 1);
        }
        return room ? 0 : -1;
    }

    static int help(cmdline_parse_token_hdr_t* header, char* to, unsigned size) {
        const std::vector<std::string> texts = reinterpret_cast<const Token*>(header)->texts();
        *fmt::format_to_n(to, size - 1, "{}", fmt::join(texts, "|")).out = '\0';
        return 0;
    }
};

struct CommandTable::Instruction {
    CommandTable* table = nullptr;
    const Command* command = nullptr;
    std::string help;
    std::vector<std::unique_ptr<Token>> tokens;
    // It ends with an array of no given length.
    std::unique_ptr<cmdline_parse_inst_t, decltype(&std::free)> raw{nullptr, &std::free};

    void add(Token::Kind kind, const std::string& text) {
        static cmdline_token_ops operations = {&Token::parse, &Token::count_completions,
                                               &Token::completion, &Token::help};
        auto token = std::make_unique<Token>();
        token->kind = kind;
        token->index = tokens.size();
        token->header.ops = &operations;
        token->header.offset = static_cast<unsigned>(tokens.size() * kWordSize);
        if (kind == Token::Kind::kWords) {
            std::istringstream words(text);
            for (std::string word; std::getline(words, word, '|');) {
                token->words.push_back(word);
            }
        }
        tokens.push_back(std::move(token));
    }

    void finish() {
        for (size_t i = 0; i + 1 < tokens.size(); ++i) {
            tokens[i]->next = tokens[i + 1]->texts();
        }
        tokens.back()->last = true;
        const size_t size =
            sizeof(cmdline_parse_inst_t) + (tokens.size() + 1) * sizeof(cmdline_parse_token_hdr_t*);
        raw.reset(static_cast<cmdline_parse_inst_t*>(std::calloc(1, size)));
        if (raw == nullptr) {
            throw std::bad_alloc();
        }
        raw->f = &CommandTable::run;
        raw->data = this;
        raw->help_str = help.c_str();
        for (size_t i = 0; i < tokens.size(); ++i) {
            raw->tokens[i] = &tokens[i]->header;
        }
    }
};

CommandTable::CommandTable(std::vector<Command> commands,
                           std::function<void(const std::string&, const std::string&)> failed)
    : commands_(std::move(commands)), failed_(std::move(failed)) {
    for (const Command& command : commands_) {
        auto instruction = std::make_unique<Instruction>();
        instruction->table = this;
        instruction->command = &command;
        instruction->help = fmt::format("{}: {}", command.pattern, command.help);
        std::istringstream words(command.pattern);
        for (std::string word; words >> word;) {
            instruction->add(word == "PORTS"    ? Token::Kind::kPorts
                             : word == "NUMBER" ? Token::Kind::kNumber
                             : word == "WORD"   ? Token::Kind::kAny
                                                : Token::Kind::kWords,
                             word);
        }
        instruction->finish();
        instructions_.push_back(std::move(instruction));
    }
    auto end = std::make_unique<Instruction>();
    end->add(Token::Kind::kEndOfTable, "");
    end->finish();
    instructions_.push_back(std::move(end));
    for (const auto& instruction : instructions_) {
        context_.push_back(instruction->raw.get());
    }
    context_.push_back(nullptr);
}

CommandTable::~CommandTable() = default;

const std::string& CommandTable::diagnosis() {
    return g_diagnosis;
}

void CommandTable::on_diagnosis(std::function<void(const std::string&)> callback) {
    g_on_diagnosis = std::move(callback);
}

// Called from C: nothing may be thrown through it.
void CommandTable::run(void* words, cmdline*, void* data) {
    const auto& instruction = *static_cast<const Instruction*>(data);
    Words list;
    for (size_t i = 0; i < instruction.tokens.size() && i < kMaxWords; ++i) {
        list.emplace_back(static_cast<const char*>(words) + i * kWordSize);
    }
    try {
        instruction.command->run(list);
    } catch (const port::Failure& failure) {
        instruction.table->failed_(failure.what(), failure.remedy());
    } catch (const std::exception& error) {
        instruction.table->failed_(error.what(), "");
    }
}

}  // namespace tagwire::testpmd
