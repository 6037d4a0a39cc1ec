// SPDX-License-Identifier: Apache-2.0
#include "validate/verdict/verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string_view>
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

/// Returns the measurements that the median node of the fleet would have made.
std::vector<MeasuredMessage> median_node(const Reference& fleet, const Expectation& expectation) {
  std::vector<MeasuredMessage> rows;
  for (const auto& [key, offset] : fleet.offsets) {
    const auto& [op, gpus, nodes, bytes] = key;
    const Message message{.op = op, .gpus = gpus, .nodes = nodes, .bytes = {bytes}};
    rows.push_back({message, math::exp(offset) * to_microseconds(message_time(expectation.machine(), message))});
  }
  return rows;
}

/// Judges against healthy nodes with the same version of NCCL, because another version behaves like another machine. If
/// either side does not state its version, all healthy nodes count.
class HealthyJudges {
 public:
  HealthyJudges(const Expectation& expectation, double false_alarms, const VerdictOptions& options)
      : expectation_(expectation),
        false_alarms_(false_alarms),
        healthy_(options.healthy),
        fitted_to_(options.fitted_to) {}

  Judge& of(const NodeLog& log) {
    const std::string version = log.nccl_versions.size() == 1 ? log.nccl_versions.front() : "";
    const auto [entry, is_new] = judges_.try_emplace(version);
    if (is_new) {
      std::vector<std::vector<MeasuredMessage>> rows;
      for (const NodeLog& healthy_log : healthy_) {
        const bool is_other =
            !version.empty() && healthy_log.nccl_versions.size() == 1 && healthy_log.nccl_versions.front() != version;
        if (!is_other) {
          rows.push_back(healthy_log.rows);
        }
      }
      entry->second = std::make_unique<Judge>(
          expectation_, false_alarms_, rows.empty() ? Reference{} : reference_of(rows, expectation_), fitted_to_);
    }
    return *entry->second;
  }

 private:
  const Expectation& expectation_;
  double false_alarms_;
  const std::vector<NodeLog>& healthy_;
  FittedTo fitted_to_;
  std::map<std::string, std::unique_ptr<Judge>> judges_;
};

std::string where_of(const NodeLog& log) {
  return log.hosts.size() < 2 ? fmt::format("inside {}", log.name)
         : has_many_hosts(log)
             ? fmt::format("between {} hosts, {} to {}", log.hosts.size(), log.hosts.front(), log.hosts.back())
             : fmt::format("between {}", fmt::join(log.hosts, " and "));
}

void copy_judgement(const Judgement& from, NodeVerdict& verdict) {
  verdict.health = from.health;
  verdict.healthy_probability = from.healthy_probability;
  verdict.severity = from.severity;
  verdict.suspects = from.suspects;
  verdict.slowdown = from.slowdown;
}

std::string percent(double share) { return fmt::format("{:.0f}%", 100.0 * share); }

std::string slowdown_in_words(double slowdown) { return fmt::format("{:.2f} times as slow as expected", slowdown); }

/// A reason to call a node bad.
struct Reason {
  Severity severity = Severity::none;
  double healthy_probability = 1.0;
  double slowdown = 1.0;
  std::string why;
  std::string next;
  std::vector<SuspectedFault> suspects;
  std::string subject{};  ///< "GPU 3 – GPU 5"; empty if only the node is known.
};

Reason reason_of(const Judgement& judgement, bool by_fleet) {
  const SuspectedFault* first = judgement.suspects.empty() ? nullptr : &judgement.suspects.front();
  return {.severity = judgement.severity,
          .healthy_probability = judgement.healthy_probability,
          .slowdown = judgement.slowdown,
          .why = fmt::format(
              "{}{}{}", slowdown_in_words(judgement.slowdown), by_fleet ? " from its fleet" : "",
              first == nullptr ? "" : fmt::format("; {} ({})", first->fault->summary, percent(first->probability))),
          .next = first == nullptr ? "" : std::string(first->fault->next),
          .suspects = judgement.suspects};
}

/// Returns "between GPU 3 and GPU 5", "of GPU 3", "of all GPUs" or "between the host and GPU 3".
std::string ends_in_words(std::string subject, bool is_with_host) {
  if (is_with_host) {
    return "between the host and " + subject;
  }
  constexpr std::string_view dash = " \u2013 ";
  const std::size_t at = subject.find(dash);
  if (at == std::string::npos) {
    return "of " + subject;
  }
  subject.replace(at, dash.size(), " and ");
  if (const std::size_t comma = subject.find(", one direction"); comma != std::string::npos) {
    subject.replace(comma, 1, " in");
  }
  return "between " + subject;
}

