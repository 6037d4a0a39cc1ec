// SPDX-License-Identifier: Apache-2.0
// Symbolic content of a cell: the block of a tensor, and the contributions to it that have been summed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/few.h"
#include "model/program/program.h"
#include "model/proof/sums.h"

namespace commfuse {

/// A block of a tensor. The block of a GEMM is the sum of the contraction blocks in `sum`; other tensors have one
/// contribution.
struct CellValue {
  TensorId tensor = no_tensor;  // no_tensor: no value
  std::int32_t row = 0;
  std::int32_t column = 0;
  SumId sum = 0;
  friend bool operator==(const CellValue&, const CellValue&) = default;
};

using CellValues = Few<CellValue>;  // values of an operand, row by row

inline constexpr CellValue nothing{};
inline constexpr CellValue wrong_value{.tensor = TensorId{-2}};  // a value whose mistake is already reported
inline constexpr CellValue zero_value{.tensor =
                                          TensorId{-3}};  // the empty sum, to which values of any tensor are added

/// Returns true if the value's mistake was already reported; consequences of the mistake are then not reported.
inline bool is_wrong(const CellValue& value) { return value.tensor == wrong_value.tensor; }

/// Returns the number of contributions to a complete block of the tensor.
std::int32_t contributions(const Program& program, const Tensor& tensor);

/// Returns "y[3]{0,3}" for block row 3 of y with contributions 0 and 3 of several. Without braces the block is
/// complete. In a tensor of one block column, the column is omitted; in a tensor of one block row, the row is ":", as
/// in "w[:,2]".
std::string in_words(const Program& program, const Sums& sums, const CellValue& value);

}  // namespace commfuse
