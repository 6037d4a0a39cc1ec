// SPDX-License-Identifier: Apache-2.0
// What other ranks of a rotation-symmetric program hold, worked out from what rank 0 holds.
#pragma once

#include <span>
#include <vector>

#include "model/schedule/symmetry.h"
#include "model/schedule/value.h"

namespace commfuse {

class OtherRanks {
 public:
  /// Keeps references to all three.
  OtherRanks(const Program& program, const Symmetry& symmetry, Sums& sums)
      : program_(program), symmetry_(symmetry), sums_(sums) {}

  /// The top `rows` rows of an operand on each of the ranks that these turns bring rank 0 to; `held` is what rank 0
  /// has there.
  std::vector<std::vector<Value>> hold(const std::vector<Value>& held, Slice operand, std::int32_t rows,
                                       std::span<const Turn> turns);

 private:
  /// What a label on rank 0 becomes.
  Value moved(Value value, const Turn& turn);

  const Program& program_;
  const Symmetry& symmetry_;
  Sums& sums_;
};

}  // namespace commfuse
