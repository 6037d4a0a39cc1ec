// SPDX-License-Identifier: Apache-2.0
#include "model/proof/sums.h"

#include <fmt/format.h>

#include <algorithm>

namespace commfuse {

namespace {

constexpr SumId free_place = -1;

template <class Set>
std::size_t hash_of(const Set& set) {
  std::uint64_t hash = 0;
  for (const auto& run : set) {
    const auto both = std::uint64_t{static_cast<std::uint32_t>(run.first)} << 32U | static_cast<std::uint32_t>(run.end);
    hash = (hash ^ both) * 0x9e3779b97f4a7c15U;  // 2^64 / golden ratio; the upper half is well mixed
    hash ^= hash >> 32U;
  }
  return static_cast<std::size_t>(hash);
}

}  // namespace

SumId Sums::range(std::int32_t first, std::int32_t end) {
  const Interval run{first, end};
  if (run != last_range_) {
    last_range_ = run;
    last_range_id_ = intern({&run, 1});
  }
  return last_range_id_;
}

Sums::Union Sums::unite(std::span<const SumId> parts) {
  if (parts.size() == 1) {
    return {parts.front(), std::nullopt};
  }
  joined_.clear();
  for (const SumId part : parts) {
    const Set set = set_of(part);
    joined_.insert(joined_.end(), set.begin(), set.end());
  }
  const std::optional<std::int32_t> twice = join();
  return {twice ? 0 : intern(joined_), twice};
}

/// Sorts and merges joined_; returns the first block that is in two of its intervals.
std::optional<std::int32_t> Sums::join() {
  std::sort(joined_.begin(), joined_.end(), [](const Interval& a, const Interval& b) { return a.first < b.first; });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < joined_.size(); ++i) {
    if (joined_[i].first < joined_[kept].end) {
      return joined_[i].first;
    }
    if (joined_[i].first == joined_[kept].end) {
      joined_[kept].end = joined_[i].end;
    } else {
      joined_[++kept] = joined_[i];
    }
  }
  joined_.resize(kept + 1);
  return std::nullopt;
}

SumId Sums::moved(SumId sum, const Cycle& cycle) {
  if (cycle.by == 0) {
    return sum;
  }
  joined_.clear();
  for (const Interval& run : set_of(sum)) {
    const std::int32_t first_whole = (run.first + cycle.period - 1) / cycle.period * cycle.period;
    const std::int32_t end_whole = run.end / cycle.period * cycle.period;
    if (first_whole > end_whole) {
      move(run, cycle);
    } else {  // a run of whole periods is mapped to itself
      move({run.first, first_whole}, cycle);
      move({end_whole, run.end}, cycle);
      if (first_whole < end_whole) {
        joined_.push_back({first_whole, end_whole});
      }
    }
  }
  join();
  return intern(joined_);
}

/// Adds the images of the blocks of one period to joined_; the run may be empty.
void Sums::move(const Interval& run, const Cycle& cycle) {
  if (run.first == run.end) {
    return;
  }
  const std::int32_t first = cycle.at(run.first);
  const std::int32_t begin = run.first / cycle.period * cycle.period;
  const std::int32_t over = first + (run.end - run.first) - (begin + cycle.period);
  if (over <= 0) {
    joined_.push_back({first, first + (run.end - run.first)});
  } else {
    joined_.push_back({first, begin + cycle.period});
    joined_.push_back({begin, begin + over});
  }
}

std::string Sums::in_words(SumId sum) const {
  std::string words = "{";
  for (const Interval& run : set_of(sum)) {
    const char* comma = words.size() > 1 ? "," : "";
    if (run.end - run.first == 1) {
      words += fmt::format("{}{}", comma, run.first);
    } else {
      words += fmt::format("{}{}{}{}", comma, run.first, run.end - run.first == 2 ? "," : "-", run.end - 1);
    }
  }
  return words + "}";
}

SumId Sums::intern(Set set) {
  if (2 * sets_.size() >= ids_.size()) {
    grow();
  }
  const std::size_t hash = hash_of(set);
  const std::size_t mask = ids_.size() - 1;
  std::size_t at = hash & mask;
  for (; ids_[at] != free_place; at = (at + 1) & mask) {
    const Set known = set_of(ids_[at]);
    if (std::equal(set.begin(), set.end(), known.begin(), known.end())) {
      return ids_[at];
    }
  }
  ids_[at] = static_cast<SumId>(sets_.size());
  sets_.push_back({runs_.size(), set.size(), hash});
  runs_.insert(runs_.end(), set.begin(), set.end());
  return ids_[at];
}

/// Doubles the capacity.
void Sums::grow() {
  ids_.assign(std::max<std::size_t>(64, 2 * ids_.size()), free_place);  // a power of two
  const std::size_t mask = ids_.size() - 1;
  for (std::size_t id = 0; id < sets_.size(); ++id) {
    std::size_t at = sets_[id].hash & mask;
    while (ids_[at] != free_place) {
      at = (at + 1) & mask;
    }
    ids_[at] = static_cast<SumId>(id);
  }
}

}  // namespace commfuse