Reason reason_of(const CopyJudgement& judgement) {
  const SuspectedCopies& first = judgement.suspects.front();
  Reason reason{.severity = judgement.severity,
                .healthy_probability = judgement.healthy_probability,
                .slowdown = 1.0 / judgement.rate_share,
                .why = fmt::format("copies {} reach {:.2f} of the expected rate; {} ({})",
                                   ends_in_words(first.subject, judgement.wires != copies_between_gpus),
                                   judgement.rate_share, first.fault->summary, percent(first.probability)),
                .next = std::string(first.fault->next),
                .suspects = {},
                .subject = first.subject};
  for (const SuspectedCopies& suspect : judgement.suspects) {
    reason.suspects.push_back({suspect.fault, suspect.probability, suspect.subject});
  }
  return reason;
}

/// Summarizes the findings of one test, which several GPUs may share.
Reason reason_of(const std::vector<const ToolFinding*>& findings) {
  const ToolFinding& first = *findings.front();
  Reason reason{.healthy_probability = 0.0, .why = "", .next = first.next, .suspects = {}};
  std::vector<std::string> subjects;
  for (const ToolFinding* finding : findings) {
    reason.severity = std::max(reason.severity, finding->severity);
    if (!finding->subject.empty()) {
      subjects.push_back(finding->subject);
    }
  }
  reason.why = fmt::format("{} {}{}{}: {}{}", first.tool, first.test, first.is_bad ? " failed" : " warns",
                           subjects.empty() ? "" : fmt::format(" on {}", fmt::join(subjects, ", ")), first.cause,
                           first.text.empty() ? "" : fmt::format(" ({})", first.text));
  reason.subject = fmt::format("{}", fmt::join(subjects, ", "));
  return reason;
}

/// Groups findings by test, in the order of the findings.
std::vector<std::vector<const ToolFinding*>> by_test(const std::vector<ToolFinding>& findings, bool is_bad) {
  std::vector<std::vector<const ToolFinding*>> groups;
  for (const ToolFinding& finding : findings) {
    const auto match = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return group.front()->tool == finding.tool && group.front()->test == finding.test;
    });
    if (finding.is_bad != is_bad) {
      continue;
    }
    if (match == groups.end()) {
      groups.push_back({&finding});
    } else {
      match->push_back(&finding);
    }
  }
  return groups;
}

/// Returns the reasons: facts first, then measurements that are unlikely for a healthy node.
std::vector<Reason> reasons_of(const NodeVerdict& verdict) {
  std::vector<Reason> reasons;
  if (!verdict.log.wrong_results.empty()) {
    reasons.push_back({.severity = Severity::critical,
                       .healthy_probability = 0.0,
                       .why = fmt::format("wrong results: {}", verdict.log.wrong_results.front()),
                       .next = "dcgmi diag -r 3",
                       .suspects = {}});
  }
  for (const auto& findings : by_test(verdict.log.findings, true)) {
    reasons.push_back(reason_of(findings));
  }
  const bool by_machine = verdict.judgement.health == Health::bad;
  if (by_machine || (verdict.in_fleet && verdict.in_fleet->health == Health::bad)) {
    reasons.push_back(reason_of(by_machine ? verdict.judgement : *verdict.in_fleet, !by_machine));
  }
  for (const CopyJudgement& copies : verdict.copies) {
    if (copies.health == Health::bad) {
      reasons.push_back(reason_of(copies));
    }
  }
  return reasons;
}

void explain_bad(NodeVerdict& verdict, const std::vector<Reason>& reasons) {
  verdict.health = Health::bad;
  verdict.healthy_probability = 1.0;
  verdict.severity = Severity::none;
  verdict.slowdown = 1.0;
  verdict.suspects.clear();
  for (const Reason& reason : reasons) {
    verdict.healthy_probability = std::min(verdict.healthy_probability, reason.healthy_probability);
    verdict.severity = std::max(verdict.severity, reason.severity);
    verdict.slowdown = std::max(verdict.slowdown, reason.slowdown);
    verdict.why += (verdict.why.empty() ? "" : "; ") + reason.why;
    verdict.where += reason.subject.empty() ? "" : ", " + reason.subject;
    verdict.next = verdict.next.empty() ? reason.next : verdict.next;
    // Suspects that name a GPU or a pair come first.
    verdict.suspects.insert(reason.subject.empty() ? verdict.suspects.end() : verdict.suspects.begin(),
                            reason.suspects.begin(), reason.suspects.end());
  }
}

