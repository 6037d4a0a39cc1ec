// SPDX-License-Identifier: Apache-2.0
// A simulation for trying a law: settings of a run that differ from their defaults, and changes to the machine.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/settings.h"

namespace commfuse::laws {

/// Multiplies parameters of the machine (model/hardware/raised.h).
struct Edit {
  std::string parameters;  ///< A name, or a pattern with one `*`.
  double times = 1.0;
  friend bool operator==(const Edit&, const Edit&) = default;
};

struct Setting {
  /// Values that differ from the default, by key of run_fields().
  std::map<std::string, std::string, std::less<>> choices;
  std::vector<Edit> edits;

  /// Returns the chosen value, or the default.
  [[nodiscard]] std::string text(std::string_view key) const;
  [[nodiscard]] std::int64_t count(std::string_view key) const;
  /// Returns the setting with another choice.
  [[nodiscard]] Setting with(std::string_view key, std::string_view text) const;
  [[nodiscard]] Setting with(std::string_view key, std::int64_t count) const;
  [[nodiscard]] Setting with(Edit edit) const;

  friend bool operator==(const Setting&, const Setting&) = default;
};

bool is_whole_model(const Setting& setting);
/// True if the machine has several nodes.
bool is_cluster(const Setting& setting);

/// Returns the settings of the run. Uncertainty is off unless the setting chooses it.
Settings settings_of(const Setting& setting);

/// Returns a command such as "commfuse-sim run --scope mlp --ranks 4", followed by the machine's changes as a comment.
std::string command_of(const Setting& setting);

}  // namespace commfuse::laws
