// SPDX-License-Identifier: Apache-2.0
// The flags that set the speed of real links.
#pragma once

#include <optional>
#include <string>

#include "validate/cpu/wall_clock.h"

namespace CLI {
class App;
}

namespace commfuse::validate {

/// The flags as written on the command line. If both are empty, links are as fast as copying.
struct PaceArguments {
  std::string latency;
  std::string bandwidth;
};

/// Adds the flags. The arguments must outlive the parsing.
void add_pace_flags(CLI::App& command, PaceArguments& arguments, const std::string& group);

/// Returns the pace; nothing if links are as fast as copying. Throws ConfigError for an invalid rate or latency.
std::optional<Pace> pace_of(const PaceArguments& arguments);

}  // namespace commfuse::validate
