// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/sums.h"

#include <fmt/format.h>

#include <algorithm>

namespace commfuse {

SumId Sums::range(std::int32_t first, std::int32_t end) { return intern({{first, end}}); }

Sums::Union Sums::unite(std::span<const SumId> parts) {
  if (parts.size() == 1) {
    return {parts.front(), std::nullopt};
  }
  joined_.clear();
  for (const SumId part : parts) {
    const Set& set = *sets_[static_cast<std::size_t>(part)];
    joined_.insert(joined_.end(), set.begin(), set.end());
  }
  std::sort(joined_.begin(), joined_.end(), [](const Interval& a, const Interval& b) { return a.first < b.first; });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < joined_.size(); ++i) {
    if (joined_[i].first < joined_[kept].end) {
      return {0, joined_[i].first};
    }
    if (joined_[i].first == joined_[kept].end) {
      joined_[kept].end = joined_[i].end;
    } else {
      joined_[++kept] = joined_[i];
    }
  }
  joined_.resize(kept + 1);
  return {intern(joined_), std::nullopt};
}

std::string Sums::in_words(SumId sum) const {
  std::string words = "{";
  for (const Interval& run : *sets_[static_cast<std::size_t>(sum)]) {
    const char* comma = words.size() > 1 ? "," : "";
    if (run.end - run.first == 1) {
      words += fmt::format("{}{}", comma, run.first);
    } else {
      words += fmt::format("{}{}{}{}", comma, run.first, run.end - run.first == 2 ? "," : "-", run.end - 1);
    }
  }
  return words + "}";
}

std::size_t Sums::Hash::operator()(const Set& set) const {
  std::uint64_t hash = 1469598103934665603U;  // FNV-1a, a word at a time
  for (const Interval& run : set) {
    hash = (hash ^ static_cast<std::uint32_t>(run.first)) * 1099511628211U;
    hash = (hash ^ static_cast<std::uint32_t>(run.end)) * 1099511628211U;
  }
  return static_cast<std::size_t>(hash ^ (hash >> 32U));
}

SumId Sums::intern(const Set& set) {
  const auto [place, added] = ids_.try_emplace(set, static_cast<SumId>(sets_.size()));
  if (added) {
    sets_.push_back(&place->first);
  }
  return place->second;
}

}  // namespace commfuse
