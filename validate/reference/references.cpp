// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/references.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "validate/values/arithmetic.h"

namespace commfuse::validate {

namespace {

constexpr std::size_t max_kept = 16;  // Neighbouring points of a list share few results, and each may take megabytes.

}  // namespace

References::Kept& References::kept(const Program& program, const Sizes& sizes, std::uint64_t seed) {
  Problem problem{program.tensors, program.unfused, sizes.block, seed, roundings_of(program)};
  const auto known = std::ranges::find(kept_, problem, &Kept::problem);
  if (known != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, known);
    return kept_.front();
  }
  if (kept_.size() == max_kept) {
    kept_.pop_back();
  }
  return kept_.emplace_front(Kept{std::move(problem)});
}

const IntegerData& References::integers(const Program& program, const Sizes& sizes, std::uint64_t seed) {
  Kept& of = kept(program, sizes, seed);
  if (!of.integers) {
    of.integers = integer_data(program, sizes, seed);
  }
  return *of.integers;
}

const std::vector<Matrix<float>>& References::inputs(const Program& program, const Sizes& sizes, std::uint64_t seed) {
  Kept& of = kept(program, sizes, seed);
  if (!of.inputs) {
    of.inputs = input_data(program, sizes, DataKind::random, seed);
  }
  return *of.inputs;
}

const std::vector<Matrix<float>>& References::unfused(const Program& program, const Sizes& sizes, std::uint64_t seed) {
  const std::vector<Matrix<float>>& given = inputs(program, sizes, seed);
  Kept& of = kept_.front();
  if (!of.unfused) {
    of.unfused = validate::unfused(program, sizes, given, Functions::real);
  }
  return *of.unfused;
}

const std::vector<Bounded>& References::bounded(const Program& program, const Sizes& sizes, std::uint64_t seed) {
  const std::vector<Matrix<float>>& given = inputs(program, sizes, seed);
  Kept& of = kept_.front();
  if (!of.bounded) {
    of.bounded = validate::bounded(program, sizes, given);
  }
  return *of.bounded;
}

}  // namespace commfuse::validate
