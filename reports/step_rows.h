// SPDX-License-Identifier: Apache-2.0
// Formats rows of whole models as text.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/analysis/verdict.h"
#include "model/record/step_row.h"
#include "model/terminal_style.h"
#include "reports/comparison.h"
#include "reports/savings.h"

namespace commfuse::reports {

/// Returns a block for each plan: time and its error, tokens per second and use of the GPUs; below these the verdict,
/// for training the parts of the time, and memory. With several plans, the recommended plan follows. Strategies of one
/// plan form one block, wherever they are among the rows. With style, the winner is bold.
std::string step_table(std::span<const StepRow> rows, const VerdictRule& rule = {}, const ModelWords& words = {},
                       TerminalStyle style = stdout_style());

/// Returns the sentence which states that some rows do not fit in memory (LargestNeed::sentence); empty if all rows
/// fit. The table begins with it.
std::string memory_sentence(std::span<const StepRow> rows);

/// Returns the name of a row's schedules in tables: "serial", or "commfuse (ideal)" for a bound next to
/// implementations.
std::string label(const StepRow& row);

/// Returns "llama-3.1-8b step on h100-sxm, 4 GPUs (4 tensor), batch 8, seq 4K, bf16".
std::string plan_heading(const StepRow& row);

/// The verdict over the rows of one plan that can win: next to implementations, ideal schedules cannot.
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

/// Returns the best of several plans and the plans that tie with it; empty if there is only one plan, or none fits.
std::string best_plan(std::span<const StepRow> rows, const VerdictRule& rule = {});

/// Returns the baseline among the rows that have a result: the row of the framework itself, else the first of strategy
/// serial; null if the plan has neither.
const StepRow* serial_of(std::span<const StepRow* const> rows);

/// The recommended implementation or, without implementations, the fastest schedule with overlap; compared with the
/// framework's own row or, without one, with the fastest schedule without overlap: serial, or in a decoding step
/// all_reduce.
struct PlanSaving {
  const StepRow* overlap = nullptr;
  const StepRow* baseline = nullptr;
  double saved = 0.0;  ///< Share of the time of `baseline`; below 0 the schedule takes longer.
  Pays pays = Pays::close;
};
std::optional<PlanSaving> plan_saving(std::span<const StepRow* const> plan, const VerdictRule& rule = {});

/// Savings of all plans together, and the decisive plan among plans that fit in memory: the plan where overlap surely
/// saves the most, else where it surely loses the most, else the first plan that has both rows.
struct PlanSavings {
  SavingCount count;
  std::optional<std::size_t> decisive;  ///< Index in plans_of(rows).
  std::string baseline;                 ///< Names of the plans' baselines: "serial", or "serial or all_reduce".
};
PlanSavings plan_savings(std::span<const StepRow> rows, const VerdictRule& rule = {});

/// Groups rows that differ only in their strategy, in order of appearance.
std::vector<std::vector<const StepRow*>> plans_of(std::span<const StepRow> rows);

/// Returns one sentence: the winner among the strategies of one plan, or the strategies that tie; empty for fewer than
/// two results.
std::string step_verdict(std::span<const StepRow> rows, const VerdictRule& rule = {});

/// Returns the sentence of every plan, one paragraph each, and the best plan; at most 80 columns wide.
std::string step_verdicts(std::span<const StepRow> rows, const VerdictRule& rule = {});

std::string to_json(std::span<const StepRow> rows);
std::string to_json_lines(std::span<const StepRow> rows);
/// Writes one header for all rows; cells that a row does not have are empty.
std::string to_csv(std::span<const StepRow> rows);

}  // namespace commfuse::reports
