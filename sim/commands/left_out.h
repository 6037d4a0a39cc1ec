// SPDX-License-Identifier: Apache-2.0
// Leaves out strategies that cannot run at a point, unless the user named them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/record/result.h"

namespace commfuse::sim {

/// Collects what is left out at the points of a command.
class LeftOut {
 public:
  /// `names_strategies`: see commfuse::names_strategies(). Named strategies are never left out.
  explicit LeftOut(bool names_strategies) : names_strategies_(names_strategies) {}

  /// Returns the rows of a point that have a result. Throws ConfigError for a row that cannot run, unless the row is
  /// left out: rows of strategies that the user did not name are left out where another strategy runs.
  std::vector<ResultRow> kept(std::span<const ResultRow> point_rows);

  /// Returns a line for each strategy that was left out, with the reason at its first point.
  [[nodiscard]] std::string in_words() const;

 private:
  struct Reason {
    std::string text;
    std::int64_t points = 0;
  };

  bool names_strategies_;
  std::map<std::string, Reason> reasons_;  // by strategy
};

}  // namespace commfuse::sim
