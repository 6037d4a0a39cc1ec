// SPDX-License-Identifier: Apache-2.0
// Results as one page that stands alone: nothing fetched, light and dark, printable, and readable without its scripts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/analysis/verdict.h"
#include "model/record/row_table.h"
#include "model/record/step_row.h"
#include "reports/figure/figure.h"
#include "reports/html/blocks.h"
#include "reports/html/overview.h"
#include "reports/study.h"
#include "reports/traced_run.h"

namespace commfuse::reports {

struct ReportInput {
  std::string title;
  /// Rows of one point stand together; those without a makespan are points that could not be run.
  RowTable rows;
  /// One entry a point to be shown in time, each with the strategies of that point.
  std::vector<std::vector<TracedRun>> gantts;
  std::optional<PointStudy> study{};  // its runs are among the gantts
  std::vector<MeasuredPair> measured{};
  std::vector<FitCheck> fits{};
  std::vector<std::string> notes{};  // sentences: what could not be shown, and why
  std::string command;               // makes these results again
  std::string version;               // of the program
  std::string page{};                // address of the page (docs/page.md); empty: no links to it
  VerdictRule rule{};
  std::optional<Overview> overview{};  // overview_of() the rows under the rule, where it was made already
  std::vector<StepRow> models{};       // whole models, in a section of their own; alone, the page is of them
};

/// HTML5, piece by piece. Any text may stand in the input.
void write_html_report(const ReportInput& input, const TakeBytes& take);
std::string html_report(const ReportInput& input);

/// The figures of that page, in its order.
std::vector<Figure> report_figures(const ReportInput& input);

}  // namespace commfuse::reports
