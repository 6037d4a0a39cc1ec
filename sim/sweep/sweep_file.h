// SPDX-License-Identifier: Apache-2.0
// A sweep in YAML (`schema: commfuse.sweep/1`): settings, axes, constraints, outputs. configs/sweeps/ has a commented
// example.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/resolver.h"
#include "sim/point/grid.h"

namespace commfuse {

inline constexpr std::string_view sweep_schema = "commfuse.sweep/1";

/// What a sweep leaves in its folder, beside its settings.
inline constexpr std::array<std::string_view, 4> all_outputs{"csv", "json", "report", "map"};

struct Sweep {
  std::string title;  ///< the file's name where it gives none
  Grid grid;
  std::vector<std::string> outputs;  ///< of all_outputs, in that order

  [[nodiscard]] bool writes(std::string_view output) const;
};

/// Reads the file: its settings go to the resolver, above --config files and below all else; so do its mistakes. What
/// comes back has no settings yet.
Sweep read_sweep(const std::string& path, Resolver& resolver);

/// Adds the axes of the command line to those of a file. One for a setting that the file varies takes its place; a
/// value of higher precedence than an axis ends it. Settings that are varied twice are mistakes.
std::vector<GridAxis> merged_axes(std::vector<GridAxis> of_file, const std::vector<std::string>& of_command_line,
                                  Resolver& resolver);

/// The sweep in full, as a file that makes the same points anywhere on this machine: the same bytes for the same
/// settings, wherever they came from.
std::string to_yaml(const Sweep& sweep);

}  // namespace commfuse
