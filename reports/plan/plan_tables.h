// SPDX-License-Identifier: Apache-2.0
// A capacity plan as tables: Markdown and HTML show all of them, text shows all except the wide columns.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "model/record/capacity_plan.h"

namespace commfuse::reports {

struct PlanColumn {
  std::string name;
  bool is_text = false;  ///< Left-aligned; numbers are right-aligned.
  bool is_wide = false;  ///< Shown only in Markdown and HTML, because it does not fit in a terminal.
};

/// Cells may hold any text. Every row has a cell for each column.
struct PlanTable {
  std::string id;  ///< Lower-case letters and dashes.
  std::string title;
  std::string note;  ///< May be empty.
  std::vector<PlanColumn> columns;
  std::vector<std::vector<std::string>> rows;  ///< A first cell that begins with spaces marks a part of the row above.
  std::optional<std::size_t> answer_row{};     ///< The row of the answer, where the table has other rows too.
};

/// Returns the tables that have rows, in reading order.
std::vector<PlanTable> plan_tables(const CapacityPlan& plan);

}  // namespace commfuse::reports
