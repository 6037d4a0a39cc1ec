// SPDX-License-Identifier: Apache-2.0
// Measurements that `links` adds on request: pairs that send both ways simultaneously, and collectives by size.
#pragma once

#include <string>
#include <vector>

#include "validate/bench/rates.h"

namespace CLI {
class App;
}

namespace commfuse::validate {

/// The flags as written on the command line.
struct RateArguments {
  bool both_ways = false;
  std::string collectives;  // Sizes; empty: no collectives.
};

/// Adds --both-ways and --collectives. The arguments must outlive the parsing.
void add_rate_flags(CLI::App& command, RateArguments& arguments);

/// Returns the plan. Throws ConfigError for invalid sizes.
RatePlan rate_plan_of(const RateArguments& arguments, std::int32_t ranks, const std::vector<Bytes>& sizes);

}  // namespace commfuse::validate
