// SPDX-License-Identifier: Apache-2.0
// The folder that a sweep leaves its results in.
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

/// Returns a file with this text.
OutputFile file_of(std::string name, std::string text);

/// The command that writes to a folder; messages name its argument and its remedies.
enum class FolderUse : std::uint8_t {
  sweep,
  forced_sweep,  ///< Replaces results of another sweep.
  merge,
};

class SweepFolder {
 public:
  /// Writes nothing yet. Throws ConfigError if the folder cannot be made, or if it is not empty and has other settings,
  /// unless the sweep is forced.
  SweepFolder(std::filesystem::path folder, std::string settings, FolderUse use);

  /// Makes the folder and writes into it which sweep it is for. A forced sweep removes what another sweep left. Throws
  /// ConfigError, and changes nothing, if another process uses a store of it, or if what is in the way belongs to no
  /// sweep.
  void begin() const;
  [[nodiscard]] std::filesystem::path path_of(const std::string& name) const { return folder_ / name; }

  /// Writes each file whole or not at all, also where a link stood in its place, and replaces none before all are
  /// written. Removes what an older sweep left and this one does not make. Throws ConfigError if the folder meanwhile
  /// belongs to another sweep.
  void write(const std::vector<OutputFile>& files) const;

 private:
  std::filesystem::path folder_;
  std::string settings_;
  FolderUse use_;
};

}  // namespace commfuse::sim
