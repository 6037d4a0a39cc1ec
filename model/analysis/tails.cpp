// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/tails.h"

#include <algorithm>
#include <numeric>

#include "model/check.h"

namespace commfuse {

namespace {

constexpr std::array parts{&Breakdown::compute, &Breakdown::slicing, &Breakdown::stretch, &Breakdown::local,
                           &Breakdown::head,    &Breakdown::bubble,  &Breakdown::tail,    &Breakdown::busy};

}  // namespace

Rank P99Causes::worst_rank() const {
  const auto worst = std::max_element(rank_time_on_path.begin(), rank_time_on_path.end());
  return static_cast<Rank>(worst - rank_time_on_path.begin());
}

double P99Causes::share_of_path(Rank rank) const {
  const Duration total = std::accumulate(rank_time_on_path.begin(), rank_time_on_path.end(), Duration{});
  const Duration rank_time = rank_time_on_path[static_cast<std::size_t>(rank)];
  return total > Duration{} ? to_seconds(rank_time) / to_seconds(total) : 0.0;
}

P99Collector::P99Collector(std::int32_t ranks)
    : ranks_(ranks), with_rank_(static_cast<std::size_t>(ranks)), time_of_rank_(static_cast<std::size_t>(ranks)) {}

void P99Collector::add(const Breakdown& critical, const CriticalPath& path) {
  ++samples_;
  for (const auto part : parts) {
    sum_.*part += critical.*part;
  }
  const PathShares shares = shares_of(path, ranks_);
  for (std::size_t kind = 0; kind < path_kinds; ++kind) {
    time_of_kind_[kind] += shares.by_kind[kind];
    with_kind_[kind] += shares.by_kind[kind] > Duration{} ? 1 : 0;
  }
  for (std::size_t rank = 0; rank < with_rank_.size(); ++rank) {
    time_of_rank_[rank] += shares.by_rank[rank];
    with_rank_[rank] += shares.by_rank[rank] > Duration{} ? 1 : 0;
  }
}

P99Causes P99Collector::causes() const {
  check(samples_ > 0, "causes need at least one run");
  const auto count = static_cast<std::int64_t>(samples_);
  const auto share = [&](std::size_t hits) { return static_cast<double>(hits) / static_cast<double>(samples_); };
  P99Causes causes{.samples = samples_};
  for (const auto part : parts) {
    causes.mean.*part = sum_.*part / count;
  }
  // Sums the rounded parts, so that the parts still add up.
  Breakdown& mean = causes.mean;
  mean.exposed = mean.head + mean.bubble + mean.tail - mean.local;
  mean.makespan = mean.compute + mean.slicing + mean.stretch + mean.local + mean.exposed;
  for (std::size_t kind = 0; kind < path_kinds; ++kind) {
    causes.on_path[kind] = share(with_kind_[kind]);
    causes.time_on_path[kind] = time_of_kind_[kind] / count;
  }
  for (std::size_t rank = 0; rank < with_rank_.size(); ++rank) {
    causes.rank_on_path.push_back(share(with_rank_[rank]));
    causes.rank_time_on_path.push_back(time_of_rank_[rank] / count);
  }
  return causes;
}

std::vector<std::size_t> near_p99(const std::vector<Duration>& makespans, std::size_t limit) {
  std::vector<std::size_t> order(makespans.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t first = order_of(makespans.size(), 985) - 1;
  const std::size_t last = order_of(makespans.size(), 995) - 1;
  const auto earlier = [&](std::size_t a, std::size_t b) {
    return makespans[a] != makespans[b] ? makespans[a] < makespans[b] : a < b;
  };
  const auto at = [&](std::size_t index) { return order.begin() + static_cast<std::ptrdiff_t>(index); };
  std::nth_element(order.begin(), at(first), order.end(), earlier);
  std::sort(at(first), order.end(), earlier);
  const std::size_t available = last - first + 1;
  const std::size_t count = std::min(available, limit);
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < count; ++i) {
    chosen.push_back(order[first + i * available / count]);
  }
  return chosen;
}

}  // namespace commfuse
