// SPDX-License-Identifier: Apache-2.0
// A sweep among processes that share nothing: one leads, hands out points as others ask for them, plays some itself,
// and stores all. So a slow machine, or one with the costly points, does fewer of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "model/process/world.h"
#include "sim/sweep/play_sweep.h"

namespace commfuse {

/// What every process works out by itself from the same command line.
struct SharedSweep {
  std::string digest;  ///< The leader's and everybody's: files may differ between machines.
  const PointList* list = nullptr;
  Players* players = nullptr;
  int threads = 1;  ///< Of this process; others may have other numbers.
};

/// On process 0. Calls `take` for each of `points`, in no order, until all are played or `stop` is set: then what the
/// others are at is finished. Afterwards, and also when it throws, the others have been sent home. Throws
/// std::runtime_error where another process cannot do its part, and what `take` throws.
void lead(World& world, const SharedSweep& sweep, const std::vector<std::size_t>& points, const TakePoint& take,
          const std::atomic<bool>* stop);

/// Sends the others home before anything was begun.
void dismiss(World& world);

/// On the others, until they are sent home. `prepare` is called when there is something to do; what it throws the
/// leader says. `stop` ends what is being played.
void follow(World& world, const std::function<SharedSweep()>& prepare, const std::atomic<bool>* stop);

}  // namespace commfuse
