// SPDX-License-Identifier: Apache-2.0
#include "sim/import/megatron_arguments.h"

#include <fmt/format.h>

#include "model/config_error.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"
#include "sim/import/keyed_file.h"
#include "sim/import/megatron_flags.h"

namespace commfuse::import {

const Argument* Arguments::find(std::string_view flag) const {
  const auto entry = flags_.find(flag);
  return entry == flags_.end() ? nullptr : &entry->second;
}

std::string Arguments::spelled(std::string_view flag) const {
  const Argument* const argument = find(flag);
  return argument != nullptr ? argument->spelling : dialect_.spelling(flag);
}

std::optional<std::string> Arguments::text(std::string_view flag) const {
  const Argument* const argument = find(flag);
  if (argument == nullptr) {
    return std::nullopt;
  }
  std::optional<std::string> value = dialect_.expand(argument->text);
  if (!value) {
    wrong(flag,
          fmt::format("is {}, whose value this file does not set; write the value instead", in_quotes(argument->text)));
  }
  return value;
}

std::optional<std::int64_t> Arguments::count(std::string_view flag, Counts range) const {
  const std::optional<std::string> value = text(flag);
  if (!value) {
    return std::nullopt;
  }
  const std::optional<std::int64_t> number = parse_integer(*value);
  if (!number || *number < range.least || *number > range.most) {
    wrong(flag, fmt::format("is {}; {}", in_quotes(*value), whole_number_in(range, number && *number > range.most)));
  }
  return number;
}

std::int64_t Arguments::required(std::string_view flag, Counts range) const {
  const std::optional<std::int64_t> value = count(flag, range);
  if (value) {
    return *value;
  }
  for (const auto& [other, argument] : flags_) {
    if (misspelled(other) == flag) {
      wrong(other, fmt::format("is not {}, and {} is missing; correct the spelling", dialect_.known_as, spelled(flag)));
    }
  }
  throw ConfigError(fmt::format("{}: {} is missing; {}", path_, spelled(flag), dialect_.missing));
}

std::int64_t Arguments::derived(std::string_view what, std::int64_t value, Counts range,
                                std::string_view remedy) const {
  if (value < range.least || value > range.most) {
    throw ConfigError(fmt::format("{}: these {} make {} {}, outside {} to {}; {}", path_, dialect_.noun, value, what,
                                  range.least, range.most, remedy));
  }
  return value;
}

void Arguments::wrong(std::string_view flag, std::string_view sentence) const {
  const Argument& argument = *find(flag);
  throw ConfigError(fmt::format("{}: {} {}", argument.where, argument.spelling, sentence));
}

}  // namespace commfuse::import
