// SPDX-License-Identifier: Apache-2.0
// Expected results of an operation, calculated once for all schedules that share them.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "model/program/program.h"
#include "model/program/sizes.h"
#include "validate/reference/data.h"
#include "validate/reference/unfused.h"

namespace commfuse::validate {

/// Caches the input data of operations and the results of the unfused operations. They depend on the tensors of a
/// program, its sizes, the seed and the roundings of its values, so most schedules of an operation share them. Results
/// are those of integer_data(), input_data(), unfused() and bounded(). References stay valid until a call with another
/// program, sizes or seed needs other data. Each thread needs its own object.
class References {
 public:
  /// Aborts as integer_data() does.
  const IntegerData& integers(const Program& program, const Sizes& sizes, std::uint64_t seed);
  /// Returns random input tensors.
  const std::vector<Matrix<float>>& inputs(const Program& program, const Sizes& sizes, std::uint64_t seed);
  /// Returns every tensor of the unfused operation on inputs().
  const std::vector<Matrix<float>>& unfused(const Program& program, const Sizes& sizes, std::uint64_t seed);
  const std::vector<Bounded>& bounded(const Program& program, const Sizes& sizes, std::uint64_t seed);

 private:
  struct Problem {
    std::vector<Tensor> tensors;
    std::vector<Shape> work;  // Program::unfused, which has the heads of attention
    std::vector<std::int64_t> block;
    std::uint64_t seed = 0;
    std::vector<Roundings> roundings;
    friend bool operator==(const Problem&, const Problem&) = default;
  };
  struct Kept {
    Problem problem;
    std::optional<IntegerData> integers{};
    std::optional<std::vector<Matrix<float>>> inputs{};
    std::optional<std::vector<Matrix<float>>> unfused{};
    std::optional<std::vector<Bounded>> bounded{};
  };
  Kept& kept(const Program& program, const Sizes& sizes, std::uint64_t seed);

  std::list<Kept> kept_;  // most recently used first
};

}  // namespace commfuse::validate
