// SPDX-License-Identifier: Apache-2.0
// Predicted against measured inside one schedule: what each kind of op took, and which op is furthest off.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/program/recorder.h"

namespace commfuse::validate {

/// Lengths are from start to end, summed over ranks. An exchange begins with its first half and a collective with its
/// first member, so theirs hold what they wait for the other side.
struct OpTimes {
  std::string what;     ///< "gemm", "exchange", or one op in words.
  std::size_t ops = 0;  ///< On all ranks together.
  Duration predicted{};
  Duration measured{};

  /// Measured over predicted; 0 where nothing was predicted.
  [[nodiscard]] double ratio() const;
  friend bool operator==(const OpTimes&, const OpTimes&) = default;
};

struct ComparedOps {
  std::vector<OpTimes> kinds;  ///< Those that the schedule has, products first.
  OpTimes furthest;            ///< The op whose sum differs most.
};

/// Whether both hold the same ops of the same ranks, in the same order.
bool same_ops(const Timeline& a, const Timeline& b);

/// Both are of one iteration of the program, which has an op. Requires same_ops().
ComparedOps compared_ops(const Program& program, const Timeline& predicted, const Timeline& measured);

}  // namespace commfuse::validate
