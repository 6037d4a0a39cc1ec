// SPDX-License-Identifier: Apache-2.0
// Compares predictions with measurements inside one schedule: the time of each kind of op, and the op with the largest
// difference.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/program/recorder.h"

namespace commfuse::validate {

/// Times from start to end, summed over ranks. An exchange begins with its send or its receive, whichever is first, and
/// a collective with its first member, so their times include waiting for the other side.
struct OpTimes {
  std::string what;     ///< "gemm", "exchange", or the name of one op.
  std::size_t ops = 0;  ///< On all ranks together.
  Duration predicted{};
  Duration measured{};

  /// Returns measured over predicted; 0 where nothing was predicted.
  [[nodiscard]] double ratio() const;
  friend bool operator==(const OpTimes&, const OpTimes&) = default;
};

struct ComparedOps {
  std::vector<OpTimes> kinds;  ///< Sums by kind of op, GEMMs first.
  OpTimes furthest;            ///< The op whose predicted and measured sums differ most.
};

/// Returns the spans of `predicted` on the ranks that `measured` has. With virtual ranks, only one rank runs.
Timeline of_measured_ranks(const Timeline& predicted, const Timeline& measured);

/// Returns whether `a` and `b` hold the same ops of the same ranks, in the same order.
bool same_ops(const Timeline& a, const Timeline& b);

/// Compares the times of ops. Requires same_ops(), and that both timelines cover one iteration and have at least one
/// op.
ComparedOps compared_ops(const Program& program, const Timeline& predicted, const Timeline& measured);

}  // namespace commfuse::validate
