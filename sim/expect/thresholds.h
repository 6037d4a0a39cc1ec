// SPDX-License-Identifier: Apache-2.0
// Floors of bus bandwidth in the forms that checkers read. Each form follows files of the checker itself.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "sim/expect/expected_rows.h"

namespace commfuse::expect {

/// A form of thresholds: its name, its purpose, and the function that makes its text.
struct ThresholdForm {
  std::string_view name;
  std::string_view doc;
  std::string (*text)(const Expectation& expectation, double false_alarms);
};

std::span<const ThresholdForm> threshold_forms();

/// Returns the whole text. Throws ConfigError for an unknown form, listing the known ones, and for a machine that lacks
/// what the checker measures: AICR needs several nodes.
std::string thresholds(std::string_view form, const Expectation& expectation, double false_alarms);

}  // namespace commfuse::expect
