// SPDX-License-Identifier: Apache-2.0
// What other ranks of a rotation-symmetric program hold, worked out from what rank 0 holds.
#pragma once

#include "model/proof/symmetry.h"
#include "model/proof/value.h"

namespace commfuse {

/// What a label on rank 0 becomes on the rank that a turn brings it to.
Value moved(const Program& program, const Symmetry& symmetry, Sums& sums, Value value, const Turn& turn);

class OtherRanks {
 public:
  /// What they hold in an operand. Keeps references to the program, the symmetry and the sums.
  OtherRanks(const Program& program, const Symmetry& symmetry, Sums& sums, Slice operand);

  /// The top `rows` rows of the operand on the rank that a turn brings rank 0 to, into `values`; `held` is what rank 0
  /// has there.
  void hold(const Values& held, std::int32_t rows, const Turn& turn, Values& values);

 private:
  const Program& program_;
  const Symmetry& symmetry_;
  Sums& sums_;
  std::int32_t columns_;
  Rotation down_;
  Rotation across_;
};

}  // namespace commfuse
