// SPDX-License-Identifier: Apache-2.0
// The unfused operation on whole matrices, as if one rank held them all: what a schedule has to reproduce.
#pragma once

#include <span>
#include <vector>

#include "model/program/program.h"
#include "model/program/sizes.h"
#include "validate/reference/rounding.h"
#include "validate/values/arithmetic.h"
#include "validate/values/matrix.h"

namespace commfuse::validate {

/// Every tensor from its definition, by TensorId, in fp32 and rounded to its dtype when stored. `inputs` holds the
/// input tensors, as input_data() gives them.
std::vector<Matrix<float>> unfused(const Program& program, const Sizes& sizes, std::vector<Matrix<float>> inputs,
                                   Functions functions);

/// A tensor in double, and how far from it, element by element, any correct schedule may end up.
struct Bounded {
  Matrix<double> value;
  Matrix<double> bound;
};

/// Every tensor from its definition, with the real functions, by TensorId. unfused.cpp derives the bound.
std::vector<Bounded> bounded(const Program& program, const Sizes& sizes, std::span<const Matrix<float>> inputs);

/// All that bounded() and sums_are_exact() take of a schedule beside its tensors, by TensorId: programs of equal
/// tensors, sizes and roundings have equal results of both.
struct Roundings {
  Roundoff storage;             ///< Of the coarsest dtype that values of the tensor are stored in on their way.
  bool wire_rounds = false;     ///< Whether some wire is coarser than some buffer.
  double exact_integers = 0.0;  ///< Integers up to here are exact in that dtype.
  std::int64_t parts = 1;       ///< Partial products into which ops cut a block of it at most.
  friend bool operator==(const Roundings&, const Roundings&) = default;
};
std::vector<Roundings> roundings_of(const Program& program);

/// Whether every sum of integers that a schedule may form is exact: for each product the sums of |a||b| are no larger
/// than the integers that its dtype and those of all buffers and wires that may hold part of it count exactly.
/// `unfused` as from unfused().
bool sums_are_exact(const Program& program, std::span<const Matrix<float>> unfused);

}  // namespace commfuse::validate
