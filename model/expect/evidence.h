// SPDX-License-Identifier: Apache-2.0
// Evidence that a node is bad: how much likelier its measurements are with some fault than on a healthy node.
//
// Rows of one collective among the same number of ranks form a class. The evidence is the median of ln(measured /
// expected) over a class, separately for its bandwidth-limited rows and its latency-limited rows; a single row is
// ignored. For class c
//
//   median_c = fault_c + shared_c n + own_c e_c      n: of the node, normal; e_c: of the class, normal where bandwidth
//                                                    limits, with the tails of error_tail.h where latency does
//   shared_c^2 = parameters_c^2 + node share x residual_c^2 + repeat^2
//   own_c^2    = (class share + row share / rows) x residual_c^2 + repeat^2
//
// so all classes of a node may be off together, because the model's own error does not shrink with the number of rows.
// Faults are patterns of fault_c, which is 0 for a healthy node. The bandwidth half and the latency half each have
// their own n.
//
//   odds = sum over faults of weight x (sum over its patterns of likelihood / patterns) / likelihood of no fault
//
// The weights of all faults that the machine can have are scaled to add up to 1. Over healthy nodes the mean of `odds`
// is therefore 1, so at most a share a of them has odds above 1 / a (Markov's inequality). If only such nodes are
// called bad, the share of false alarms is at most a, whatever the faults are. docs/decisions/0065 has details.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "model/expect/expectation.h"

namespace commfuse {

/// Shares of residual^2, estimated from tables of healthy machines (docs/accuracy.md, "Verdicts").
struct ErrorShares {
  double node = 0.0;
  double of_class = 0.0;
  double row = 0.0;
};
inline constexpr ErrorShares bandwidth_shares{.node = 0.10, .of_class = 0.40, .row = 1.8};
inline constexpr ErrorShares latency_shares{.node = 0.35, .of_class = 1.2, .row = 2.3};
/// Difference between repetitions on the same node: median of 0.5 to 2.4% (two runs of every point on H100 and B200,
/// NVIDIA aiconfigurator).
inline constexpr double repeat_error = 0.024;
/// Relative distance of a real fault from its pattern: no link is slow by exactly one of the tried degrees, and no
/// fault matches its pattern exactly. Assumed.
inline constexpr double pattern_error = 0.15;

/// One row of a log.
struct MeasuredMessage {
  Message message;
  double time_us = 0.0;
};

/// Times of healthy nodes relative to the model's times for the same messages. The model's error on a message is the
/// same on all nodes, so it cancels, and only the differences between nodes and repetitions remain.
struct Reference {
  std::map<std::tuple<LinkOp, std::int64_t, std::int64_t, std::int64_t>, double> offsets;  ///< by key_of a message
  double spread = repeat_error;  ///< standard deviation of ln(time) between nodes
};

/// Returns the key of a message's offset.
std::tuple<LinkOp, std::int64_t, std::int64_t, std::int64_t> key_of(const Message& message);

/// Half of a class: its rows that are limited by bandwidth, or by latency.
struct ClassHalf {
  LinkOp op = LinkOp::all_gather;
  std::int64_t gpus = 1;
  std::int64_t nodes = 1;
  Limit limit = Limit::bandwidth;  ///< bandwidth or latency
  std::vector<std::size_t> rows;   ///< indices of the measured rows
  double median = 0.0;             ///< median of ln(measured / expected)
  double shared_error = 0.0;
  double own_error = 0.0;
};

/// Returns one standard error of the median.
double error_of(const ClassHalf& half);

/// Returns the halves in the order of op, GPUs, nodes; the bandwidth half comes first. `spread`, the standard deviation
/// of ln(time) between nodes, replaces repeat_error in the error that the rows of a node share. Requires one item of
/// `expected` per measured row.
std::vector<ClassHalf> class_halves(std::span<const MeasuredMessage> measured, std::span<const Expected> expected,
                                    double spread = repeat_error);

/// A pattern: for every half, in order, the median of ln(time with the fault / expected time).
using FaultPattern = std::vector<double>;

/// Returns ln of the likelihood of the medians under a pattern. Requires `pattern` to have one number for each half.
double log_likelihood(std::span<const ClassHalf> halves, const FaultPattern& pattern);

/// Returns true if there are enough rows to call a node healthy: eight bandwidth-limited rows, of at least two ops with
/// at least two such rows each.
bool is_enough(std::span<const ClassHalf> halves);
/// Returns true if there are enough rows, eight of any kind, to call a node with high odds bad.
bool may_condemn(std::span<const ClassHalf> halves);

}  // namespace commfuse
