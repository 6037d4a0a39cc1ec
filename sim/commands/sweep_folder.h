// SPDX-License-Identifier: Apache-2.0
// The folder that a sweep leaves its results in.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace commfuse::sim {

inline constexpr const char* settings_file = "settings.yaml";

class SweepFolder {
 public:
  /// Nothing is written yet. Throws ConfigError when the folder cannot be made, or when it is not empty and its
  /// settings are not these, unless `force`.
  SweepFolder(std::filesystem::path folder, std::string settings, bool force);

  /// Names and contents; the settings go along. Each file is there whole or not at all, and none is replaced before all
  /// are written. What an older sweep left and this one does not make goes away.
  void write(const std::vector<std::pair<std::string, std::string>>& files) const;

 private:
  std::filesystem::path folder_;
  std::string settings_;
};

}  // namespace commfuse::sim
