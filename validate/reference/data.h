// SPDX-License-Identifier: Apache-2.0
// Generated values of a program's input tensors, identical on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "model/program/program.h"
#include "model/program/sizes.h"
#include "validate/values/matrix.h"

namespace commfuse::validate {

enum class DataKind : std::uint8_t {
  integers,  // small enough that every sum is exact in the tensor's dtype, in any order (level T-int)
  random,    // uniform in [-1, 1), stored in the tensor's dtype
  tags,      // every element is a hash of its tensor, row and column, in the bits of the dtype and finite (level T0)
};

/// Returns whole tensors, indexed by TensorId; empty for tensors that the program computes. The data depends on a
/// tensor's id, so programs of one operation get the same data with every strategy. Keeps one in 2^thinning of the
/// integers; the others are zero.
std::vector<Matrix<float>> input_data(const Program& program, const Sizes& sizes, DataKind kind, std::uint64_t seed,
                                      unsigned thinning = 0);

/// Integer inputs, as dense as exact sums allow, and every tensor of the unfused operation on them.
struct IntegerData {
  std::vector<Matrix<float>> inputs;
  std::vector<Matrix<float>> unfused;
};
/// Aborts if sums are not exact even if only one in 256 integers is kept.
IntegerData integer_data(const Program& program, const Sizes& sizes, std::uint64_t seed);

}  // namespace commfuse::validate
