// SPDX-License-Identifier: Apache-2.0
// Simulates the points of a sweep in parallel and hands over their rows in the order of the points. Memory does not
// grow with the number of points.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

#include "sim/point/point_list.h"
#include "sim/point/request.h"
#include "sim/sweep/result_store.h"
#include "sim/sweep/store_row.h"

namespace commfuse {

/// Returns the rows of a point; a pure function of the settings. Used by one thread.
using SimulatePoint = std::function<std::vector<StoreRow>(const Settings&)>;

/// Makes the functions that run points, one per thread. The library and this object must outlive them.
class SimulatorFactory {
 public:
  SimulatorFactory(const Library& library, StoreKind kind) : library_(library), kind_(kind) {}
  [[nodiscard]] StoreKind kind() const { return kind_; }
  SimulatePoint make();

 private:
  const Library& library_;
  StoreKind kind_;
  StructureCache structures_;
};

/// Receives the results of a point. Calls never overlap.
using TakePoint = std::function<void(const StoredPoint&)>;

struct SweepOptions {
  int threads = 0;  ///< 0: all cores
  /// Set by the caller at any time: running points are finished, and no further point is begun.
  const std::atomic<bool>* stop = nullptr;
};

/// Calls `take` for each of `points`, in their order, with any number of threads. Rethrows what `take` throws.
void simulate_points(const PointList& list, const std::vector<std::size_t>& points, SimulatorFactory& factory,
                     const TakePoint& take, const SweepOptions& options);

/// Returns the number of threads that SweepOptions::threads = 0 selects.
int usable_threads();

/// Puts points into a store and commits at intervals, so that little is lost however the program ends.
class StoreFiller {
 public:
  explicit StoreFiller(StoreWriter& store) : store_(store) {}
  void take(const StoredPoint& point);
  void finish() { store_.commit(); }

 private:
  StoreWriter& store_;
  std::chrono::steady_clock::time_point committed_ = std::chrono::steady_clock::now();
  std::chrono::milliseconds pause_{5};  // until the next commit; short at first, for short runs
};

}  // namespace commfuse
