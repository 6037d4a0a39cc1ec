// SPDX-License-Identifier: Apache-2.0
#include "validate/commands/link_rates.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "model/config_error.h"
#include "model/text/quantity.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"

namespace commfuse::validate {

namespace {

constexpr std::int64_t max_collective_bytes = std::int64_t{1} << 30U;

}  // namespace

void add_rate_flags(CLI::App& command, RateArguments& arguments) {
  command.add_flag("--both-ways", arguments.both_ways,
                   "Also measure every pair with both directions active simultaneously");
  command
      .add_option("--collectives", arguments.collectives,
                  "Also time collectives of these sizes, out of place and in place")
      ->type_name("SIZES");
}

RatePlan rate_plan_of(const RateArguments& arguments, std::int32_t ranks, const std::vector<Bytes>& sizes) {
  RatePlan plan{.ranks = ranks, .sizes = sizes, .both_ways = arguments.both_ways};
  if (arguments.collectives.empty()) {
    return plan;
  }
  for (const std::string_view word : split_list(arguments.collectives)) {
    const std::optional<Bytes> size = parse_size(word);
    if (!size || size->count < 1 || size->count > max_collective_bytes) {
      throw ConfigError(fmt::format("--collectives: {} is not a size up to 1 GiB; write sizes, as in '8 KiB,64 MiB'",
                                    in_quotes(word)));
    }
    if (std::ranges::find(plan.collectives, *size) == plan.collectives.end()) {
      plan.collectives.push_back(*size);
    }
  }
  return plan;
}

}  // namespace commfuse::validate
