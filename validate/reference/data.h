// SPDX-License-Identifier: Apache-2.0
// Made-up values of a program's input tensors, the same on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "model/program/program.h"
#include "model/program/sizes.h"
#include "validate/values/matrix.h"

namespace commfuse::validate {

enum class DataKind : std::uint8_t {
  integers,  // so small that every sum is exact in the tensor's dtype, whatever its order (level T-int)
  random,    // uniform in [-1, 1), stored in the tensor's dtype
  tags,      // every element a hash of its tensor, row and column in the bits of the dtype (level T0): finite numbers
};

/// By TensorId, each whole; empty for tensors that the program computes. Tensors are told apart by their id, so
/// programs of one operation get the same data, whatever their strategy. Of integers one in 2^thinning is kept, the
/// others are zero.
std::vector<Matrix<float>> input_data(const Program& program, const Sizes& sizes, DataKind kind, std::uint64_t seed,
                                      unsigned thinning = 0);

/// Integer inputs, as dense as keeps every sum exact, and every tensor of the unfused operation on them.
struct IntegerData {
  std::vector<Matrix<float>> inputs;
  std::vector<Matrix<float>> unfused;
};
/// Aborts when hardly any would be left.
IntegerData integer_data(const Program& program, const Sizes& sizes, std::uint64_t seed);

}  // namespace commfuse::validate
