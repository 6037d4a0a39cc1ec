// SPDX-License-Identifier: Apache-2.0
// A capacity plan without a file: turns its flags into the plan file that says the same.
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
  FlagTexts settings;  ///< Settings below `set`.
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
  /// True if any was given.
  [[nodiscard]] bool any() const;
};

/// Returns the flags given as words of a shell: " --model llama-3.1-70b --tokens 2T …".
std::string in_shell_words(const PlanFlags& flags);

/// Returns a plan file that says the same as the flags, with prices dated today. Throws ConfigError with every flag
/// that is missing or wrong.
std::string plan_of(const PlanFlags& flags);

/// Reads such a file. Throws ConfigError with every mistake, by its flag where one made it.
PlanFile plan_by_flags(const PlanFlags& flags, const std::string& text);

}  // namespace commfuse::sim
