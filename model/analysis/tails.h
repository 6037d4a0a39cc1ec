// SPDX-License-Identifier: Apache-2.0
// Statistics of many runs under jitter: percentiles of the makespan, and what the runs near its p99 have in common.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/analysis/breakdown.h"
#include "model/analysis/critical_path.h"
#include "model/analysis/percentiles.h"

namespace commfuse {

/// Causes of the p99, from the runs between the percentiles 98.5 and 99.5, or from an evenly spaced selection of these
/// runs.
struct P99Causes {
  std::size_t samples = 0;
  Breakdown mean;  ///< mean over the runs' critical ranks, part by part, rounded down
  /// For each kind of time, share of the samples with such time on the critical path.
  std::array<double, path_kinds> on_path{};
  std::array<Duration, path_kinds> time_on_path{};  ///< by kind: mean time on the path
  std::vector<double> rank_on_path;         ///< by rank: share of the samples with one of its ops on the critical path
  std::vector<Duration> rank_time_on_path;  ///< by rank: mean time on the path

  /// Returns the rank with the most time on the path; the lowest rank on ties.
  [[nodiscard]] Rank worst_rank() const;
  /// Returns the rank's share of the total time on the paths.
  [[nodiscard]] double share_of_path(Rank rank) const;
  friend bool operator==(const P99Causes&, const P99Causes&) = default;
};

struct Tails {
  Percentiles percentiles;
  P99Causes causes;
  friend bool operator==(const Tails&, const Tails&) = default;
};

/// Collects the causes of the p99 run by run.
class P99Collector {
 public:
  explicit P99Collector(std::int32_t ranks);
  void add(const Breakdown& critical, const CriticalPath& path);
  /// Returns the causes. Requires at least one run.
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

/// Returns the samples near the p99 as indices into `makespans`: at most `limit`, by ascending makespan. Requires at
/// least one sample.
std::vector<std::size_t> near_p99(const std::vector<Duration>& makespans, std::size_t limit);

}  // namespace commfuse
