// SPDX-License-Identifier: Apache-2.0
// Decides whether overlap with implementations beats the baseline of a whole model's plan, by the rules of points
// (savings.h, comparison.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/analysis/verdict.h"
#include "model/record/step_row.h"
#include "reports/plan_verdicts.h"

namespace commfuse::reports {

/// Returns whether the row belongs to an implementation.
bool is_implemented(const StepRow& row);
/// Returns whether the row belongs to an implementation that runs communication and GEMMs one after another.
bool overlaps_nothing(const StepRow& row);
/// Returns whether the row is an ideal schedule next to implementations. Such a schedule cannot win.
bool is_bound(const StepRow& row);

/// Returns the saving of the recommended implementation: the fastest that clearly beats the baseline, otherwise the
/// fastest. An implementation that saves time at no site does not pay. Returns nothing without an implementation that
/// overlaps and has a result. Requires a `baseline` from the plan.
std::optional<PlanSaving> implementation_saving(std::span<const StepRow* const> plan, const StepRow& baseline,
                                                const VerdictRule& rule = {});

/// Returns the sentences that state whether overlap with the implementations of the plan pays; empty without an
/// implementation that overlaps and has a result. Requires a `baseline` from the plan.
std::string implementations_in_words(std::span<const StepRow* const> plan, const StepRow& baseline,
                                     const VerdictRule& rule = {});

/// Returns the sentence that names the sites where implementations run, without those that run at all sums; empty if
/// none is left.
std::string implemented_sites_in_words(std::span<const StepRow* const> plan);

/// Returns the warnings that only implementations have, each once.
std::vector<std::string> implementation_warnings(std::span<const StepRow* const> plan);

}  // namespace commfuse::reports
