// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/data.h"

#include "model/check.h"
#include "validate/reference/random.h"
#include "validate/reference/rounding.h"
#include "validate/reference/unfused.h"

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

float integer(Random& random, DType dtype, unsigned thinning) {
  const auto value = static_cast<float>(random.integer(largest_integer(dtype)));
  const bool kept = thinning == 0 || random.next() % (std::uint64_t{1} << thinning) == 0;
  return kept ? value : 0.0F;
}

constexpr unsigned most_thinning = 8;

}  // namespace

std::vector<Matrix<float>> input_data(const Program& program, const Sizes& sizes, DataKind kind, std::uint64_t seed,
                                      unsigned thinning) {
  std::vector<Matrix<float>> data(program.tensors.size());
  for (std::size_t id = 0; id < program.tensors.size(); ++id) {
    const Tensor& tensor = program.tensors[id];
    if (tensor.definition != Tensor::Definition::input) {
      continue;
    }
    Random random(Random(seed).next() + id);
    data[id] = Matrix<float>(sizes.elements(tensor.rows), sizes.elements(tensor.columns));
    for (float& value : data[id].values()) {
      value =
          kind == DataKind::random ? stored(tensor.dtype, random.uniform()) : integer(random, tensor.dtype, thinning);
    }
  }
  return data;
}

IntegerData integer_data(const Program& program, const Sizes& sizes, std::uint64_t seed) {
  for (unsigned thinning = 0; thinning <= most_thinning; ++thinning) {
    IntegerData data{.inputs = input_data(program, sizes, DataKind::integers, seed, thinning), .unfused = {}};
    data.unfused = unfused(program, sizes, data.inputs, Functions::integer);
    if (sums_are_exact(program, data.unfused)) {
      return data;
    }
  }
  check(false, "integer data is for sizes that keep every sum exact");
  return {};
}

}  // namespace commfuse::validate
