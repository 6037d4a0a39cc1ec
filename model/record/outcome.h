// SPDX-License-Identifier: Apache-2.0
// Results of simulating a schedule, except its breakdown and percentiles. A member and its entry in the table make a
// column of results; sim/point/predict.cpp fills it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "model/units.h"

namespace commfuse {

struct Outcome {
  Duration ideal{};  ///< makespan with free communication: no schedule of this strategy can be faster
  Duration link{};   ///< makespan with free compute
  double mfu = 0.0;
};

/// Durations become microseconds; a member without a value is absent.
using OutcomeMember =
    std::variant<Duration Outcome::*, double Outcome::*, std::int64_t Outcome::*, std::optional<double> Outcome::*>;

struct OutcomeColumn {
  std::string_view name;  ///< ends with the unit: "ideal_us"
  std::string_view doc;   ///< description, one line
  OutcomeMember member;
};

inline constexpr std::array outcome_columns{
    OutcomeColumn{"ideal_us", "bound: makespan with free communication", &Outcome::ideal},
    OutcomeColumn{"link_us", "bound: makespan with free compute", &Outcome::link},
    OutcomeColumn{"mfu", "model FLOPs / (makespan x ranks x dense peak)", &Outcome::mfu},
};

}  // namespace commfuse
