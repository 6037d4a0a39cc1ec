// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/simulate_points.h"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/parallel_pipeline.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "sim/parallel/parallel.h"
#include "sim/point/point_runner.h"
#include "sim/step/predict_steps.h"

namespace commfuse {

namespace {

/// Enough chunks to keep the threads busy while one of them writes, even if that thread waits about 50 ms for the disk
/// or a core.
constexpr std::size_t min_chunks = 256;
constexpr std::size_t chunks_per_thread = 4;
/// Small enough that the rows of a chunk are still in the thread's cache when it writes them.
constexpr std::size_t max_points_per_chunk = 32;

struct Worker;

struct SimulatedPoints {
  std::vector<StoredPoint> points;
  Worker* worker = nullptr;
};

using Chunk = std::unique_ptr<SimulatedPoints>;

/// Chunks between two stages of the pipeline. Stages hand over pointers; this object owns the chunks, so they are freed
/// if a stage throws.
class ChunksInFlight {
 public:
  SimulatedPoints* add(Chunk chunk) {
    const std::scoped_lock lock(mutex_);
    SimulatedPoints* key = chunk.get();
    chunks_.emplace(key, std::move(chunk));
    return key;
  }
  Chunk take(SimulatedPoints* key) {
    const std::scoped_lock lock(mutex_);
    return std::move(chunks_.extract(key).mapped());
  }

 private:
  std::mutex mutex_;
  std::unordered_map<SimulatedPoints*, Chunk> chunks_;
};

/// Simulates points on one thread. Chunks that another thread has written are returned to their worker and freed there,
/// because freeing another thread's memory makes both threads wait for each other.
struct Worker {
  Worker(const PointList& list, SimulatePoint simulate_point) : cursor(list), simulate(std::move(simulate_point)) {}

  void give_back(Chunk chunk) {
    const std::scoped_lock lock(mutex);
    written.push_back(std::move(chunk));
  }
  void free_written() {
    std::vector<Chunk> returned;
    const std::scoped_lock lock(mutex);
    returned.swap(written);
  }

  PointCursor cursor;
  SimulatePoint simulate;
  std::mutex mutex;
  std::vector<Chunk> written;
};

}  // namespace

SimulatePoint SimulatorFactory::make() {
  if (kind_ == StoreKind::layers) {
    return [runner = std::make_shared<PointRunner>(library_, structures_)](const Settings& settings) {
      std::vector<StoreRow> rows;
      for (const ResultRow& row : runner->rows(settings)) {
        rows.push_back(stored(row));
      }
      return rows;
    };
  }
  return [steps = std::make_shared<StepPoints>(library_)](const Settings& settings) {
    std::vector<StoreRow> rows;
    for (const StepRow& row : steps->rows_or_reason(settings)) {
      rows.push_back(stored(row));
    }
    return rows;
  };
}

int usable_threads() {
  return static_cast<int>(tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism));
}

void simulate_points(const PointList& list, const std::vector<std::size_t>& points, SimulatorFactory& factory,
                     const TakePoint& take, const SweepOptions& options) {
  const auto threads = static_cast<std::size_t>(options.threads > 0 ? options.threads : usable_threads());
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
  const std::size_t chunk = std::clamp<std::size_t>(points.size() / (threads * 16), 1, max_points_per_chunk);
  tbb::enumerable_thread_specific<Worker> workers([&] { return Worker(list, factory.make()); });
  std::size_t next = 0;
  ChunksInFlight in_flight;
  const auto begin = [&](tbb::flow_control& control) -> SimulatedPoints* {
    if (next == points.size() || is_stopped(options.stop)) {
      control.stop();
      return nullptr;
    }
    auto begun = std::make_unique<SimulatedPoints>();
    for (const std::size_t end = std::min(next + chunk, points.size()); next < end; ++next) {
      begun->points.push_back({.point = points[next]});
    }
    return in_flight.add(std::move(begun));
  };
  const auto simulate = [&](SimulatedPoints* chunk_of_points) {
    Worker& worker = workers.local();
    worker.free_written();
    chunk_of_points->worker = &worker;
    std::vector<StoredPoint>& points_of_chunk = chunk_of_points->points;
    for (StoredPoint& point : points_of_chunk) {
      if (is_stopped(options.stop)) {
        points_of_chunk.resize(static_cast<std::size_t>(&point - points_of_chunk.data()));
        break;
      }
      point.rows = worker.simulate(worker.cursor.at(point.point));
    }
    return chunk_of_points;
  };
  const auto end = [&](SimulatedPoints* key) {
    Chunk simulated = in_flight.take(key);
    for (const StoredPoint& point : simulated->points) {
      take(point);
    }
    Worker& worker = *simulated->worker;
    worker.give_back(std::move(simulated));
  };
  Handover before;
  Handover beginning;
  Handover begun;
  Handover simulated;
  Handover ending;
  Handover after;
  before.give();
  tbb::parallel_pipeline(std::max(threads * chunks_per_thread, min_chunks),
                         tbb::make_filter<void, SimulatedPoints*>(tbb::filter_mode::serial_in_order,
                                                                  marked({&before, &beginning, &begun}, begin)) &
                             tbb::make_filter<SimulatedPoints*, SimulatedPoints*>(
                                 tbb::filter_mode::parallel, marked({&begun, nullptr, &simulated}, simulate)) &
                             tbb::make_filter<SimulatedPoints*, void>(tbb::filter_mode::serial_in_order,
                                                                      marked({&simulated, &ending, &after}, end)));
  for (Handover* handover : {&beginning, &begun, &simulated, &after}) {
    handover->take();
  }
}

void StoreFiller::take(const StoredPoint& point) {
  constexpr std::chrono::milliseconds longest_pause{250};
  store_.add(point.point, point.rows);
  if (std::chrono::steady_clock::now() - committed_ >= pause_) {
    store_.commit();
    committed_ = std::chrono::steady_clock::now();
    pause_ = std::min(2 * pause_, longest_pause);
  }
}

}  // namespace commfuse
