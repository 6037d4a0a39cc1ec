// SPDX-License-Identifier: Apache-2.0
// Floors of bus bandwidth in the forms that checkers read. Every form was taken from files of the checker itself.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "sim/expect/expected_rows.h"

namespace commfuse::expect {

/// Of one form: what it is called, what it is for, and how its text is made.
struct ThresholdForm {
  std::string_view name;
  std::string_view doc;
  std::string (*text)(const Expectation& expectation, double false_alarms);
};

std::span<const ThresholdForm> threshold_forms();

/// The whole text. Throws ConfigError for an unknown form, with the ones that are known, and where the machine has not
/// what the checker measures: AICR asks for several nodes.
std::string thresholds(std::string_view form, const Expectation& expectation, double false_alarms);

}  // namespace commfuse::expect
