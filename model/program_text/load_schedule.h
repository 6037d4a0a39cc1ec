// SPDX-License-Identifier: Apache-2.0
// A schedule from a file: written by hand, or by `schedule show -o yaml`.
#pragma once

#include <filesystem>
#include <string_view>

#include "model/program/program.h"

namespace commfuse {

struct ScheduleFile {
  std::filesystem::path path;
  Program program;

  /// What messages and tables call it: "doubling.yaml".
  [[nodiscard]] std::string name() const { return path.filename().string(); }
};

/// `doubling` means schedules/doubling.yaml in the config folder; a path is a path. Throws ConfigError for a file that
/// cannot be read and with every mistake of one that can. The program still has to pass check_program.
ScheduleFile load_schedule(std::string_view name_or_path);

}  // namespace commfuse
