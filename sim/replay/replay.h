// SPDX-License-Identifier: Apache-2.0
// Simulates a program without a clock: if no rate changes at run time, the ends of ops follow from each other. One pass
// over the tape, without a queue, yields the same times as the engine, to the picosecond.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/cost/costs.h"
#include "model/cost/jitter_sampler.h"
#include "model/program/recorder.h"
#include "sim/replay/identical_ranks.h"
#include "sim/replay/tape.h"

namespace commfuse {

/// The time at which the last op of all ranks ends, in three runs.
struct Makespans {
  Duration actual{};
  Duration ideal{};  ///< communication takes no time, but is still issued and still synchronizes the ranks
  Duration link{};   ///< ops other than communication take no time, but are still issued
};

/// Returns whether all ranks do the same work at the same time, so that rank 0 represents all: every rank runs every
/// op, at one cost.
bool ranks_are_identical(const Tape& tape, const Costs& costs);
/// Returns how many ranks, from rank 0 on, represent all others: rank r does the same at the same time as rank r modulo
/// this number. Returns the number of all ranks if none represents another. If every rank runs every op, and the costs
/// have a period by which the mesh can be folded (such as equal costs on every node), returns the period.
Rank distinct_ranks(const Program& program, const Tape& tape, const Costs& costs);

/// Reuses its memory in later runs; every run is otherwise a pure function of its arguments. Use one object per thread.
class Replay {
 public:
  enum class Ranks : std::uint8_t {
    all,
    distinct,  ///< the first ranks, which represent all: their number is distinct_ranks()
  };

  /// Reports the actual run to the recorder, if there is one; with `distinct`, reports only the first ranks, as if
  /// there were no others. Requires `costs` to be those of `program`. Throws ConfigError for a run of 2^53 ps (2.5
  /// hours) or more, which doubles cannot hold exactly.
  Makespans run(const Program& program, const Tape& tape, const Costs& costs, Ranks ranks, Recorder* recorder);

  /// Returns the actual makespan only, which takes a third of the work.
  Duration makespan(const Program& program, const Tape& tape, const Costs& costs, Ranks ranks);

  /// Appends makespan() at each of the `costs` to `makespans`, in order; one pass over the tape runs several of them.
  /// Requires `costs` of this program with equal issue times (Costs::issue) and equally many rows (Costs::by_rank).
  void makespans(const Program& program, const Tape& tape, std::span<const Costs> costs, Ranks ranks,
                 std::vector<Duration>& makespans);

  /// Returns the makespans of the sampler's batch, in whole picoseconds, one per sample; valid until the next run.
  /// Requires a `sampler` of this program, on which begin() was called.
  std::span<const double> sample(const Program& program, const Tape& tape, const Costs& costs, JitterSampler& sampler);

 private:
  template <class Prices>
  class Pass;

  // A lane of a register, unlike a lane of a program, is one of the runs that are computed together.
  std::vector<double> values_;     // by register, then rank, then lane
  std::vector<double> durations_;  // for one op: by rank, then lane
  std::vector<double> others_;     // scratch space for partners' durations or for starts: by rank, then lane
  std::vector<double> issued_;     // by op, or by rank and op
  std::vector<double> last_end_;   // by lane
  IdenticalRanksMemory identical_ranks_;
};

}  // namespace commfuse
