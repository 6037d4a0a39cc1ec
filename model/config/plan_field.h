// SPDX-License-Identifier: Apache-2.0
// The one table of what a plan file may hold. Its reader, its messages, `schema` and `config explain` all come from it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "model/config/yaml_reader.h"

namespace commfuse {

inline constexpr std::string_view plan_schema = "commfuse.plan/1";

enum class PlanType : std::uint8_t {
  words,    ///< any text
  number,   ///< within `range`
  count,    ///< whole, within `range`
  span,     ///< "60 days"
  date,     ///< "2026-05-04"
  moment,   ///< a span or a date
  power,    ///< "700 W"
  setting,  ///< of `run`, under the same name
};

struct PlanField {
  std::string_view key;  ///< "limits.power"; those of a kind of GPUs begin with "gpus.NAME."
  std::string_view doc;  ///< One line.
  PlanType type = PlanType::words;
  std::string_view preset;   ///< As people write it; empty: left open.
  std::string_view example;  ///< A value.
  bool required = false;
  Range<double> range{0.0, 1e18};  ///< Of a number or a count.
};

/// In the order of every listing.
std::span<const PlanField> plan_fields();

/// nullptr when there is none of that key.
const PlanField* find_plan_field(std::string_view key);

/// "a number from 0 to 1"; "a span of time, or a date".
std::string values_in_words(const PlanField& field);

}  // namespace commfuse
