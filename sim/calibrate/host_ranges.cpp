// SPDX-License-Identifier: Apache-2.0
#include "sim/calibrate/host_ranges.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <tuple>
#include <utility>

namespace commfuse::calibrate {

std::uint32_t HostRanges::thread(std::string_view name) {
  const auto entry = threads_.find(name);
  return entry != threads_.end() ? entry->second
                                 : threads_.emplace(name, static_cast<std::uint32_t>(threads_.size())).first->second;
}

std::size_t HostRanges::add(std::uint32_t thread, double begin, double end) {
  ranges_.push_back({.begin = begin, .end = end, .thread = thread});
  return ranges_.size() - 1;
}

void HostRanges::finish() {
  order_.resize(ranges_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t i) { return std::tuple(ranges_[i].thread, ranges_[i].begin, -ranges_[i].end, i); };
    return key(a) < key(b);
  });
  std::vector<std::size_t> open;
  for (const std::size_t range : order_) {
    while (!open.empty() &&
           (ranges_[open.back()].thread != ranges_[range].thread || ranges_[open.back()].end < ranges_[range].begin)) {
      open.pop_back();
    }
    ranges_[range].parent = open.empty() ? none : open.back();
    open.push_back(range);
  }
}

std::size_t HostRanges::last_before(std::uint32_t thread, double time) const {
  const auto after = std::upper_bound(order_.begin(), order_.end(), std::pair(thread, time),
                                      [&](const std::pair<std::uint32_t, double>& position, std::size_t range) {
                                        return position < std::pair(ranges_[range].thread, ranges_[range].begin);
                                      });
  return after == order_.begin() || ranges_[*std::prev(after)].thread != thread ? none : *std::prev(after);
}

}  // namespace commfuse::calibrate
