// SPDX-License-Identifier: Apache-2.0
// A capacity plan without a file: what its flags say, as the file that says the same.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config/field.h"
#include "model/config/plan_file.h"

namespace commfuse::sim {

/// Settings and what was typed for them.
using FlagTexts = std::vector<std::pair<const Field*, std::string>>;

struct PlanFlags {
  FlagTexts settings;  ///< Those below `set`.
  std::string tokens, hardware, gpus, price, deadline, budget, available;

  /// Each flag but settings, and its text.
  [[nodiscard]] std::array<std::pair<std::string_view, const std::string*>, 7> texts() const {
    return {{{"--tokens", &tokens},
             {"--hardware", &hardware},
             {"--gpus", &gpus},
             {"--price", &price},
             {"--deadline", &deadline},
             {"--budget", &budget},
             {"--available", &available}}};
  }
  /// Whether any was given.
  [[nodiscard]] bool any() const;
};

/// " --model llama-3.1-70b --tokens 2T …": what was given, as words of a shell.
std::string in_shell_words(const PlanFlags& flags);

/// A plan file that says what the flags say; the price is dated today. Throws ConfigError with every flag that is
/// missing or wrong.
std::string plan_of(const PlanFlags& flags);

/// That text read. Throws ConfigError with every mistake, by its flag where one made it.
PlanFile plan_by_flags(const PlanFlags& flags, const std::string& text);

}  // namespace commfuse::sim
