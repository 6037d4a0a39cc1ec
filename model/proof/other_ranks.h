// SPDX-License-Identifier: Apache-2.0
// Contents of other ranks of a rotation-symmetric program, derived from the contents of rank 0.
#pragma once

#include "model/proof/symmetry.h"
#include "model/proof/value.h"

namespace commfuse {

/// Returns the label that corresponds to `value`, a label of rank 0, on the rank to which the turn moves rank 0.
CellValue moved(const Program& program, const Symmetry& symmetry, Sums& sums, CellValue value, const Turn& turn);

class OtherRanks {
 public:
  /// Derives the values of other ranks in one operand. Keeps references to the program, the symmetry and the sums,
  /// which must outlive this object.
  OtherRanks(const Program& program, const Symmetry& symmetry, Sums& sums, Slice operand);

  /// Writes into `values` the top `rows` rows of the operand on the rank to which a turn moves rank 0; `first_values`
  /// has the values of rank 0.
  void derive(const CellValues& first_values, std::int32_t rows, const Turn& turn, CellValues& values);

 private:
  const Program& program_;
  const Symmetry& symmetry_;
  Sums& sums_;
  std::int32_t columns_;
  Rotation down_;
  Rotation across_;
};

}  // namespace commfuse
