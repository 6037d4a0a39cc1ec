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

/// A file's name and what writes it.
using OutputFile = std::pair<std::string, std::function<void(const Sink&)>>;

/// A file that is one text.
OutputFile file_of(std::string name, std::string text);

/// Who writes to a folder: messages name its argument and its remedies.
enum class FolderUse : std::uint8_t {
  sweep,
  forced_sweep,  ///< what the folder holds is no obstacle
  merge,
};

class SweepFolder {
 public:
  /// Nothing is written yet. Throws ConfigError when the folder cannot be made, or when it is not empty and its
  /// settings are not these, unless the sweep is forced.
  SweepFolder(std::filesystem::path folder, std::string settings, FolderUse use);

  /// Makes the folder and says in it which sweep it is for. Where forced, what it held of another sweep goes away;
  /// throws ConfigError, and changes nothing, where another process has a store of it or what is in the way is of no
  /// sweep.
  void begin() const;
  [[nodiscard]] std::filesystem::path path_of(const std::string& name) const { return folder_ / name; }

  /// Each file is there whole or not at all, also where a link stood in its place, and none is replaced before all are
  /// written. What an older sweep left and this one does not make goes away. Throws ConfigError where another sweep has
  /// meanwhile been given the folder.
  void write(const std::vector<OutputFile>& files) const;

 private:
  std::filesystem::path folder_;
  std::string settings_;
  FolderUse use_;
};

}  // namespace commfuse::sim
