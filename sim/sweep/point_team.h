// SPDX-License-Identifier: Apache-2.0
// The threads with which one process of several simulates the points that it is handed.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/point/point_list.h"
#include "sim/sweep/play_sweep.h"
#include "sim/sweep/store_row.h"

namespace commfuse {

/// Keeps one simulator of points a thread from chunk to chunk, so that what a thread has worked out serves again.
class PointTeam {
 public:
  /// `make_player` is called once on every thread. Requires threads >= 1, and that the list and what `make_player`
  /// refers to outlive the team. One thread is the caller's own; more are oneTBB's, and none of them outlives a call.
  PointTeam(const PointList& list, std::function<PlayPoint()> make_player, int threads);
  PointTeam(const PointTeam&) = delete;
  PointTeam& operator=(const PointTeam&) = delete;
  ~PointTeam();

  /// The rows of `points` in their order, without those that were not begun before `stop` was set (null: never). Not
  /// thread-safe. Throws what a simulation throws.
  std::vector<StoredPoint> play(std::span<const std::size_t> points, const std::atomic<bool>* stop);

 private:
  struct Threads;
  std::unique_ptr<Threads> threads_;
};

/// A warning where this process may run on fewer cores than it has threads and the machine has more; else empty.
/// mpirun binds each process to one core unless it is told otherwise.
struct Cores {
  int allowed = 1;  ///< Cores that the process may run on.
  int online = 1;   ///< Cores of the machine.
};
std::string warning_of_bound_threads(int threads, const Cores& cores);

/// Returns the cores of this process and this machine.
Cores cores_of_this_process();

}  // namespace commfuse
