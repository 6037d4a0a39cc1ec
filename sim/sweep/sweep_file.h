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

/// The outputs that a sweep file can request.
inline constexpr std::array<std::string_view, 4> all_outputs{"csv", "json", "report", "map"};

struct Sweep {
  std::string title;  ///< the file's name if the file has no title
  Grid grid;
  std::vector<std::string> outputs;  ///< from all_outputs, in that order

  [[nodiscard]] bool writes(std::string_view output) const;
};

/// Reads the file. Its settings and mistakes go to the resolver; the settings have precedence above --config files and
/// below everything else. The returned sweep has no settings yet.
Sweep read_sweep(const std::string& path, Resolver& resolver);

/// Adds the command line's axes to the axes of a file. A setting that both vary takes its axis from the command line; a
/// value of higher precedence removes an axis. A setting that the file or the command line varies twice is a mistake.
std::vector<GridAxis> merged_axes(std::vector<GridAxis> of_file, const std::vector<std::string>& of_command_line,
                                  Resolver& resolver);

/// Returns the complete sweep as a file that makes the same points anywhere on this machine: the same bytes for the
/// same settings, whatever their source.
std::string to_yaml(const Sweep& sweep);

}  // namespace commfuse
