// SPDX-License-Identifier: Apache-2.0
// Loads a schedule from a file that was written by hand or by `schedule show -o yaml`.
#pragma once

#include <filesystem>
#include <string_view>

#include "model/program/program.h"

namespace commfuse {

struct ScheduleFile {
  std::filesystem::path path;
  Program program;

  /// Returns the name for messages and tables: "doubling.yaml".
  [[nodiscard]] std::string name() const { return path.filename().string(); }
};

/// Loads a schedule: `doubling` means schedules/doubling.yaml in the config folder, and a path means that file. Throws
/// ConfigError if the file cannot be read, or with a list of the mistakes in it. The program still has to pass
/// check_program.
ScheduleFile load_schedule(std::string_view name_or_path);

}  // namespace commfuse
