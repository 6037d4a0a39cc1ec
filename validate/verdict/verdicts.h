// SPDX-License-Identifier: Apache-2.0
// Judges each node against the expected machine, and against the other nodes. Failures that another tool reports are
// adopted unchanged.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/expect/judge.h"
#include "validate/verdict/jobs.h"
#include "validate/verdict/node_logs.h"

namespace commfuse::validate {

struct NodeVerdict {
  NodeLog log;
  Judgement judgement;                ///< Against the machine, or against VerdictOptions::healthy.
  std::optional<Judgement> in_fleet;  ///< Against the other nodes; nothing if there are too few.
  std::vector<CopyJudgement> copies;  ///< Timed copies between GPUs, and between the host and GPUs.
  Health health = Health::undecided;
  double healthy_probability = 1.0;
  Severity severity = Severity::none;
  std::vector<SuspectedFault> suspects;
  double slowdown = 1.0;
  std::string why;    ///< A sentence: the verdict and its reason.
  std::string where;  ///< "inside node-7", "inside node-7, GPU 3 – GPU 5", "between node-7 and node-8"
  std::string next;   ///< The command to run next; empty if there is nothing to do.
};

/// The median node of a fleet.
struct FleetVerdict {
  std::size_t nodes = 0;
  Judgement median;     ///< Against the machine, or against VerdictOptions::healthy.
  double spread = 0.0;  ///< Standard deviation of ln(time) between nodes.
};

struct Verdicts {
  std::vector<NodeVerdict> nodes;
  std::optional<FleetVerdict> fleet;
  /// Hosts that took part in at least two runs over several hosts, all of which were bad.
  std::vector<std::string> blamed_hosts;
  std::vector<JobVerdict> jobs;
};

struct VerdictOptions {
  double false_alarms = 0.01;                  ///< Share of healthy nodes that may be reported as bad.
  FittedTo fitted_to = FittedTo::other_nodes;  ///< Nodes to which the machine's file was fitted.
  std::vector<NodeLog> healthy;  ///< Nodes known to be healthy, whose measurements replace predictions of the model.
};

/// Smallest number of nodes that form a fleet.
inline constexpr std::size_t least_fleet = 4;

/// Returns verdicts on nodes; those on jobs come from verdict_on().
Verdicts verdicts_on(const std::vector<NodeLog>& logs, const Machine& machine, const VerdictOptions& options);

}  // namespace commfuse::validate
