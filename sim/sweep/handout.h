// SPDX-License-Identifier: Apache-2.0
// Runs a sweep on processes that share nothing: one leads, hands out points on request, runs some points itself, and
// stores all results. A slow machine, or one with expensive points, therefore runs fewer points.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "model/process/world.h"
#include "sim/sweep/simulate_points.h"

namespace commfuse {

/// The sweep that every process derives by itself from the same command line.
struct SharedSweep {
  std::string digest;  ///< Must be equal on all processes; files may differ between machines.
  const PointList* list = nullptr;
  SimulatorFactory* factory = nullptr;
  int threads = 1;  ///< Number of threads of this process; other processes may use other numbers.
};

/// Leads, on process 0. Calls `take` for each of `points`, in any order, until all have run or `stop` is set; points
/// that other processes have begun are then finished. Tells the other processes to exit before it returns or throws.
/// Throws std::runtime_error if another process fails, and rethrows what `take` throws.
void lead(World& world, const SharedSweep& sweep, const std::vector<std::size_t>& points, const TakePoint& take,
          const std::atomic<bool>* stop);

/// Tells the other processes to exit; for a process 0 that does not call lead().
void dismiss(World& world);

/// Follows, on every other process, until the leader tells it to exit. `prepare` is called when there are points to
/// run; the leader reports what `prepare` throws. Once `stop` is set, this process begins no further point, but it
/// still waits for the leader.
void follow(World& world, const std::function<SharedSweep()>& prepare, const std::atomic<bool>* stop);

}  // namespace commfuse
