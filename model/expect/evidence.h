// SPDX-License-Identifier: Apache-2.0
// Whether measurements of one node are those of a healthy one: how much likelier some fault makes them.
//
// Rows of one collective among as many ranks are a class. Of a class the median of ln(measured / expected) counts, once
// over its rows that bandwidth limits and once over those that latency limits; one row decides nothing. For class c
//
//   median_c = fault_c + shared_c n + own_c e_c      n normal, of the node; e_c of the class, normal where bandwidth
//                                                    limits, with the tails of error_tail.h where latency does
//   shared_c^2 = parameters_c^2 + node share x residual_c^2 + repeat^2
//   own_c^2    = (class share + row share / rows) x residual_c^2 + repeat^2
//
// so all classes of a node may be off together: the model's own error does not shrink with the number of rows. Faults
// are patterns of fault_c, 0 for a healthy node. The bandwidth side and the latency side have an n each.
//
//   odds = sum over faults of weight x (sum over its patterns of likelihood / patterns) / likelihood of no fault
//
// Over healthy nodes the mean of `odds` is 1, so at most one in 1 / a of them has odds above 1 / a (Markov's
// inequality). Calling those bad keeps false alarms below a, whatever the faults are. docs/decisions/0065 says more.
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

/// Shares of residual^2, found on tables of healthy machines (docs/accuracy.md, "Verdicts").
struct ErrorShares {
  double node = 0.0;
  double of_class = 0.0;
  double row = 0.0;
};
inline constexpr ErrorShares bandwidth_shares{.node = 0.10, .of_class = 0.40, .row = 1.8};
inline constexpr ErrorShares latency_shares{.node = 0.35, .of_class = 1.2, .row = 2.3};
/// What a repetition on the same node differs by: 0.5 to 2.4 % in the median (two runs of every point on H100 and
/// B200, NVIDIA aiconfigurator).
inline constexpr double repeat_error = 0.024;

/// One row of a log.
struct MeasuredMessage {
  Message message;
  double time_us = 0.0;
};

/// What healthy nodes took beside what the model says of the same messages. What the model gets wrong about a message
/// it gets wrong on all of them, so it cancels; what is left is how nodes and repetitions differ.
struct Reference {
  std::map<std::tuple<LinkOp, std::int64_t, std::int64_t, std::int64_t>, double> offsets;  ///< key_of a message.
  double spread = repeat_error;  ///< Standard error of ln(time) between nodes.
};

/// The key of its offsets.
std::tuple<LinkOp, std::int64_t, std::int64_t, std::int64_t> key_of(const Message& message);

/// Half of a class: its rows that one limit holds.
struct ClassHalf {
  LinkOp op = LinkOp::all_gather;
  std::int64_t gpus = 1;
  std::int64_t nodes = 1;
  Limit limit = Limit::bandwidth;  ///< Or latency.
  std::vector<std::size_t> rows;   ///< Places in what was measured.
  double median = 0.0;             ///< Of ln(measured / expected).
  double shared_error = 0.0;
  double own_error = 0.0;
};

/// One standard error of the median.
double error_of(const ClassHalf& half);

/// In the order of op, GPUs, nodes; the bandwidth half first. `spread` takes the place of repeat_error among what the
/// rows of a node share. Requires one expectation for each row.
std::vector<ClassHalf> class_halves(std::span<const MeasuredMessage> measured, std::span<const Expected> expected,
                                    double spread = repeat_error);

/// A pattern: of every half the median of ln(time with the fault / expected), in their order.
using FaultPattern = std::vector<double>;

/// ln of the likelihood of the medians under a pattern. Requires one number for each half.
double log_likelihood(std::span<const ClassHalf> halves, const FaultPattern& pattern);

/// Whether there is enough to call a node healthy: eight rows that bandwidth limits, of two collectives with two such
/// rows each.
bool is_enough(std::span<const ClassHalf> halves);
/// Whether there is enough to call it bad, if the odds say so: eight rows of any kind.
bool may_condemn(std::span<const ClassHalf> halves);

}  // namespace commfuse
