// SPDX-License-Identifier: Apache-2.0
// The unfused operation on whole matrices, as if one rank held them all: what a schedule has to reproduce.
#pragma once

#include <span>
#include <vector>

#include "model/program/program.h"
#include "model/program/sizes.h"
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

/// Whether every sum of integers that a schedule may form is exact: for each product the sums of |a||b| are no larger
/// than the integers that its dtype and those of all buffers and wires that may hold part of it count exactly.
/// `unfused` as from unfused().
bool sums_are_exact(const Program& program, std::span<const Matrix<float>> unfused);

}  // namespace commfuse::validate
