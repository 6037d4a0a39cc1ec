// SPDX-License-Identifier: Apache-2.0
// A capacity plan as tables: Markdown and HTML show these very cells, text all but the wide ones.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "model/record/capacity_plan.h"

namespace commfuse::reports {

struct PlanColumn {
  std::string name;
  bool is_text = false;  ///< To the left; a number stands to the right.
  bool is_wide = false;  ///< For Markdown and HTML: a terminal has no room for it.
};

/// Any text may stand in it. Every row has a cell a column.
struct PlanTable {
  std::string id;  ///< Lower-case letters and dashes.
  std::string title;
  std::string note;  ///< May be empty.
  std::vector<PlanColumn> columns;
  std::vector<std::vector<std::string>> rows;  ///< A first cell that begins with spaces is a part of the row above it.
  std::optional<std::size_t> answer_row{};     ///< The row of the answer, where the table has others.
};

/// In the order of reading; those that have no row are left out.
std::vector<PlanTable> plan_tables(const CapacityPlan& plan);

}  // namespace commfuse::reports
