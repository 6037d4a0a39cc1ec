// SPDX-License-Identifier: Apache-2.0
// One pass through the command lists of all ranks, one op at a time, in an order that lanes, waits and meetings allow.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "model/schedule/lower.h"
#include "model/schedule/sizes.h"
#include "validate/reference/arithmetic.h"
#include "validate/reference/memory.h"

namespace commfuse::validate {

struct RunOptions {
  Functions functions = Functions::real;
  /// In which of the allowed orders ops run: 0 takes ranks and lanes in turn; any other number is the seed of a random
  /// choice that also lets lanes fall far behind. A correct program gives the same bits in every order.
  std::uint64_t order = 0;
};

/// Nothing can run, yet not everything has run; what() says who stands where.
class Stuck : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// `commands` by rank. Throws Stuck.
void run_iteration(const Program& program, const Sizes& sizes, std::span<const std::vector<Command>> commands,
                   const RunOptions& options, Memory& memory);

}  // namespace commfuse::validate
