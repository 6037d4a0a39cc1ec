// SPDX-License-Identifier: Apache-2.0
// The unfused operation on whole matrices, as if one rank held them all: the result that a schedule has to reproduce.
#pragma once

#include <span>
#include <vector>

#include "model/program/program.h"
#include "model/program/sizes.h"
#include "validate/reference/rounding.h"
#include "validate/values/arithmetic.h"
#include "validate/values/matrix.h"

namespace commfuse::validate {

/// Returns every tensor, indexed by TensorId: computed from its definition in fp32, and rounded to its dtype when
/// stored. `inputs` must hold the input tensors, as input_data() returns them.
std::vector<Matrix<float>> unfused(const Program& program, const Sizes& sizes, std::vector<Matrix<float>> inputs,
                                   Functions functions);

/// A tensor in double, and a bound, element by element, on how far any correct schedule may differ from it.
struct Bounded {
  Matrix<double> value;
  Matrix<double> bound;
};

/// Returns every tensor, indexed by TensorId: computed from its definition with the real functions. unfused.cpp derives
/// the bound.
std::vector<Bounded> bounded(const Program& program, const Sizes& sizes, std::span<const Matrix<float>> inputs);

/// The roundings of one tensor in a schedule. bounded() and sums_are_exact() depend only on the roundings, inputs,
/// tensors, sizes and Program::unfused: programs in which all of these are equal get equal results from both functions.
struct Roundings {
  Roundoff storage;             ///< roundoff of the coarsest dtype in which values of the tensor are stored
  bool wire_rounds = false;     ///< some wire is coarser than some buffer
  std::int64_t times = 1;       ///< roundings of a stored value: 2 if the wire rounds it after a buffer did
  double exact_integers = 0.0;  ///< largest integer up to which the dtype of `storage` is exact
  std::int64_t parts = 1;       ///< largest number of partial products of a block
  friend bool operator==(const Roundings&, const Roundings&) = default;
};
/// Returns the roundings of every tensor, indexed by TensorId.
std::vector<Roundings> roundings_of(const Program& program);

/// Returns whether every sum of integers that a schedule may form is exact: for each GEMM, the sums of |a||b| must not
/// exceed the largest integer up to which its own dtype, and the dtype of every buffer and wire that may hold part of
/// it, are exact. `unfused` is the result of unfused().
bool sums_are_exact(const Program& program, std::span<const Matrix<float>> unfused);

}  // namespace commfuse::validate
