// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/point_team.h"

#include <fmt/format.h>
#include <sched.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <unistd.h>

#include <utility>

#include "sim/parallel/parallel.h"

namespace commfuse {

namespace {

/// A point's rows, and whether it has run. Threads write neighbouring flags at the same time, which a vector<bool> does
/// not allow.
struct Slot {
  StoredPoint point;
  bool is_done = false;
};

}  // namespace

struct PointTeam::Threads {
  struct Simulator {
    PointCursor cursor;
    SimulatePoint simulate;
  };

  Threads(const PointList& list, std::function<SimulatePoint()> make, int count)
      : make_simulator(std::move(make)),
        limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(count)),
        arena(count),
        simulators([this, &list] {
          return Simulator{PointCursor(list), make_simulator()};
        }),
        is_alone(count == 1) {}

  std::function<SimulatePoint()> make_simulator;
  tbb::global_control limit;
  tbb::task_arena arena;  // oneTBB's default arena has one thread per core that the process may use
  tbb::enumerable_thread_specific<Simulator> simulators;
  bool is_alone;
};

PointTeam::PointTeam(const PointList& list, std::function<SimulatePoint()> make_simulator, int threads)
    : threads_(std::make_unique<Threads>(list, std::move(make_simulator), threads)) {}

PointTeam::~PointTeam() = default;

std::vector<StoredPoint> PointTeam::simulate(std::span<const std::size_t> points, const std::atomic<bool>* stop) {
  std::vector<Slot> slots(points.size());
  const auto simulate = [&](std::size_t i) {
    if (is_stopped(stop)) {
      return;
    }
    Threads::Simulator& simulator = threads_->simulators.local();
    slots[i] = {.point = {points[i], simulator.simulate(simulator.cursor.at(points[i]))}, .is_done = true};
  };
  if (threads_->is_alone) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      simulate(i);
    }
  } else {
    threads_->arena.execute([&] { for_each_index(points.size(), simulate); });
  }
  std::vector<StoredPoint> simulated;
  simulated.reserve(slots.size());
  for (Slot& slot : slots) {
    if (slot.is_done) {
      simulated.push_back(std::move(slot.point));
    }
  }
  return simulated;
}

std::string warning_of_bound_threads(int threads, const Cores& cores) {
  if (cores.allowed >= threads || cores.allowed >= cores.online) {
    return {};
  }
  return fmt::format(
      "{} threads share {} of this machine's {} cores: the launcher binds each process; with Open MPI, add --bind-to "
      "none to mpirun\n",
      threads, cores.allowed, cores.online);
}

Cores cores_of_this_process() {
  const auto online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t cores;
  CPU_ZERO(&cores);
  // On a machine with more cores than the set can hold, the process is reported as unbound.
  const bool fits = ::sched_getaffinity(0, sizeof(cores), &cores) == 0;
  return {.allowed = fits ? CPU_COUNT(&cores) : online, .online = online};
}

}  // namespace commfuse
