// SPDX-License-Identifier: Apache-2.0
// Ranges of time on threads of the host, such as operators, and the lookup of the range around a launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace commfuse::calibrate {

class HostRanges {
 public:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  /// Returns the number of the thread; equal names have equal numbers.
  std::uint32_t thread(std::string_view name);
  /// Adds a range and returns its number, counted from 0. All times must have the same unit. A range that ends before
  /// it begins contains nothing.
  std::size_t add(std::uint32_t thread, double begin, double end);
  /// Ends the input. Ranges of one thread should be nested or disjoint; a range that partly overlaps another may not be
  /// found.
  void finish();

  /// Returns the innermost range around `time` for which `accept(range)` is true; `none` if none of the 1000 innermost
  /// ranges is accepted. finish() must have been called.
  template <class Accept>
  [[nodiscard]] std::size_t innermost(std::uint32_t thread, double time, const Accept& accept) const {
    constexpr int deepest = 1000;
    std::size_t range = last_before(thread, time);
    for (int level = 0; range != none && level < deepest; ++level, range = ranges_[range].parent) {
      if (ranges_[range].end >= time && accept(range)) {
        return range;
      }
    }
    return none;
  }
  [[nodiscard]] std::size_t size() const { return ranges_.size(); }

 private:
  struct Range {
    double begin = 0.0;
    double end = 0.0;
    std::size_t parent = none;
    std::uint32_t thread = 0;
  };
  [[nodiscard]] std::size_t last_before(std::uint32_t thread, double time) const;

  std::map<std::string, std::uint32_t, std::less<>> threads_;
  std::vector<Range> ranges_;
  std::vector<std::size_t> order_;  // by thread and begin; of ranges that begin together, the longer first
};

}  // namespace commfuse::calibrate
