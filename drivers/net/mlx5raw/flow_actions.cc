// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/net/mlx5raw/flow_actions.h"

#include <cerrno>
#include <cstring>

#include "drivers/net/mlx5raw/flow_mark.h"

namespace tagwire::mlx5raw {
namespace {

class Parser {
  public:
    Parser(FlowActions& actions, uint16_t queue_count, rte_flow_error* error)
        : out_(actions), queue_count_(queue_count), error_(error) {}

    int parse(const rte_flow_action& action) {
        switch (action.type) {
            case RTE_FLOW_ACTION_TYPE_VOID:
                return 0;
            case RTE_FLOW_ACTION_TYPE_QUEUE:
                return fate(action, &Parser::queue);
            case RTE_FLOW_ACTION_TYPE_RSS:
                return fate(action, &Parser::rss);
            case RTE_FLOW_ACTION_TYPE_DROP:
                return fate(action, &Parser::drop);
            case RTE_FLOW_ACTION_TYPE_MARK:
                return mark(action);
            case RTE_FLOW_ACTION_TYPE_FLAG:
                return tag(action, kFlowTagOfFlag);
            case RTE_FLOW_ACTION_TYPE_COUNT:
                return count(action);
            default:
                return refuse(action, RTE_FLOW_ERROR_TYPE_ACTION,
                              "action not supported; there are QUEUE, RSS, DROP, MARK, FLAG and "
                              "COUNT");
        }
    }

    int finish(const rte_flow_action* last) {
        if (!has_fate_) {
            return flow_failure(error_, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION, last,
                                "say where packets go: QUEUE, RSS or DROP");
        }
        if (out_.drop && out_.tag != 0) {
            return flow_failure(error_, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION, last,
                                "dropped packets cannot be marked");
        }
        return 0;
    }

  private:
    int refuse(const rte_flow_action& action, rte_flow_error_type type, const char* message) {
        return flow_failure(error_, ENOTSUP, type, &action, "%s", message);
    }

    int fate(const rte_flow_action& action, int (Parser::*parse)(const rte_flow_action&)) {
        if (has_fate_) {
            return flow_failure(error_, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION, &action,
                                "one of QUEUE, RSS and DROP, once");
        }
        has_fate_ = true;
        return (this->*parse)(action);
    }

    int drop(const rte_flow_action&) {
        out_.drop = true;
        return 0;
    }

    int add_queue(const rte_flow_action& action, uint16_t queue) {
        if (queue >= queue_count_) {
            return flow_failure(error_, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF, &action,
                                "queue %u: the port has %u (configure it first)", queue,
                                queue_count_);
        }
        out_.queues.push_back(queue);
        return 0;
    }

    int queue(const rte_flow_action& action) {
        const auto* conf = static_cast<const rte_flow_action_queue*>(action.conf);
        if (conf == nullptr) {
            return flow_failure(error_, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF, &action,
                                "QUEUE without a queue index");
        }
        return add_queue(action, conf->index);
    }

    int rss(const rte_flow_action& action) {
        const auto* conf = static_cast<const rte_flow_action_rss*>(action.conf);
        if (conf == nullptr || conf->queue_num == 0 || conf->queue == nullptr) {
            return flow_failure(error_, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF, &action,
                                "RSS without queues");
        }
        if (conf->func != RTE_ETH_HASH_FUNCTION_DEFAULT &&
            conf->func != RTE_ETH_HASH_FUNCTION_TOEPLITZ) {
            return refuse(action, RTE_FLOW_ERROR_TYPE_ACTION_CONF, "the hash is Toeplitz");
        }
        if (conf->level > 1) {
            return refuse(action, RTE_FLOW_ERROR_TYPE_ACTION_CONF,
                          "RSS over inner headers is not supported (level 0 or 1)");
        }
        if ((conf->types & ~supported_rss_types()) != 0) {
            return flow_failure(error_, ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION_CONF, &action,
                                "RSS types 0x%lx are not supported",
                                static_cast<unsigned long>(conf->types & ~supported_rss_types()));
        }
        if (conf->key_len != 0 && conf->key != nullptr) {
            if (conf->key_len != kRssKeyLength) {
                return flow_failure(error_, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF, &action,
                                    "the RSS key has %u bytes, the device wants %zu", conf->key_len,
                                    kRssKeyLength);
            }
            memcpy(out_.key.data(), conf->key, kRssKeyLength);
            out_.own_key = true;
        }
        if (conf->queue_num > kMaxQueues) {
            return flow_failure(error_, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF, &action,
                                "RSS over %u queues: %u at most", conf->queue_num, kMaxQueues);
        }
        out_.spread = true;
        out_.types = conf->types;
        for (uint32_t i = 0; i < conf->queue_num; ++i) {
            if (const int result = add_queue(action, conf->queue[i]); result != 0) {
                return result;
            }
        }
        return 0;
    }

    int mark(const rte_flow_action& action) {
        const auto* conf = static_cast<const rte_flow_action_mark*>(action.conf);
        if (conf == nullptr || conf->id > kMaxFlowMark) {
            return flow_failure(error_, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF, &action,
                                "a mark is a number up to 0x%x", kMaxFlowMark);
        }
        return tag(action, flow_tag_of_mark(conf->id));
    }

    int tag(const rte_flow_action& action, uint32_t value) {
        if (out_.tag != 0) {
            return flow_failure(error_, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION, &action,
                                "one of MARK and FLAG, once");
        }
        out_.tag = value;
        return 0;
    }

    int count(const rte_flow_action& action) {
        if (out_.count) {
            return flow_failure(error_, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION, &action,
                                "COUNT twice in one rule");
        }
        out_.count = true;
        return 0;
    }

    // Entries of the largest table that rules make.
    static constexpr uint32_t kMaxQueues = 512;

    FlowActions& out_;
    uint16_t queue_count_;
    rte_flow_error* error_;
    bool has_fate_ = false;
};

}  // namespace

int parse_actions(const rte_flow_action actions[], uint16_t queue_count, FlowActions& out,
                  rte_flow_error* error) {
    out = FlowActions{};
    Parser parser(out, queue_count, error);
    const rte_flow_action* action = actions;
    for (; action->type != RTE_FLOW_ACTION_TYPE_END; ++action) {
        if (const int result = parser.parse(*action); result != 0) {
            return result;
        }
    }
    return parser.finish(action);
}

}  // namespace tagwire::mlx5raw
