// SPDX-License-Identifier: Apache-2.0
// The folder with the results of a sweep.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/commands/sink.h"

namespace commfuse::sim {

inline constexpr const char* settings_file = "settings.yaml";
inline constexpr const char* store_file = "results.sqlite";

/// The name of a file, and the function that writes it.
using OutputFile = std::pair<std::string, std::function<void(const Sink&)>>;

/// Returns a file that contains `text`.
OutputFile file_of(std::string name, std::string text);

/// The command that writes to a folder. It determines which argument and which remedies messages name.
enum class FolderUse : std::uint8_t {
  sweep,
  forced_sweep,  ///< Replaces the results of another sweep.
  merge,
};

class SweepFolder {
 public:
  /// Writes nothing yet. Throws ConfigError if the folder cannot be created or written or, unless the sweep is forced,
  /// if it has other files or the results of another sweep.
  SweepFolder(std::filesystem::path folder, std::string settings, FolderUse use);

  /// Creates the folder and writes the settings of the sweep into it. A forced sweep removes the stores of another
  /// sweep. Throws ConfigError, and changes nothing, if another process uses one of these stores, or if files in the
  /// way do not belong to a sweep.
  void begin() const;
  [[nodiscard]] std::filesystem::path path_of(const std::string& name) const { return folder_ / name; }

  /// Writes each file whole or not at all, and replaces links by files. Replaces no file before all are written.
  /// Removes result files of an earlier sweep that are not among `files`. Throws ConfigError if the folder meanwhile
  /// belongs to another sweep.
  void write(const std::vector<OutputFile>& files) const;

 private:
  std::filesystem::path folder_;
  std::string settings_;
  FolderUse use_;
};

}  // namespace commfuse::sim
