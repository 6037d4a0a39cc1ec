// SPDX-License-Identifier: Apache-2.0
// A capacity plan from flags alone: writes the equivalent plan file.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config/field.h"
#include "model/config/plan_file.h"

namespace commfuse::sim {

/// Settings and the text that the user typed for each.
using FlagTexts = std::vector<std::pair<const Field*, std::string>>;

struct PlanFlags {
  FlagTexts settings;  ///< Settings in the `set` section of a plan file.
  std::string tokens, hardware, gpus, price, deadline, budget, available;

  /// Returns each flag except settings, and its text.
  [[nodiscard]] std::array<std::pair<std::string_view, const std::string*>, 7> texts() const {
    return {{{"--tokens", &tokens},
             {"--hardware", &hardware},
             {"--gpus", &gpus},
             {"--price", &price},
             {"--deadline", &deadline},
             {"--budget", &budget},
             {"--available", &available}}};
  }
  /// Returns whether the user gave any flag.
  [[nodiscard]] bool any() const;
};

/// Returns the flags given as words of a shell: " --model llama-3.1-70b --tokens 2T …".
std::string in_shell_words(const PlanFlags& flags);

/// Returns the text of a plan file equivalent to the flags, with prices dated today. Throws ConfigError with every flag
/// that is missing or wrong.
std::string plan_of(const PlanFlags& flags);

/// Reads the text from plan_of(). Throws ConfigError with every mistake; names the flag, not a line of the file, for
/// mistakes that come from a flag.
PlanFile plan_by_flags(const PlanFlags& flags, const std::string& text);

}  // namespace commfuse::sim
