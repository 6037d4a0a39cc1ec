// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "model/config/choices.h"
#include "sim/sweep/simulate_points.h"

namespace commfuse::sim {

namespace {

struct Sample {
  std::size_t points = 0;
  std::size_t rows = 0;
  std::size_t infeasible = 0;
  double seconds = 0.0;  // Time to simulate the sample on one thread, with cached schedules.
  double bytes = 0.0;    // Growth of an empty store by the rows of the sample.
};

/// Returns points spread evenly over the shard. sample_of() simulates them twice and times only the second pass,
/// because the first pass generates schedules that many points then share.
std::vector<std::size_t> sample_points(const StoreIdentity& identity) {
  constexpr std::size_t max_points = 64;
  std::vector<std::size_t> shard_points;
  for (std::size_t point = 0; point < identity.points; ++point) {
    if (belongs_to(identity.shard, point, identity.points)) {
      shard_points.push_back(point);
    }
  }
  std::vector<std::size_t> sample;
  const std::size_t sample_size = std::min(shard_points.size(), max_points);
  for (std::size_t i = 0; i < sample_size; ++i) {
    sample.push_back(shard_points[(2 * i + 1) * shard_points.size() / (2 * sample_size)]);
  }
  return sample;
}

Sample sample_of(const PreparedSweep& prepared, const std::vector<std::size_t>& points) {
  SimulatorFactory factory(prepared.library, prepared.identity.kind);
  Sample sample{.points = points.size()};
  StoreWriter store(":memory:", prepared.identity);
  const double empty = static_cast<double>(store.size());
  const auto simulate = [&](const TakePoint& take) {
    simulate_points(prepared.list, points, factory, take, {.threads = 1});
  };
  simulate([&](const StoredPoint& point) {
    store.add(point.point, point.rows);
    for (const StoreRow& row : point.rows) {
      ++sample.rows;
      sample.infeasible += is_feasible(prepared.identity.kind, row) ? 0 : 1;
    }
  });
  sample.bytes = static_cast<double>(store.size()) - empty;
  const auto start = std::chrono::steady_clock::now();
  simulate([](const StoredPoint&) {});
  sample.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return sample;
}

std::string time_in_words(double seconds) {
  return seconds < 120    ? fmt::format("{:.1f} s", seconds)
         : seconds < 7200 ? fmt::format("{:.0f} min", seconds / 60)
                          : fmt::format("{:.1f} h", seconds / 3600);
}

std::string size_in_words(double bytes) {
  return bytes < 1e6 ? fmt::format("{:.0f} KB", bytes / 1e3) : fmt::format("{:.1f} MB", bytes / 1e6);
}

}  // namespace

std::string dry_run_in_words(const PreparedSweep& prepared) {
  const StoreIdentity& identity = prepared.identity;
  const Sample sample = sample_of(prepared, sample_points(identity));
  const std::size_t shard_points = points_of(identity.shard, identity.points);
  // A sweep with fewer blocks of points than shards has shards without points.
  const double scale =
      sample.points == 0 ? 0.0 : static_cast<double>(shard_points) / static_cast<double>(sample.points);
  const int chosen_threads = choices_of(prepared.sweep.grid.settings).threads;
  const auto threads = static_cast<double>(chosen_threads > 0 ? chosen_threads : usable_threads());
  std::string text = fmt::format(
      "points  {}{}\n", shard_points,
      identity.shard.parts == 1 ? "" : fmt::format(" of {}, shard {}", identity.points, name_of(identity.shard)));
  text += fmt::format("rows    about {:.0f}; in a sample of {}, {} could not be run\n",
                      scale * static_cast<double>(sample.rows), sample.rows, sample.infeasible);
  text += fmt::format("time    about {} on {:.0f} thread{}\n", time_in_words(scale * sample.seconds / threads), threads,
                      threads > 1 ? "s" : "");
  return text + fmt::format("disk    about {}\n", size_in_words(scale * sample.bytes));
}

}  // namespace commfuse::sim
