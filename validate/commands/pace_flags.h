// SPDX-License-Identifier: Apache-2.0
// The flags that say how fast real links are.
#pragma once

#include <optional>
#include <string>

#include "validate/cpu/wall_clock.h"

namespace CLI {
class App;
}

namespace commfuse::validate {

/// As written on the command line; both empty: as fast as copying.
struct PaceArguments {
  std::string latency;
  std::string bandwidth;
};

/// The arguments must outlive the parsing.
void add_pace_flags(CLI::App& command, PaceArguments& arguments, const std::string& group);

/// Nothing: as fast as copying. Throws ConfigError.
std::optional<Pace> pace_of(const PaceArguments& arguments);

}  // namespace commfuse::validate
