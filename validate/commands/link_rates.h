// SPDX-License-Identifier: Apache-2.0
// What `links` measures beside links and ranks where it is asked to: both ways at once, and collectives by size.
#pragma once

#include <string>
#include <vector>

#include "validate/bench/rates.h"

namespace CLI {
class App;
}

namespace commfuse::validate {

/// As written on the command line.
struct RateArguments {
  bool both_ways = false;
  std::string collectives;  // sizes; empty: none
};

/// --both-ways and --collectives. The arguments must outlive the parsing.
void add_rate_flags(CLI::App& command, RateArguments& arguments);

/// Throws ConfigError for sizes that are none.
RatePlan rate_plan_of(const RateArguments& arguments, std::int32_t ranks, const std::vector<Bytes>& sizes);

}  // namespace commfuse::validate
