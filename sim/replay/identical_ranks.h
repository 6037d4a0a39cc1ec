// SPDX-License-Identifier: Apache-2.0
// Replays ranks that do the same at the same time: one rank represents all of them, and the values of its three runs
// stay in processor registers. Yields the times of Replay's general pass, which loops over ranks and lanes.
#pragma once

#include <vector>

#include "model/cost/costs.h"
#include "model/program/recorder.h"
#include "sim/replay/tape.h"

namespace commfuse {

/// A time in three runs, in picoseconds.
struct ThreeTimes {
  double actual = 0.0;
  double ideal = 0.0;  ///< communication takes no time
  double link = 0.0;   ///< ops other than communication take no time
};

/// Memory of a replay, kept from run to run.
struct IdenticalRanksMemory {
  std::vector<ThreeTimes> values;  ///< by register
  std::vector<double> issued;      ///< by op
};

/// Returns the end of the last op. Reports the actual run of the one rank to `recorder`, unless `recorder` is null.
/// Requires a `recorder` without a timeline, `costs` of the program that are equal on all ranks, and the `tape` of a
/// program whose ranks run every op.
ThreeTimes replay_identical_ranks(const Program& program, const Tape& tape, const Costs& costs, Recorder* recorder,
                                  IdenticalRanksMemory& memory);

}  // namespace commfuse
