// SPDX-License-Identifier: Apache-2.0
#include "sim/import/options.h"

#include <fmt/format.h>

#include "model/config/catalogue.h"
#include "model/config/meant.h"
#include "model/config_error.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"
#include "sim/import/keyed_file.h"

namespace commfuse::import {

std::optional<std::string> Options::text(std::string_view flag) const {
  const auto entry = values_.find(flag);
  return entry == values_.end() || entry->second.empty() ? std::nullopt : std::optional(entry->second.back());
}

std::optional<std::int64_t> Options::count(std::string_view flag, Range<std::int64_t> range) const {
  const std::optional<std::string> value = text(flag);
  if (!value) {
    return std::nullopt;
  }
  const std::optional<std::int64_t> number = parse_count(*value);
  if (!number || *number < range.least || *number > range.most) {
    throw ConfigError(
        fmt::format("{} is {}; {}", flag, in_quotes(*value), whole_number_in(range, number && *number > range.most)));
  }
  return number;
}

std::vector<std::string> Options::words(std::string_view flag) const {
  const auto entry = values_.find(flag);
  return entry == values_.end() ? std::vector<std::string>() : entry->second;
}

std::optional<std::string> chosen_model(const Options& options) {
  const std::optional<std::string> given = options.text("--model");
  if (!given) {
    return std::nullopt;
  }
  std::string name = from_anywhere(Catalogue::models, meant_name(Catalogue::models, *given));
  load_model(name);
  return name;
}

}  // namespace commfuse::import
