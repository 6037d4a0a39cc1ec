// SPDX-License-Identifier: Apache-2.0
// Command-line options that complete an imported file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/yaml_reader.h"

namespace commfuse::import {

/// The values of each flag, by flag ("--gpus").
class Options {
 public:
  void set(std::string flag, std::vector<std::string> values) { values_[std::move(flag)] = std::move(values); }

  [[nodiscard]] std::optional<std::string> text(std::string_view flag) const;
  /// Reads a count; "8K" is 8192. Throws ConfigError if the value is not a count or out of range.
  [[nodiscard]] std::optional<std::int64_t> count(std::string_view flag, Range<std::int64_t> range) const;
  [[nodiscard]] std::vector<std::string> words(std::string_view flag) const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

struct Source {
  std::string path;
  std::string name;  ///< Name of the model that the import writes.
  Options options{};
};

/// Allowed GPU counts of a training step.
inline constexpr Range<std::int64_t> gpus_range{1, std::int64_t{1} << 20};

/// Returns the model of `--model`, as a run file names it; nothing without the option. Throws ConfigError if the model
/// cannot be loaded.
std::optional<std::string> chosen_model(const Options& options);

}  // namespace commfuse::import
