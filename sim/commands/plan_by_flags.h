// SPDX-License-Identifier: Apache-2.0
// Converts the flags of a capacity plan to the equivalent plan file.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config/field.h"
#include "model/config/plan_file.h"
#include "model/config_error.h"

namespace commfuse::sim {

/// Settings, each with the text that the user typed.
using FlagTexts = std::vector<std::pair<const Field*, std::string>>;

struct PlanFlags {
  FlagTexts settings;  ///< Settings for the `set` section of the plan file.
  std::string tokens, hardware, gpus, price, start, deadline, budget, available, count;

  /// Returns each flag that is not a setting, with its text.
  [[nodiscard]] std::array<std::pair<std::string_view, const std::string*>, 9> texts() const {
    return {{{"--tokens", &tokens},
             {"--hardware", &hardware},
             {"--gpus", &gpus},
             {"--price", &price},
             {"--start", &start},
             {"--deadline", &deadline},
             {"--budget", &budget},
             {"--available", &available},
             {"--count", &count}}};
  }
  /// Returns whether the user gave any flag.
  [[nodiscard]] bool any() const;
};

/// Returns the flags. If --deadline is a date and --start is absent, --start becomes today.
PlanFlags with_start(PlanFlags flags);

/// Adds the environment variables of settings, hardware and price that no flag gives. Returns a note for each variable
/// that a plan does not use, in whole lines. Throws ConfigError for unknown variables and wrong values.
std::string add_variables(PlanFlags& flags);

/// Returns a note, in whole lines, for each environment variable of a setting, because no variable changes a plan file.
/// Throws as add_variables() does.
std::string ignored_beside_file();

/// Returns the given flags quoted for a shell: " --model llama-3.1-70b --tokens 2T …".
std::string in_shell_words(const PlanFlags& flags);

/// Returns the text of a plan file equivalent to the flags, with prices dated today. Throws a ConfigError that names
/// all missing flags, or else all wrong settings.
std::string plan_of(const PlanFlags& flags);

/// Reads the text from plan_of(). Throws ConfigError with every mistake. If all mistakes come from flags, the error
/// names the flags instead of lines of the file.
PlanFile plan_by_flags(const PlanFlags& flags, const std::string& text);

/// Returns the error. If all its mistakes come from flags, the returned error names the flags instead of lines of the
/// plan from plan_of().
ConfigError naming_flags(const PlanFlags& flags, const std::string& text, const ConfigError& error);

}  // namespace commfuse::sim
