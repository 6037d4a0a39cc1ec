// SPDX-License-Identifier: Apache-2.0
// The threads of one process among several, which simulate the points that the process is handed.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/point/point_list.h"
#include "sim/sweep/simulate_points.h"
#include "sim/sweep/store_row.h"

namespace commfuse {

/// Keeps one point simulator per thread from chunk to chunk, so that a thread can reuse what it has computed.
class PointTeam {
 public:
  /// `make_simulator` is called once on every thread. Requires `threads` >= 1. The list and all objects to which
  /// `make_simulator` refers must outlive the team. With one thread, points run on the calling thread; otherwise on
  /// oneTBB's threads, which no call leaves running.
  PointTeam(const PointList& list, std::function<SimulatePoint()> make_simulator, int threads);
  PointTeam(const PointTeam&) = delete;
  PointTeam& operator=(const PointTeam&) = delete;
  ~PointTeam();

  /// Returns the rows of `points` in their order. Omits points that have not begun when `stop` is set; with null, runs
  /// all points. Not thread-safe. Throws what a simulation throws.
  std::vector<StoredPoint> simulate(std::span<const std::size_t> points, const std::atomic<bool>* stop);

 private:
  struct Threads;
  std::unique_ptr<Threads> threads_;
};

/// Numbers of cores of this process and its machine. mpirun binds each process to one core by default.
struct Cores {
  int allowed = 1;  ///< Number of cores that the process may run on.
  int online = 1;   ///< Number of cores of the machine.
};
/// Returns a warning if this process may run on fewer cores than it has threads while the machine has more; otherwise
/// an empty text.
std::string warning_of_bound_threads(int threads, const Cores& cores);

/// Returns the numbers of cores of this process and this machine.
Cores cores_of_this_process();

}  // namespace commfuse
