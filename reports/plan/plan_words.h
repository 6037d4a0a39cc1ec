// SPDX-License-Identifier: Apache-2.0
// Wording of a capacity plan: formatted numbers, layouts, and the verdict.
#pragma once

#include <string>
#include <vector>

#include "model/record/capacity_plan.h"

namespace commfuse::reports {

/// Formats an amount of money as "$9.66M", in thousands, millions or billions, with at least three digits.
std::string money(const CapacityPlan& plan, double amount);
/// Formats a round amount of money for a tick of an axis: "$14M", "$9.5M".
std::string tick_money(const CapacityPlan& plan, double amount);
/// Formats a count or hours as "3.86M".
std::string large(double number);
/// Formats days as "78.6".
std::string days(double number);
/// Formats the seconds of a step as "7.269".
std::string step_seconds(double number);
/// Formats a share as "51.2%".
std::string share_percent(double share);
/// Formats a probability as "85%"; near the ends as "over 99%" or "below 1%", because the draws cannot resolve more.
std::string likelihood(double share);
/// Formats a number with four significant digits, as "0.6254"; from 10,000 with all digits before the decimal point.
std::string plain(double number);

/// Returns a change of CapacityPlan::what_ifs in words: "price -20%".
std::string change_in_words(std::string change);
/// Returns an input of CapacityPlan::sensitivities in words: "rate of links in a node".
std::string input_in_words(const std::string& input);
/// Formats the deadline as "2027-03-01 (90.0 days)" or "90.0 days". Requires a deadline.
std::string deadline_in_words(const CapacityPlan& plan);
/// Returns the inputs, largest effect on the cost first.
std::vector<const Sensitivity*> by_effect(const std::vector<Sensitivity>& sensitivities);
/// Returns the largest number of days of a shown run: three times the days of the answer (without an answer, of the
/// shortest run), or five times if fewer than four runs would be shown.
double longest_shown_days(const CapacityPlan& plan);

/// Formats a layout as "TP 4, PP 4, CP 2, DP 64"; omits degrees of one except tensor and data.
std::string layout_in_words(const TrainingPlan& layout);
/// Formats the tensor, pipeline and data degrees of a layout, and the context degree times the Ulysses degree, as
/// "4x4x64x2".
std::string layout_in_short(const TrainingPlan& layout);

/// Returns true if there is a deadline or a budget.
bool has_limits(const CapacityPlan& plan);
/// Returns "the deadline", "the budget" or "deadline and budget". Requires has_limits().
const char* limits_in_words(const CapacityPlan& plan);
/// Returns the GPUs that the deadline needs, such as "about 2048 h100 or 1024 b200", from every kind that has
/// CapacityKind::gpus_for_deadline; empty if no kind has it.
std::string needed_gpus(const CapacityPlan& plan);

/// Returns a sentence that compares the model's own error with the error that rows of `run` use, and states the
/// evidence for both.
std::string model_error_sentence(const CapacityPlan& plan);

/// Returns "8192 available", or for a count that the user fixed "exactly 1024 GPUs" or "exactly 1024 of 8192
/// available".
std::string available_in_words(const CapacityKind& kind);

/// Returns the answer in one or two short sentences: GPUs, days, cost and the chance; or the number of GPUs needed.
std::string plan_headline(const CapacityPlan& plan);
/// Returns the reasons for the headline: layout, schedules, other schedules and kinds; or the binding limits.
std::string plan_reasons(const CapacityPlan& plan);
/// Returns headline and reasons with every interval, as sentences.
std::string plan_verdict(const CapacityPlan& plan);

}  // namespace commfuse::reports
