// SPDX-License-Identifier: Apache-2.0
// How a capacity plan is written: numbers with so many digits everywhere, layouts, and the verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/record/capacity_plan.h"

namespace commfuse::reports {

/// "$9.66M"; thousands, millions and billions, three digits at least.
std::string money(const CapacityPlan& plan, double amount);
/// Formats money at a tick of an axis, which is round: "$14M", "$9.5M".
std::string tick_money(const CapacityPlan& plan, double amount);
/// "3.86M", of counts and hours.
std::string large(double number);
/// "78.6".
std::string days(double number);
/// "7.269", seconds of a step.
std::string step_seconds(double number);
/// "+13.5%"; of a share.
std::string signed_percent(double share);
/// "51.2%".
std::string share_percent(double share);
/// "85%"; at the ends "over 99%", because the draws show no more.
std::string likelihood(double share);
/// "0.6254"; four digits that count, or all of a whole number.
std::string plain(double number);

/// A change of CapacityPlan::what_ifs as people read it: "price -20%".
std::string change_in_words(std::string change);
/// An input of CapacityPlan::sensitivities as people read it: "rate of links in a node".
std::string input_in_words(const std::string& input);
/// "2027-03-01 (90.0 days)" or "90.0 days". Requires a deadline.
std::string deadline_in_words(const CapacityPlan& plan);
/// The inputs that change the cost most come first; for people.
std::vector<const Sensitivity*> by_effect(const std::vector<Sensitivity>& sensitivities);
/// Days up to which runs are shown to people: three times the answer's (without an answer the shortest run's), and five
/// times where that would leave fewer than four runs.
double longest_shown_days(const CapacityPlan& plan);

/// "TP 4, PP 4, CP 2, DP 64"; degrees of one are left out but for tensor and data.
std::string layout_in_words(const TrainingPlan& layout);
/// "4x4x64x2": tensor, pipeline, data, context.
std::string layout_in_short(const TrainingPlan& layout);

/// About how many GPUs would keep a deadline that no planned number keeps, in two digits: as days fall over the last
/// doubling that was planned. Nothing where some keep it, where more GPUs hardly shorten the run, and beyond eight
/// times the GPUs that were planned.
std::optional<std::int64_t> gpus_for_deadline(const CapacityPlan& plan, const CapacityKind& kind);

/// "the deadline", "the budget" or "deadline and budget".
const char* limits_in_words(const CapacityPlan& plan);
/// "about 17,000 h100 or 9,000 b200": of every kind that gpus_for_deadline() answers for; empty where it answers for
/// none.
std::string needed_gpus(const CapacityPlan& plan);

/// What the planner asked, in one or two short sentences: GPUs, days, cost and the chance; or how many GPUs it needs.
std::string plan_headline(const CapacityPlan& plan);
/// What stands behind the headline: layout, schedules, other schedules and kinds; or the limits that bind.
std::string plan_reasons(const CapacityPlan& plan);
/// Both with every interval, in two sentences.
std::string plan_verdict(const CapacityPlan& plan);

}  // namespace commfuse::reports
