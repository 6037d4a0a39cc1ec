// SPDX-License-Identifier: Apache-2.0
// What simulating a schedule gives beside its breakdown and percentiles. A member and its entry in the table are a
// column of results; who simulates fills it (sim/point/predict.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "model/units.h"

namespace commfuse {

struct Outcome {
  Duration ideal{};  ///< Makespan with free communication: no schedule of this strategy can be faster.
  Duration link{};   ///< Makespan with free compute.
  double mfu = 0.0;
};

/// Durations become microseconds; a member without a value is absent.
using OutcomeMember =
    std::variant<Duration Outcome::*, double Outcome::*, std::int64_t Outcome::*, std::optional<double> Outcome::*>;

struct OutcomeColumn {
  std::string_view name;  ///< Unit last: "ideal_us".
  std::string_view doc;   ///< One line.
  OutcomeMember member;
};

inline constexpr std::array outcome_columns{
    OutcomeColumn{"ideal_us", "bound: makespan with free communication", &Outcome::ideal},
    OutcomeColumn{"link_us", "bound: makespan with free compute", &Outcome::link},
    OutcomeColumn{"mfu", "model FLOPs over makespan x ranks x dense peak", &Outcome::mfu},
};

}  // namespace commfuse
