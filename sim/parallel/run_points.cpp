// SPDX-License-Identifier: Apache-2.0
#include "sim/parallel/run_points.h"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>

#include <algorithm>

#include "sim/parallel/parallel.h"
#include "sim/point/point_runner.h"

namespace commfuse {

namespace {

std::size_t threads_of(const GridOptions& options) {
  return options.threads > 0 ? static_cast<std::size_t>(options.threads)
                             : tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
}

/// Runs the points of a list on one thread.
struct Walker {
  Walker(const PointList& points, const Library& library, StructureCache& structures)
      : cursor(points), runner(library, structures, &for_each_index) {}
  PointCursor cursor;
  PointRunner runner;
};

}  // namespace

std::vector<std::vector<ResultRow>> run_points(const std::vector<Settings>& points, const Library& library,
                                               const GridOptions& options) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads_of(options));
  StructureCache structures;
  tbb::enumerable_thread_specific<PointRunner> runners(
      [&] { return PointRunner(library, structures, &for_each_index); });
  std::vector<std::vector<ResultRow>> by_point(points.size());
  for_each_index(points.size(), [&](std::size_t i) {
    if (is_stopped(options.stop)) {
      return;
    }
    by_point[i] = runners.local().rows(points[i]);
    if (options.finished) {
      options.finished(all_feasible(by_point[i]));
    }
  });
  if (is_stopped(options.stop)) {
    throw Interrupted{};
  }
  return by_point;
}

void run_points(const PointList& points, const Library& library, const GridOptions& options,
                const std::function<void(std::span<const ResultRow> rows)>& take) {
  constexpr std::size_t max_points_per_chunk = 32;  // consecutive points that one thread simulates
  constexpr std::size_t chunks_per_thread = 16;     // per block; `take` runs after each block
  const std::size_t threads = threads_of(options);
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
  StructureCache structures;
  tbb::enumerable_thread_specific<Walker> walkers([&] { return Walker(points, library, structures); });
  const std::size_t chunk =
      std::clamp<std::size_t>(points.size() / (threads * chunks_per_thread), 1, max_points_per_chunk);
  const std::size_t block = chunk * chunks_per_thread * threads;
  std::vector<std::vector<ResultRow>> rows(block);
  for (std::size_t first = 0; first < points.size(); first += block) {
    const std::size_t count = std::min(block, points.size() - first);
    for_each_index((count + chunk - 1) / chunk, [&](std::size_t chunk_index) {
      Walker& walker = walkers.local();
      for (std::size_t i = chunk_index * chunk;
           i < std::min((chunk_index + 1) * chunk, count) && !is_stopped(options.stop); ++i) {
        rows[i] = walker.runner.rows(walker.cursor.at(first + i));
      }
    });
    if (is_stopped(options.stop)) {
      throw Interrupted{};
    }
    for (std::size_t i = 0; i < count; ++i) {
      take(rows[i]);
      if (options.finished) {
        options.finished(all_feasible(rows[i]));
      }
    }
  }
}

}  // namespace commfuse
