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
  Kept& entry = kept(program, sizes, seed);
  if (!entry.integers) {
    entry.integers = integer_data(program, sizes, seed);
  }
  return *entry.integers;
}

const std::vector<Matrix<float>>& References::inputs(const Program& program, const Sizes& sizes, std::uint64_t seed) {
  Kept& entry = kept(program, sizes, seed);
  if (!entry.inputs) {
    entry.inputs = input_data(program, sizes, DataKind::random, seed);
  }
  return *entry.inputs;
}

const std::vector<Matrix<float>>& References::unfused(const Program& program, const Sizes& sizes, std::uint64_t seed) {
  const std::vector<Matrix<float>>& input_tensors = inputs(program, sizes, seed);
  Kept& entry = kept_.front();
  if (!entry.unfused) {
    entry.unfused = validate::unfused(program, sizes, input_tensors, Functions::real);
  }
  return *entry.unfused;
}

const std::vector<Bounded>& References::bounded(const Program& program, const Sizes& sizes, std::uint64_t seed) {
  const std::vector<Matrix<float>>& input_tensors = inputs(program, sizes, seed);
  Kept& entry = kept_.front();
  if (!entry.bounded) {
    entry.bounded = validate::bounded(program, sizes, input_tensors);
  }
  return *entry.bounded;
}

}  // namespace commfuse::validate
