// SPDX-License-Identifier: Apache-2.0
// What a cell holds, symbolically: which block of which tensor, and which contributions to it have been summed up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/few.h"
#include "model/program/program.h"
#include "model/proof/sums.h"

namespace commfuse {

/// A block of a tensor. A product's is the sum of the contraction blocks in `sum`; other tensors have one contribution.
struct Value {
  TensorId tensor = no_tensor;  // no_tensor: nothing
  std::int32_t row = 0;
  std::int32_t column = 0;
  SumId sum = 0;
  friend bool operator==(const Value&, const Value&) = default;
};

using Values = Few<Value>;  // an operand's, row by row

inline constexpr Value nothing{};
inline constexpr Value wrong_value{.tensor = TensorId{-2}};  // already reported
inline constexpr Value zero_value{.tensor = TensorId{-3}};   // the empty sum of whatever it is added to

/// Whether it was reported before, so that what comes of it is not.
inline bool is_wrong(const Value& value) { return value.tensor == wrong_value.tensor; }

/// How many contributions make a block of the tensor complete.
std::int32_t contributions(const Program& program, const Tensor& tensor);

/// "y[3]{0,3}": block row 3 of y, contributions 0 and 3 of more. Without braces: complete. A dimension of one block is
/// left out when it is the columns and ":" when it is the rows: "w[:,2]".
std::string in_words(const Program& program, const Sums& sums, const Value& value);

}  // namespace commfuse