/// Names the first suspect if a fault is at least twice as likely as its base rate, because it is then worth a look.
void explain_healthy(NodeVerdict& verdict) {
  const SuspectedFault* first = verdict.suspects.empty() ? nullptr : &verdict.suspects.front();
  const bool is_sure = first == nullptr || verdict.healthy_probability > 1.0 - 2.0 * bad_share;
  verdict.why = is_sure ? "as expected"
                        : fmt::format("within the model's errors, but perhaps {} ({})", first->fault->summary,
                                      percent(first->probability));
  verdict.next = is_sure ? "" : std::string(first->fault->next);
}

/// Returns true if copies between GPUs are healthy, and no other copies are bad.
bool are_copies_healthy(const NodeVerdict& verdict) {
  return std::any_of(verdict.copies.begin(), verdict.copies.end(),
                     [](const CopyJudgement& judgement) {
                       return judgement.wires == copies_between_gpus && judgement.health == Health::healthy;
                     }) &&
         std::none_of(verdict.copies.begin(), verdict.copies.end(),
                      [](const CopyJudgement& judgement) { return judgement.health == Health::bad; });
}

void add_warnings(NodeVerdict& verdict) {
  for (const auto& findings : by_test(verdict.log.findings, false)) {
    const Reason reason = reason_of(findings);
    verdict.why += "; " + reason.why;
    verdict.next = verdict.next.empty() ? reason.next : verdict.next;
  }
}

void decide(NodeVerdict& verdict) {
  copy_judgement(verdict.judgement, verdict);
  verdict.where = where_of(verdict.log);
  const std::vector<Reason> reasons = reasons_of(verdict);
  if (!reasons.empty()) {
    explain_bad(verdict, reasons);
  } else if (verdict.health == Health::healthy) {
    explain_healthy(verdict);
  } else if (are_copies_healthy(verdict)) {
    verdict.health = Health::healthy;
    verdict.why = "copies between GPUs are as expected; collectives were not judged";
  } else {
    const bool is_passed = verdict.log.has_passed_tests && verdict.log.findings.empty();
    verdict.why = is_passed ? "dcgmi diag found nothing wrong, but does not test rates; " : "";
    verdict.why += "not enough to decide: eight bandwidth-limited sizes, from two collectives, are needed";
    verdict.next = "for c in all_reduce all_gather; do ${c}_perf -b 1K -e 8G -f 2 -g 8; done";
  }
  add_warnings(verdict);
}

/// Runs of a host together with other hosts.
struct SharedRuns {
  std::size_t runs = 0;
  std::size_t bad = 0;
};

std::vector<std::string> hosts_to_blame(const std::vector<NodeVerdict>& verdicts) {
  std::map<std::string, SharedRuns> hosts;
  for (const NodeVerdict& verdict : verdicts) {
    if (verdict.log.hosts.size() >= 2) {
      for (const std::string& host : verdict.log.hosts) {
        ++hosts[host].runs;
        hosts[host].bad += verdict.health == Health::bad ? 1 : 0;
      }
    }
  }
  const auto always_bad = [&](const std::string& host) {
    const SharedRuns& shared = hosts.at(host);
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
  const auto with_rows = static_cast<std::size_t>(
      std::count_if(logs.begin(), logs.end(), [](const NodeLog& log) { return !log.rows.empty(); }));
  const bool has_fleet = with_rows >= least_fleet;
  // All comparisons share the false-alarm rate: the machine, the fleet, copies between GPUs, copies with the host.
  const bool has_copies = std::any_of(logs.begin(), logs.end(), [](const NodeLog& log) { return !log.copies.empty(); });
  const double false_alarms = options.false_alarms / (1.0 + (has_fleet ? 1.0 : 0.0) + (has_copies ? 2.0 : 0.0));
  HealthyJudges by_machine(expectation, false_alarms, options);
  Verdicts verdicts;
  std::optional<Judge> by_fleet;
  if (has_fleet) {
    const Reference fleet = reference_of(rows_of(logs), expectation, least_fleet);
    HealthyJudges healthy_judges(expectation, options.false_alarms, options);
    verdicts.fleet = FleetVerdict{.nodes = with_rows,
                                  .median = healthy_judges.of(logs.front()).of(median_node(fleet, expectation)),
                                  .spread = fleet.spread};
    by_fleet.emplace(expectation, false_alarms, fleet);
  }
  for (const NodeLog& log : logs) {
    NodeVerdict& verdict = verdicts.nodes.emplace_back();
    verdict.log = log;
    verdict.copies = judge_copies(machine, log.copies, false_alarms);
    verdict.judgement = by_machine.of(log).of(log.rows);
    if (by_fleet) {
      verdict.in_fleet = by_fleet->of(log.rows);
    }
    decide(verdict);
  }
  verdicts.blamed_hosts = hosts_to_blame(verdicts.nodes);
  return verdicts;
}

}  // namespace commfuse::validate
