// SPDX-License-Identifier: Apache-2.0
// How a capacity plan is written: numbers with so many digits everywhere, layouts, and the verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/record/capacity_plan.h"

namespace commfuse::reports {

/// "$9.66M"; thousands, millions and billions, three digits at least.
std::string money(const CapacityPlan& plan, double amount);
/// "3.86M", of counts and hours.
std::string large(double number);
/// "78.6".
std::string days(double number);
/// "7.269", seconds of a step.
std::string step_seconds(double number);
/// "+13.5 %"; of a share.
std::string signed_percent(double share);
/// "51.2 %".
std::string share_percent(double share);
/// "85 %"; at the ends "over 99 %": so many draws say no more.
std::string likelihood(double share);
/// "0.6254"; four digits that count, or all of a whole number.
std::string plain(double number);

/// "TP 4, PP 4, CP 2, DP 64"; degrees of one are left out but for tensor and data.
std::string layout_in_words(const TrainingPlan& layout);
/// "4x4x64x2": tensor, pipeline, data, context.
std::string layout_in_short(const TrainingPlan& layout);

/// About how many GPUs would keep a deadline that no planned number keeps, in two digits: as days fall over the last
/// doubling that was planned. Nothing where some keep it, and where more GPUs hardly shorten the run.
std::optional<std::int64_t> gpus_for_deadline(const CapacityPlan& plan, const CapacityKind& kind);

/// Two sentences.
std::string plan_verdict(const CapacityPlan& plan);

}  // namespace commfuse::reports
