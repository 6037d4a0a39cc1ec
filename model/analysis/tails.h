// SPDX-License-Identifier: Apache-2.0
// What many runs under jitter say: percentiles of the makespan, and what the runs near its p99 have in common.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/analysis/breakdown.h"
#include "model/analysis/critical_path.h"
#include "model/analysis/percentiles.h"

namespace commfuse {

/// The runs between the percentiles 98.5 and 99.5, or some evenly spread over them.
struct P99Causes {
  std::size_t samples = 0;
  Breakdown mean;                                   ///< of their critical ranks, part by part, rounded down
  std::array<double, path_kinds> on_path{};         ///< share of the samples with such an op on the critical path
  std::array<Duration, path_kinds> time_on_path{};  ///< mean
  std::vector<double> rank_on_path;         ///< by rank: share of the samples with an op of it on the critical path
  std::vector<Duration> rank_time_on_path;  ///< by rank: mean

  /// The rank with the most time on the path, the lowest on ties.
  [[nodiscard]] Rank worst_rank() const;
  /// A rank's share of the time of the paths.
  [[nodiscard]] double share_of_path(Rank rank) const;
  friend bool operator==(const P99Causes&, const P99Causes&) = default;
};

struct Tails {
  Percentiles percentiles;
  P99Causes causes;
  friend bool operator==(const Tails&, const Tails&) = default;
};

/// Collects them run by run.
class P99Collector {
 public:
  explicit P99Collector(std::int32_t ranks);
  void add(const Breakdown& critical, const CriticalPath& path);
  /// Requires one run at least.
  [[nodiscard]] P99Causes causes() const;

 private:
  std::int32_t ranks_;
  std::size_t samples_ = 0;
  Breakdown sum_;
  std::array<std::size_t, path_kinds> with_kind_{};
  std::array<Duration, path_kinds> time_of_kind_{};
  std::vector<std::size_t> with_rank_;
  std::vector<Duration> time_of_rank_;
};

/// Which samples are near the p99: indices into `makespans`, at most `most`, by rising makespan. Requires one sample at
/// least.
std::vector<std::size_t> near_p99(const std::vector<Duration>& makespans, std::size_t most);

}  // namespace commfuse
