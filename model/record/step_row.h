// SPDX-License-Identifier: Apache-2.0
// Result for a whole model with one strategy: a training step, a prefill or a decoding step. It has the columns of
// all_columns() (columns.h) that apply.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace commfuse {

/// Value of the column `implemented_sites` for an implementation that runs every all-reduce of a pass, not GEMMs.
inline constexpr std::string_view all_sums = "all_reduce";

/// Named values in the order of every output; a name ends with the unit (time_ms). A row has only the values that apply
/// to its scope; a row that could not be run has its `reason` instead.
struct StepRow {
  using Value = std::variant<bool, std::int64_t, double, std::string>;

  void add(std::string_view name, Value value) { cells.emplace_back(name, std::move(value)); }
  /// Returns null if the row has no value of that name.
  [[nodiscard]] const Value* find(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
  /// Return the value of that name. Require that it exists and has the returned type.
  [[nodiscard]] const std::string& text(std::string_view name) const;
  [[nodiscard]] std::int64_t count(std::string_view name) const;
  [[nodiscard]] double number(std::string_view name) const;
  [[nodiscard]] bool flag(std::string_view name) const;

  [[nodiscard]] bool feasible() const { return !has("reason"); }

  std::vector<std::pair<std::string_view, Value>> cells;  ///< names are literals
};

}  // namespace commfuse
