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

/// Keeps the made-up data of operations and the unfused operations on them. They hang on the tensors of a program, its
/// sizes, the seed and how its values are rounded on their way, so most schedules of an operation share them. Results
/// are those of integer_data(), input_data(), unfused() and bounded(), and live until one is asked for that differs in
/// any of these. One a thread.
class References {
 public:
  /// Aborts as integer_data().
  const IntegerData& integers(const Program& program, const Sizes& sizes, std::uint64_t seed);
  /// Returns random input tensors.
  const std::vector<Matrix<float>>& inputs(const Program& program, const Sizes& sizes, std::uint64_t seed);
  /// Returns every tensor of the unfused operation on them.
  const std::vector<Matrix<float>>& unfused(const Program& program, const Sizes& sizes, std::uint64_t seed);
  const std::vector<Bounded>& bounded(const Program& program, const Sizes& sizes, std::uint64_t seed);

 private:
  struct Problem {
    std::vector<Tensor> tensors;
    std::vector<Shape> work;  // unfused: it has the heads of attention
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

  std::list<Kept> kept_;  // the one that was asked for last is the first
};

}  // namespace commfuse::validate
