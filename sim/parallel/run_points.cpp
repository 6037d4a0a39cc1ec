// SPDX-License-Identifier: Apache-2.0
#include "sim/parallel/run_points.h"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>

#include "sim/parallel/parallel.h"
#include "sim/point/point_runner.h"

namespace commfuse {

std::vector<std::vector<ResultRow>> run_points(const std::vector<Settings>& points, const Library& library,
                                               const GridOptions& options) {
  const std::size_t threads = options.threads > 0
                                  ? static_cast<std::size_t>(options.threads)
                                  : tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
  StructureCache structures;
  tbb::enumerable_thread_specific<PointRunner> runners(
      [&] { return PointRunner(library, structures, &for_each_index); });
  std::vector<std::vector<ResultRow>> by_point(points.size());
  for_each_index(points.size(), [&](std::size_t i) {
    if (options.stop != nullptr && options.stop->load()) {
      return;
    }
    by_point[i] = runners.local().rows(points[i]);
    if (options.finished) {
      options.finished(all_feasible(by_point[i]));
    }
  });
  if (options.stop != nullptr && options.stop->load()) {
    throw Interrupted{};
  }
  return by_point;
}

}  // namespace commfuse
