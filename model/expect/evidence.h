// SPDX-License-Identifier: Apache-2.0
// Evidence that a node is bad: how much likelier some fault makes its measurements than a healthy node does.
//
// Rows of one collective among the same number of ranks form a class. The median of ln(measured / expected) over a
// class counts, once for its rows that bandwidth limits and once for those that latency limits; a single row does not
// count. For class c
//
//   median_c = fault_c + shared_c n + own_c e_c      n normal, of the node; e_c of the class, normal where bandwidth
//                                                    limits, with the tails of error_tail.h where latency does
//   shared_c^2 = parameters_c^2 + node share x residual_c^2 + repeat^2
//   own_c^2    = (class share + row share / rows) x residual_c^2 + repeat^2
//
// so all classes of a node may be off together, because the model's own error does not shrink with the number of rows.
// Faults are patterns of fault_c, which is 0 for a healthy node. The bandwidth half and the latency half have an n
// each.
//
//   odds = sum over faults of weight x (sum over its patterns of likelihood / patterns) / likelihood of no fault
//
// Over healthy nodes the mean of `odds` is 1, so at most one in 1 / a of them has odds above 1 / a (Markov's
// inequality). Calling those bad keeps false alarms below a, whatever the faults are. docs/decisions/0065 has details.
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
/// Difference between repetitions on the same node: 0.5 to 2.4% in the median (two runs of every point on H100 and
/// B200, NVIDIA aiconfigurator).
inline constexpr double repeat_error = 0.024;

/// One row of a log.
struct MeasuredMessage {
  Message message;
  double time_us = 0.0;
};

/// Times of healthy nodes relative to the model's for the same messages. The model's error on a message is the same on
/// all nodes, so it cancels, and only the differences between nodes and repetitions remain.
struct Reference {
  std::map<std::tuple<LinkOp, std::int64_t, std::int64_t, std::int64_t>, double> offsets;  ///< by key_of a message
  double spread = repeat_error;  ///< standard error of ln(time) between nodes
};

/// Returns the key of a message's offset.
std::tuple<LinkOp, std::int64_t, std::int64_t, std::int64_t> key_of(const Message& message);

/// Half of a class: its rows with one limit.
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

/// Returns the halves in the order of op, GPUs, nodes; the bandwidth half first. `spread` replaces repeat_error in the
/// part that the rows of a node share. Requires one expectation for each row.
std::vector<ClassHalf> class_halves(std::span<const MeasuredMessage> measured, std::span<const Expected> expected,
                                    double spread = repeat_error);

/// A pattern: for every half the median of ln(time with the fault / expected), in their order.
using FaultPattern = std::vector<double>;

/// Returns ln of the likelihood of the medians under a pattern. Requires one number for each half.
double log_likelihood(std::span<const ClassHalf> halves, const FaultPattern& pattern);

/// Returns true if there are enough rows to call a node healthy: eight that bandwidth limits, of two collectives with
/// at least two such rows each.
bool is_enough(std::span<const ClassHalf> halves);
/// Returns true if there are enough rows to call it bad if the odds say so: eight of any kind.
bool may_condemn(std::span<const ClassHalf> halves);

}  // namespace commfuse
