// SPDX-License-Identifier: Apache-2.0
// Floors of bus bandwidth in the formats that checkers read. Each format follows files of the checker itself.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "sim/expect/expected_rows.h"

namespace commfuse::expect {

/// A format of thresholds: its name, its description, and the function that writes its text.
struct ThresholdForm {
  std::string_view name;
  std::string_view doc;
  std::string (*text)(const Expectation& expectation, double false_alarms);
};

std::span<const ThresholdForm> threshold_forms();

/// Returns the whole text in the format named `form`. Throws ConfigError for an unknown format, and for a machine
/// without the links that the checker measures: AICR, for example, needs several nodes.
std::string thresholds(std::string_view form, const Expectation& expectation, double false_alarms);

}  // namespace commfuse::expect
