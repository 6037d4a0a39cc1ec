// SPDX-License-Identifier: Apache-2.0
// Verdicts on whole models: the schedule of a plan that wins, the savings by overlap, and the best of several plans.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/analysis/verdict.h"
#include "model/record/step_row.h"
#include "reports/savings.h"

namespace commfuse::reports {

/// Rows that differ only in their strategy; not empty.
using PlanRows = std::vector<const StepRow*>;

/// Groups rows that differ only in their strategy (in decoding steps, also in sequence_parallel), in order of
/// appearance.
std::vector<PlanRows> plans_of(std::span<const StepRow> rows);

/// Returns whether the plan fits in memory; true if the row does not state it.
bool fits(const StepRow& row);

/// Returns whether the row is the step as the framework itself runs it.
bool is_framework(const StepRow& row);

/// Returns the baseline among the rows that have a result: the row of the framework itself, else the first of strategy
/// serial; null if the plan has neither.
const StepRow* serial_of(std::span<const StepRow* const> rows);

/// The verdict over the rows of one plan that can win: ideal schedules next to implementations cannot.
class PlanVerdict {
 public:
  PlanVerdict(std::span<const StepRow* const> rows, const VerdictRule& rule);

  /// Returns whether the row wins or ties with the fastest; false in a plan with one result.
  [[nodiscard]] bool in_front(const StepRow* row) const;
  [[nodiscard]] bool wins() const { return verdict_.wins(); }
  /// Returns the winner or the rows that tie; with implementations, whether overlap pays. Empty for fewer than two
  /// results.
  [[nodiscard]] std::string sentence() const;

 private:
  [[nodiscard]] std::string name(std::size_t position) const {
    return feasible_[verdict_.order[position]]->text("strategy");
  }
  [[nodiscard]] double time(std::size_t position) const {
    return feasible_[verdict_.order[position]]->number("time_ms");
  }

  std::vector<const StepRow*> feasible_;
  VerdictRule rule_;
  Verdict verdict_;
  std::string pays_;  ///< Sentences about implementations; empty without them.
};

/// The recommended implementation or, without implementations, the fastest schedule with overlap; compared with the
/// framework's own row or, without one, with the fastest schedule without overlap: serial, or in a decoding step
/// all_reduce. A bound is never the schedule with overlap.
struct PlanSaving {
  const StepRow* overlap = nullptr;
  const StepRow* baseline = nullptr;
  double saved = 0.0;  ///< Share of the time of `baseline`; below 0 the schedule takes longer.
  Pays pays = Pays::close;
};
std::optional<PlanSaving> plan_saving(std::span<const StepRow* const> plan, const VerdictRule& rule = {});

/// Savings of the plans whose two rows fit in memory, and the decisive plan among them: the plan where overlap clearly
/// saves the most, else where it clearly loses the most, else the first one.
struct PlanSavings {
  SavingCount count;
  std::optional<std::size_t> decisive;  ///< Index in plans_of(rows); nothing if no plan has both rows and fits.
  std::optional<std::size_t> best;      ///< Index of the plan with the largest saving, sure or not.
  std::string baseline;                 ///< Names of the plans' baselines: "serial", or "serial or all_reduce".
};
PlanSavings plan_savings(std::span<const StepRow> rows, const VerdictRule& rule = {});

/// Returns the best of several plans and the plans that tie with it, without a period at the end; empty if there is
/// only one plan, or none fits. Plans of several scopes have a sentence for each scope: tokens of a prompt are not
/// compared with generated tokens.
std::string best_plan(std::span<const StepRow> rows, const VerdictRule& rule = {});

}  // namespace commfuse::reports
