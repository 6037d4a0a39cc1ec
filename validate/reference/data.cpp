// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/data.h"

#include "model/check.h"
#include "validate/reference/random.h"
#include "validate/reference/rounding.h"

namespace commfuse::validate {

namespace {

/// bf16 counts exactly only to 256, so its data is -1, 0 and 1.
std::int64_t largest_integer(DType dtype) {
  switch (dtype) {
    case DType::bf16: return 1;
    case DType::fp16: return 2;
    case DType::fp32: return 8;
    case DType::fp8: break;
  }
  check(false, "the reference stores fp32, fp16 and bf16");
  return 0;
}

}  // namespace

std::vector<Matrix<float>> input_data(const Program& program, const Sizes& sizes, DataKind kind, std::uint64_t seed) {
  std::vector<Matrix<float>> data(program.tensors.size());
  for (std::size_t id = 0; id < program.tensors.size(); ++id) {
    const Tensor& tensor = program.tensors[id];
    if (tensor.definition != Tensor::Definition::input) {
      continue;
    }
    Random random(Random(seed).next() + id);
    data[id] = Matrix<float>(sizes.elements(tensor.rows), sizes.elements(tensor.columns));
    for (float& value : data[id].values()) {
      value = kind == DataKind::random ? stored(tensor.dtype, random.uniform())
                                       : static_cast<float>(random.integer(largest_integer(tensor.dtype)));
    }
  }
  return data;
}

}  // namespace commfuse::validate
