// SPDX-License-Identifier: Apache-2.0
#include "reports/step_pays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "model/record/result.h"
#include "model/strategies/strategies.h"
#include "reports/comparison.h"
#include "reports/point_rows.h"
#include "reports/savings.h"

namespace commfuse::reports {

namespace {

using PlanView = std::span<const StepRow* const>;

std::optional<double> number_in(const StepRow& row, std::string_view name) {
  return row.has(name) ? std::optional(row.number(name)) : std::nullopt;
}

/// Returns the parts of the row that verdicts on points read.
ResultRow point_row_of(const StepRow& row) {
  ResultRow point;
  point.strategy = row.text("strategy");
  point.implements = is_implemented(row) ? row.text("implements") : std::string{};
  point.bound = is_bound(row);
  if (!row.feasible()) {
    point.reason = row.text("reason");
    return point;
  }
  point.analysis.critical.makespan = from_seconds(1e-3 * row.number("time_ms"));
  point.makespan_error = number_in(row, "time_error");
  point.win_probability = number_in(row, "win_probability");
  point.beats_serial = number_in(row, "beats_serial");
  point.saving_error = number_in(row, "saving_error");
  return point;
}

std::vector<ResultRow> point_rows_of(PlanView plan) {
  std::vector<ResultRow> rows;
  for (const StepRow* row : plan) {
    rows.push_back(point_row_of(*row));
  }
  return rows;
}

std::size_t index_of(const StepRow& row, PlanView plan) {
  return static_cast<std::size_t>(std::ranges::find(plan, &row) - plan.begin());
}

/// Returns whether the row is the result of an implementation that overlaps.
bool is_overlap_result(const StepRow* row) {
  return is_implemented(*row) && !overlaps_nothing(*row) && row->feasible();
}

bool runs_somewhere(const StepRow& row) { return row.has("implemented_sites"); }

}  // namespace

bool is_implemented(const StepRow& row) { return row.has("implements"); }

bool overlaps_nothing(const StepRow& row) {
  return is_implemented(row) && row.text("implements") == serial_strategy.name;
}

bool is_bound(const StepRow& row) { return row.has("bound"); }

std::optional<PlanSaving> implementation_saving(PlanView plan, const StepRow& baseline, const VerdictRule& rule) {
  if (std::ranges::none_of(plan, is_overlap_result)) {
    return std::nullopt;
  }
  const std::vector<ResultRow> rows = point_rows_of(plan);
  const ResultRow& serial = rows[index_of(baseline, plan)];
  const std::vector<const ResultRow*> ranking = point_verdict(rows, rule).ranking;
  const ResultRow* const chosen = implementations_of(ranking, serial, rule).chosen;
  if (chosen == nullptr) {
    return std::nullopt;
  }
  const PayVerdict verdict = pay_verdict(*chosen, serial, *ranking.front(), rule);
  const StepRow* const overlap = plan[static_cast<std::size_t>(chosen - rows.data())];
  return PlanSaving{.overlap = overlap,
                    .baseline = &baseline,
                    .saved = verdict.saved,
                    .pays = runs_somewhere(*overlap) ? verdict.pays : Pays::no};
}

std::string implementations_in_words(PlanView plan, const StepRow& baseline, const VerdictRule& rule) {
  const std::optional<PlanSaving> saving = implementation_saving(plan, baseline, rule);
  if (!saving) {
    return {};
  }
  if (!runs_somewhere(*saving->overlap)) {
    std::vector<std::string> names;
    for (const StepRow* row : plan) {
      if (is_overlap_result(row)) {
        names.push_back(row->text("strategy"));
      }
    }
    const std::string than =
        is_framework(baseline) ? fmt::format(" than as {} runs it", baseline.text("strategy")) : "";
    return fmt::format("Overlap does not pay: no GEMM of the {} takes less time with {}{}.", baseline.text("scope"),
                       fmt::join(names, " or "), than);
  }
  const std::vector<ResultRow> rows = point_rows_of(plan);
  return pays_in_words(rows, rows[index_of(baseline, plan)], rule);
}

std::string implemented_sites_in_words(PlanView plan) {
  std::vector<std::string> parts;
  for (const StepRow* row : plan) {
    if (is_implemented(*row) && row->feasible()) {
      const std::string sites = runs_somewhere(*row) ? row->text("implemented_sites") : "none";
      if (sites != all_sums) {
        parts.push_back(fmt::format("{} {}", row->text("strategy"), sites));
      }
    }
  }
  return parts.empty()
             ? std::string{}
             : fmt::format("Forward GEMMs that take less time with an implementation: {}.", fmt::join(parts, "; "));
}

std::vector<std::string> implementation_warnings(PlanView plan) {
  const auto warnings_of_rows = [&](bool of_implementations) {
    std::vector<std::string> warnings;
    for (const StepRow* row : plan) {
      if (is_implemented(*row) == of_implementations && row->has("warnings")) {
        const std::vector<std::string> of_row = warnings_in(row->text("warnings"));
        warnings.insert(warnings.end(), of_row.begin(), of_row.end());
      }
    }
    return warnings;
  };
  const std::vector<std::string> of_plan = warnings_of_rows(false);
  std::vector<std::string> only;
  for (std::string& warning : warnings_of_rows(true)) {
    const auto is_in = [&](const std::vector<std::string>& list) {
      return std::ranges::find(list, warning) != list.end();
    };
    if (!is_in(of_plan) && !is_in(only)) {
      only.push_back(std::move(warning));
    }
  }
  return only;
}

}  // namespace commfuse::reports
