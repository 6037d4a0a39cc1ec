// SPDX-License-Identifier: Apache-2.0
#include "validate/commands/pace_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "model/config_error.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"

namespace commfuse::validate {

namespace {

// With these limits a transfer of a few GiB takes hours at most, and sums of transfer times fit into a Duration.
constexpr BytesPerSecond slowest{1e6};
constexpr BytesPerSecond fastest{1e15};
constexpr Duration longest_latency = std::chrono::seconds(1);

}  // namespace

void add_pace_flags(CLI::App& command, PaceArguments& arguments, const std::string& group) {
  command
      .add_option("--link-bandwidth", arguments.bandwidth,
                  "Bandwidth to which copies are slowed, for example '2 GB/s' (default: unlimited)")
      ->group(group)
      ->type_name("RATE");
  command
      .add_option("--link-latency", arguments.latency, "Latency of links with --link-bandwidth, for example '20 us'")
      ->group(group)
      ->type_name("TIME");
}

std::optional<Pace> pace_of(const PaceArguments& arguments) {
  if (arguments.latency.empty() && arguments.bandwidth.empty()) {
    return std::nullopt;
  }
  const std::optional<Duration> latency = parse_duration(arguments.latency.empty() ? "0 us" : arguments.latency);
  if (!latency) {
    throw ConfigError(fmt::format("--link-latency: {} is not a duration; write a number and a unit, as in '5 us'",
                                  in_quotes(arguments.latency)));
  }
  if (*latency > longest_latency) {
    throw ConfigError(fmt::format("--link-latency: {} is more than 1 s; choose a realistic latency, as in '5 us'",
                                  in_quotes(arguments.latency)));
  }
  if (arguments.bandwidth.empty()) {
    throw ConfigError("--link-latency requires --link-bandwidth; add it, as in '2 GB/s'");
  }
  const std::optional<BytesPerSecond> bandwidth = parse_bandwidth(arguments.bandwidth);
  if (!bandwidth) {
    throw ConfigError(fmt::format("--link-bandwidth: {} is not a bandwidth; write a number and a unit, as in '2 GB/s'",
                                  in_quotes(arguments.bandwidth)));
  }
  if (*bandwidth < slowest || *bandwidth > fastest) {
    throw ConfigError(
        fmt::format("--link-bandwidth: {} is outside 1 MB/s to 1000 TB/s; choose a realistic bandwidth, as in '2 GB/s'",
                    in_quotes(arguments.bandwidth)));
  }
  return Pace{*latency, *bandwidth};
}

}  // namespace commfuse::validate
