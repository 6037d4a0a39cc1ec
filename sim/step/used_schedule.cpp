// SPDX-License-Identifier: Apache-2.0
#include "sim/step/used_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/config/implementation.h"
#include "sim/point/request.h"

namespace commfuse {

namespace {

/// Returns "slices=4 shuffles=copied": the options that vary among the schedules of the site, and those that differ
/// from their default.
std::string options_in_words(const UsedSchedule& used) {
  const std::vector<SiteKind> kinds = kinds_of(used.scope);
  StrategyOptions base;
  base.dtype = used.options.dtype;
  const std::vector<StrategyOptions> candidates =
      used.implementation == nullptr ? schedules_to_try(*used.strategy, kinds, used.ranks, base)
                                     : schedules_of(*used.implementation, used.scope, used.ranks, base.dtype);
  const OptionSet relevant = relevant_options(*used.strategy, kinds, used.options);
  std::string words;
  for (const Option option : all_options()) {
    if (!relevant.has(option)) {
      continue;
    }
    const std::string value = text_of(option, used.options);
    const bool varies = std::ranges::any_of(
        candidates, [&](const StrategyOptions& candidate) { return text_of(option, candidate) != value; });
    if (varies || value != text_of(option, base)) {
      words += fmt::format("{}{}={}", words.empty() ? "" : " ", name_of(option), value);
    }
  }
  return words;
}

/// Returns "te group=1", "sliced slices=4", or only "slices=4" for the strategy of the row.
std::string schedule_in_words(const UsedSchedule& used, std::string_view row_strategy) {
  const std::string options = options_in_words(used);
  const std::string_view name = used.implementation != nullptr ? std::string_view(used.implementation->name)
                                : used.strategy->name == row_strategy && !options.empty() ? std::string_view()
                                                                                          : used.strategy->name;
  return fmt::format("{}{}{}", name, name.empty() || options.empty() ? "" : " ", options);
}

}  // namespace

std::string in_words(std::span<const UsedSchedule> schedules, std::string_view row_strategy) {
  std::vector<std::pair<std::string, std::string>> sites_by_schedule;
  for (const UsedSchedule& used : schedules) {
    std::string schedule = schedule_in_words(used, row_strategy);
    const auto known = std::ranges::find(sites_by_schedule, schedule, &std::pair<std::string, std::string>::first);
    if (known == sites_by_schedule.end()) {
      sites_by_schedule.emplace_back(std::move(schedule), used.site);
    } else {
      known->second += ", " + used.site;
    }
  }
  if (sites_by_schedule.size() == 1 && sites_by_schedule.front().first == row_strategy) {
    return {};
  }
  std::string text;
  for (const auto& [schedule, sites] : sites_by_schedule) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", schedule, sites);
  }
  return text;
}

}  // namespace commfuse
