// SPDX-License-Identifier: Apache-2.0
#include "validate/verdict/verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "model/math/functions.h"

namespace commfuse::validate {

namespace {

std::vector<std::vector<MeasuredMessage>> rows_of(const std::vector<NodeLog>& logs) {
  std::vector<std::vector<MeasuredMessage>> rows;
  for (const NodeLog& log : logs) {
    rows.push_back(log.rows);
  }
  return rows;
}

/// What a node would have measured that is in the middle of the fleet.
std::vector<MeasuredMessage> median_node(const Reference& fleet, const Expectation& expectation) {
  std::vector<MeasuredMessage> rows;
  for (const auto& [key, offset] : fleet.offsets) {
    const auto& [op, gpus, nodes, bytes] = key;
    const Message message{.op = op, .gpus = gpus, .nodes = nodes, .bytes = {bytes}};
    rows.push_back({message, math::exp(offset) * to_microseconds(message_time(expectation.machine(), message))});
  }
  return rows;
}

/// Judges against healthy nodes of the same NCCL: another version is another machine. Where either side does not say
/// which it was, all of them count.
class HealthyJudges {
 public:
  HealthyJudges(const Expectation& expectation, double false_alarms, const std::vector<NodeLog>& healthy)
      : expectation_(expectation), false_alarms_(false_alarms), healthy_(healthy) {}

  Judge& of(const NodeLog& log) {
    const std::string version = log.nccl_versions.size() == 1 ? log.nccl_versions.front() : "";
    const auto [place, is_new] = judges_.try_emplace(version);
    if (is_new) {
      std::vector<std::vector<MeasuredMessage>> rows;
      for (const NodeLog& one : healthy_) {
        const bool is_other = !version.empty() && one.nccl_versions.size() == 1 && one.nccl_versions.front() != version;
        if (!is_other) {
          rows.push_back(one.rows);
        }
      }
      place->second = std::make_unique<Judge>(expectation_, false_alarms_,
                                              rows.empty() ? Reference{} : reference_of(rows, expectation_));
    }
    return *place->second;
  }

 private:
  const Expectation& expectation_;
  double false_alarms_;
  const std::vector<NodeLog>& healthy_;
  std::map<std::string, std::unique_ptr<Judge>> judges_;
};

std::string where_of(const NodeLog& log) {
  return log.hosts.size() < 2 ? fmt::format("inside {}", log.name)
         : has_many_hosts(log)
             ? fmt::format("between {} hosts, {} to {}", log.hosts.size(), log.hosts.front(), log.hosts.back())
             : fmt::format("between {}", fmt::join(log.hosts, " and "));
}

void take(const Judgement& from, NodeVerdict& verdict) {
  verdict.health = from.health;
  verdict.healthy_probability = from.healthy_probability;
  verdict.severity = from.severity;
  verdict.suspects = from.suspects;
  verdict.slowdown = from.slowdown;
}

std::string percent(double share) { return fmt::format("{:.0f}%", 100.0 * share); }

std::string slower(double slowdown) { return fmt::format("{:.2f} times as slow as expected", slowdown); }

void explain_bad(NodeVerdict& verdict, bool by_fleet) {
  const SuspectedFault* first = verdict.suspects.empty() ? nullptr : &verdict.suspects.front();
  verdict.why =
      fmt::format("{}{}{}", slower(verdict.slowdown), by_fleet ? " from its fleet" : "",
                  first == nullptr ? "" : fmt::format("; {} ({})", first->fault->summary, percent(first->probability)));
  verdict.next = first == nullptr ? "" : std::string(first->fault->next);
}

/// What is likelier than its base rate is worth a look.
void explain_healthy(NodeVerdict& verdict) {
  const SuspectedFault* first = verdict.suspects.empty() ? nullptr : &verdict.suspects.front();
  const bool is_sure = first == nullptr || verdict.healthy_probability > 1.0 - 2.0 * bad_share;
  verdict.why = is_sure ? "as expected"
                        : fmt::format("within the model's errors, but perhaps {} ({})", first->fault->summary,
                                      percent(first->probability));
  verdict.next = is_sure ? "" : std::string(first->fault->next);
}

void decide(NodeVerdict& verdict) {
  take(verdict.judgement, verdict);
  const bool by_machine = verdict.judgement.health == Health::bad;
  const bool by_fleet = verdict.in_fleet && verdict.in_fleet->health == Health::bad;
  if (!by_machine && by_fleet) {
    take(*verdict.in_fleet, verdict);
  }
  verdict.where = where_of(verdict.log);
  if (!verdict.log.wrong_results.empty()) {
    verdict.health = Health::bad;
    verdict.healthy_probability = 0.0;
    verdict.severity = Severity::critical;
    verdict.why = fmt::format("wrong results: {}", verdict.log.wrong_results.front());
    verdict.next = "dcgmi diag -r 3";
  } else if (by_machine || by_fleet) {
    explain_bad(verdict, !by_machine);
  } else if (verdict.health == Health::healthy) {
    explain_healthy(verdict);
  } else {
    verdict.why = "not enough to decide: eight sizes that bandwidth limits, of two collectives, are needed";
    verdict.next = "for c in all_reduce all_gather; do ${c}_perf -b 1K -e 8G -f 2 -g 8; done";
  }
}

/// Runs that a host takes part in with others.
struct Shared {
  std::size_t runs = 0;
  std::size_t bad = 0;
};

std::vector<std::string> blamed(const std::vector<NodeVerdict>& verdicts) {
  std::map<std::string, Shared> hosts;
  for (const NodeVerdict& verdict : verdicts) {
    if (verdict.log.hosts.size() >= 2) {
      for (const std::string& host : verdict.log.hosts) {
        ++hosts[host].runs;
        hosts[host].bad += verdict.health == Health::bad ? 1 : 0;
      }
    }
  }
  const auto always_bad = [&](const std::string& host) {
    const Shared& shared = hosts.at(host);
    return shared.runs >= 2 && shared.bad == shared.runs;
  };
  std::vector<std::string> names;
  for (const auto& [host, shared] : hosts) {
    if (always_bad(host)) {
      names.push_back(host);
    }
  }
  return names;
}

}  // namespace

Verdicts verdicts_on(const std::vector<NodeLog>& logs, const Machine& machine, const VerdictOptions& options) {
  const Expectation expectation(machine);
  const bool has_fleet = logs.size() >= least_fleet;
  // Two questions share the false alarms.
  const double false_alarms = has_fleet ? 0.5 * options.false_alarms : options.false_alarms;
  HealthyJudges by_machine(expectation, false_alarms, options.healthy);
  Verdicts verdicts;
  std::optional<Judge> by_fleet;
  if (has_fleet) {
    const Reference fleet = reference_of(rows_of(logs), expectation, least_fleet);
    HealthyJudges against(expectation, options.false_alarms, options.healthy);
    verdicts.fleet = FleetVerdict{.nodes = logs.size(),
                                  .median = against.of(logs.front()).of(median_node(fleet, expectation)),
                                  .spread = fleet.spread};
    by_fleet.emplace(expectation, false_alarms, fleet);
  }
  for (const NodeLog& log : logs) {
    NodeVerdict& verdict = verdicts.nodes.emplace_back();
    verdict.log = log;
    verdict.judgement = by_machine.of(log).of(log.rows);
    if (by_fleet) {
      verdict.in_fleet = by_fleet->of(log.rows);
    }
    decide(verdict);
  }
  verdicts.blamed_hosts = blamed(verdicts.nodes);
  return verdicts;
}

}  // namespace commfuse::validate
