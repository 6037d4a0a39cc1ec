// SPDX-License-Identifier: Apache-2.0
// Measures how often verdicts are right: on measured nodes known to be healthy or degraded, on healthy nodes with added
// faults, and on generated nodes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace commfuse::expect {

/// Number of nodes, and number of hits: the nodes that the verdict called bad, or the nodes whose fault it named.
struct VerdictCount {
  std::string what;
  std::string bar;  ///< "<= 1%", ">= 95%"
  double limit = 0.0;
  bool at_most = false;  ///< The bar is an upper limit; otherwise a lower limit.
  std::size_t nodes = 0;
  std::size_t hits = 0;
  [[nodiscard]] double share() const {
    return nodes == 0 ? 0.0 : static_cast<double>(hits) / static_cast<double>(nodes);
  }
  [[nodiscard]] bool is_met() const { return nodes > 0 && (at_most ? share() <= limit : share() >= limit); }
};

/// The verdict on a measured node that is known to be degraded.
struct DegradedVerdict {
  std::string node;
  std::string health;
  double slowdown = 1.0;
  std::string suspects;  ///< "degraded_nic 38%, few_ctas 26%"
};

/// The verdict on a generated node with a fault.
struct NamedFault {
  std::string machine;
  std::string fault;      ///< The true fault.
  std::string suspects;   ///< "degraded_nic 38%, few_ctas 26%"
  bool is_right = false;  ///< The likeliest suspect is the true fault.
  bool is_bad = false;    ///< The node was called bad.
};

/// Spread of medians around the prediction, in standard errors of the verdict's own error model.
struct MedianSpread {
  std::string side;  ///< "bandwidth", "latency"
  std::size_t medians = 0;
  double deviation = 0.0;
  double largest = 0.0;
};

/// Shares of a calibrated file's residual by which siblings differ (model/expect/sibling_shares.h), estimated without
/// the nodes of one cluster. The nodes of that cluster are judged with these shares.
struct HeldOutShares {
  std::string cluster;    ///< "h100-sxm, NCCL 2.29.2"; "none" for the estimate on all clusters.
  std::size_t pairs = 0;  ///< Number of pairs of nodes: the file is calibrated on one, the other is judged.
  double bandwidth = 0.0;
  double latency = 0.0;
};

struct VerdictScore {
  std::vector<VerdictCount> counts;
  std::vector<DegradedVerdict> degraded;
  std::vector<NamedFault> faults;
  std::vector<MedianSpread> spreads;
  std::vector<HeldOutShares> shares;  ///< By cluster; the estimate on all clusters is last.
  std::size_t healthy = 0;            ///< Number of healthy nodes with enough rows.
  std::size_t too_small = 0;          ///< Number of healthy nodes with too few rows.
};

/// Returns the score at 1% false alarms; it is deterministic. Throws ConfigError as measured_nodes does.
VerdictScore score_verdicts(const std::vector<std::filesystem::path>& tables);

}  // namespace commfuse::expect
