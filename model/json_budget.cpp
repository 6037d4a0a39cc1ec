// SPDX-License-Identifier: Apache-2.0
#include "model/json_budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/config_error.h"

namespace commfuse {

void JsonBudget::refuse_depth() const {
  throw ConfigError(fmt::format("{}: more than {} levels of nesting; use the unmodified file", place_, deepest));
}

void JsonBudget::refuse_objects() const {
  throw ConfigError(fmt::format("{}: more than {} objects in one item or outside the items; use the unmodified file",
                                place_, limits_.objects));
}

void JsonBudget::refuse_keys() const {
  throw ConfigError(fmt::format("{}: more than {} keys in one object; use the unmodified file", place_, limits_.keys));
}

void JsonBudget::refuse_size() const {
  throw ConfigError(fmt::format("{}: too large: reading it needs more than {} MiB of memory; split the file", place_,
                                max_bytes >> 20U));
}

std::string line_and_column(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte > 0 ? std::min(byte - 1, text.size()) : 0);
  const std::size_t last_break = before.rfind('\n');
  const std::size_t column = before.size() - (last_break == std::string_view::npos ? 0 : last_break + 1);
  return fmt::format("{}:{}", std::count(before.begin(), before.end(), '\n') + 1, column + 1);
}

}  // namespace commfuse
