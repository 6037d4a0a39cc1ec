// SPDX-License-Identifier: Apache-2.0
// Results as a self-contained page: nothing fetched, light and dark, printable, and readable without its scripts.
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
  /// Rows of one point must be adjacent; rows without a makespan could not be run.
  RowTable rows;
  /// Timelines: an entry for each point that has one, with the strategies of that point.
  std::vector<std::vector<TracedRun>> gantts;
  std::optional<PointStudy> study{};  // the study's runs are among the gantts
  std::vector<MeasuredPair> measured{};
  std::vector<FitCheck> fits{};
  std::vector<std::string> notes{};  // sentences: missing parts, and why
  std::string command;               // command that reproduces these results
  std::string version;               // version of the program
  std::string page{};                // address of the page (docs/page.md); empty: no links to it
  VerdictRule rule{};
  std::optional<Overview> overview{};  // overview_of(rows, rule), if already computed
  std::vector<StepRow> models{};  // whole models, in a separate section; without other rows, the subject of the page
};

/// Writes HTML5, piece by piece. The input may contain any text.
void write_html_report(const ReportInput& input, const TakeBytes& take);
std::string html_report(const ReportInput& input);

struct ReportFigures {
  std::vector<Figure> figures;        ///< In the order of the page; titles name what tells the figures apart.
  std::vector<std::string> left_out;  ///< Clauses: "Maps of 4 settings of 5, evenly spaced from ...".
};
/// Returns the figures of html_report()'s page, and the figures that only `plot` shows.
ReportFigures report_figures(const ReportInput& input);

}  // namespace commfuse::reports
