// SPDX-License-Identifier: Apache-2.0
#include "model/proof/value.h"

#include <fmt/format.h>

namespace commfuse {

std::int32_t contributions(const Program& program, const Tensor& tensor) {
  return tensor.definition == Tensor::Definition::product
             ? contraction_of(tensor, program.tensors[position(tensor.a)]).blocks
             : 1;
}

std::string in_words(const Program& program, const Sums& sums, const CellValue& value) {
  if (value.tensor == no_tensor) {
    return "nothing";
  }
  if (is_wrong(value)) {
    return "a wrong value";
  }
  if (value.tensor == zero_value.tensor) {
    return "zeros";
  }
  const Tensor& tensor = program.tensors[position(value.tensor)];
  std::string words = fmt::format("{}[{},{}]", tensor.name, value.row, value.column);
  if (tensor.columns.blocks == 1) {
    words = fmt::format("{}[{}]", tensor.name, value.row);
  } else if (tensor.rows.blocks == 1) {
    words = fmt::format("{}[:,{}]", tensor.name, value.column);
  }
  const std::int32_t needed = contributions(program, tensor);
  const std::string contributed = sums.in_words(value.sum);
  const std::string complete = needed == 1 ? "{0}" : needed == 2 ? "{0,1}" : fmt::format("{{0-{}}}", needed - 1);
  return contributed == complete ? words : words + contributed;
}

}  // namespace commfuse
