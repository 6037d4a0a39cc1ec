// SPDX-License-Identifier: Apache-2.0
#include "model/program/recorder.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace commfuse {

namespace {

template <class Intervals>
bool is_sorted(const Intervals& intervals) {
  return std::is_sorted(intervals.begin(), intervals.end(),
                        [](const auto& a, const auto& b) { return a.start < b.start; });
}

/// Returns the measure of the union of two sorted lists.
template <class Intervals>
Duration measure_of_union(const Intervals& a, const Intervals& b) {
  Duration total{};
  Instant covered{};
  auto next_a = a.begin();
  auto next_b = b.begin();
  while (next_a != a.end() || next_b != b.end()) {
    const bool is_of_a = next_b == b.end() || (next_a != a.end() && next_a->start <= next_b->start);
    const auto& interval = is_of_a ? *next_a++ : *next_b++;
    const Instant from = std::max(interval.start, covered);
    if (interval.end > from) {
      total += interval.end - from;
      covered = interval.end;
    }
  }
  return total;
}

}  // namespace

void Recorder::start(std::int32_t ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  last_end_.assign(count, Instant{});
  essential_.resize(count);
  local_.resize(count);
  for (std::size_t rank = 0; rank < count; ++rank) {
    essential_[rank].clear();
    local_[rank].clear();
  }
  timeline_.clear();
}

void Recorder::record(Rank rank, OpId op, Purpose purpose, Instant start, Instant end) {
  const auto index = static_cast<std::size_t>(rank);
  last_end_[index] = std::max(last_end_[index], end);
  if (keep_ == Keep::ends) {
    return;
  }
  if (purpose == Purpose::essential) {
    add(essential_[index], start, end);
  } else if (purpose == Purpose::local) {
    add(local_[index], start, end);
  }
  if (keep_ == Keep::timeline) {
    timeline_.push_back({rank, op, start, end});
  }
}

Instant Recorder::makespan() const {
  return last_end_.empty() ? Instant{} : *std::max_element(last_end_.begin(), last_end_.end());
}

RankSummary Recorder::summary(Rank rank) const {
  const auto index = static_cast<std::size_t>(rank);
  const Intervals& essential = essential_[index];
  RankSummary summary{.has_essential = !essential.empty(), .last_end = last_end_[index]};
  if (summary.has_essential) {
    summary.first_essential = essential.front().start;
    summary.last_essential = essential.front().end;
    for (const Interval& interval : essential) {
      summary.first_essential = std::min(summary.first_essential, interval.start);
      summary.last_essential = std::max(summary.last_essential, interval.end);
    }
  }
  const Intervals& local = local_[index];
  if (is_sorted(essential) && is_sorted(local)) {  // false only if ops of one purpose run on several lanes
    summary.busy = measure_of_union(essential, Intervals{});
    summary.covered = measure_of_union(essential, local);
    return summary;
  }
  Intervals essential_and_local = essential;
  essential_and_local.insert(essential_and_local.end(), local.begin(), local.end());
  summary.busy = measure(essential);
  summary.covered = measure(std::move(essential_and_local));
  return summary;
}

// Evaluators record the ops of a rank nearly in the order of their ids, so after distribution by rank the spans are
// almost sorted.
Timeline Recorder::timeline() const {
  std::vector<std::size_t> next(last_end_.size() + 1, 0);  // for each rank, the index of its next span
  for (const OpSpan& span : timeline_) {
    ++next[static_cast<std::size_t>(span.rank) + 1];
  }
  std::partial_sum(next.begin(), next.end(), next.begin());
  Timeline sorted(timeline_.size());
  for (const OpSpan& span : timeline_) {
    sorted[next[static_cast<std::size_t>(span.rank)]++] = span;
  }
  const auto by_op = [](const OpSpan& a, const OpSpan& b) { return a.op < b.op; };
  std::size_t begin = 0;
  for (std::size_t rank = 0; rank < last_end_.size(); ++rank) {  // next[rank] is now the end of its spans
    const auto first = sorted.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = sorted.begin() + static_cast<std::ptrdiff_t>(next[rank]);
    if (!std::is_sorted(first, last, by_op)) {
      std::sort(first, last, by_op);
    }
    begin = next[rank];
  }
  return sorted;
}

// Back-to-back ops become one interval, so a lane without gaps needs only one.
void Recorder::add(Intervals& intervals, Instant start, Instant end) {
  if (!intervals.empty() && start >= intervals.back().start && start <= intervals.back().end) {
    intervals.back().end = std::max(intervals.back().end, end);
  } else {
    intervals.push_back({start, end});
  }
}

Duration Recorder::measure(Intervals intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.start < b.start; });
  Duration total{};
  Instant covered{};
  for (const Interval& interval : intervals) {
    const Instant from = std::max(interval.start, covered);
    if (interval.end > from) {
      total += interval.end - from;
      covered = interval.end;
    }
  }
  return total;
}

}  // namespace commfuse
