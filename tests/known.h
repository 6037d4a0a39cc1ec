// SPDX-License-Identifier: Apache-2.0
// Lists that error messages repeat, taken from the tables that define them, so that a new entry changes no test. docs/
// and golden files show the contents.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "model/config/field.h"
#include "model/strategies/strategies.h"

namespace commfuse::test {

/// Returns the names of all strategies: "serial, sliced, ...".
inline std::string known_strategies() {
  std::vector<std::string_view> names;
  for (const Strategy& strategy : strategies()) {
    names.push_back(strategy.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Returns the keys of all settings of a run: "model, hardware, ...".
inline std::string known_settings() {
  std::vector<std::string_view> keys;
  for (const Field& field : run_fields()) {
    keys.push_back(field.key);
  }
  return fmt::format("{}", fmt::join(keys, ", "));
}

/// Returns the keys of all settings of a point that are counts: "ranks, seq, ...".
inline std::string known_numbers() {
  std::vector<std::string_view> keys;
  for (const Field& field : run_fields()) {
    if (field.type == FieldType::count && field.of_point) {
      keys.push_back(field.key);
    }
  }
  return fmt::format("{}", fmt::join(keys, ", "));
}

/// Returns the flags of all settings of a run: "--model, --hardware, ...".
inline std::string known_flags() {
  std::string flags;
  for (const Field& field : run_fields()) {
    flags += fmt::format("{}--{}", flags.empty() ? "" : ", ", field.flag);
  }
  return flags;
}

}  // namespace commfuse::test
