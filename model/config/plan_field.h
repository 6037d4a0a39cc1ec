// SPDX-License-Identifier: Apache-2.0
// The one table of fields in a plan file. Its reader, its messages, `schema` and `config explain` all come from it.
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
  setting,  ///< setting of `run`, under the same name
};

struct PlanField {
  std::string_view key;  ///< "limits.power"; keys of a kind of GPU begin with "gpus.NAME."
  std::string_view doc;  ///< One line.
  PlanType type = PlanType::words;
  std::string_view preset;           ///< The default as the user would write it; empty if it is not a constant.
  std::string_view computed_preset;  ///< A default that depends on the plan, in words; empty if there is none.
  std::string_view example;          ///< Example of a value.
  bool required = false;
  Range<double> range{0.0, 1e18};  ///< Range of a number or a count.
};

/// Returns all fields in the order that all listings use.
std::span<const PlanField> plan_fields();

/// Returns the field, or nullptr when no field has that key.
const PlanField* find_plan_field(std::string_view key);

/// Returns, for example, "a number from 0 to 1" or "a day, such as 2026-05-04".
std::string values_in_words(const PlanField& field);

}  // namespace commfuse
