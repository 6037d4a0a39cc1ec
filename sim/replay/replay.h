// SPDX-License-Identifier: Apache-2.0
// Plays a program without a clock: where no rate is shared at run time, the ends of ops follow from each other.
// One pass over the tape, no queue, the same picosecond as the engine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/cost/costs.h"
#include "model/cost/jitter_sampler.h"
#include "model/program/recorder.h"
#include "sim/replay/tape.h"

namespace commfuse {

/// Last end on any rank.
struct Makespans {
  Duration actual{};
  Duration ideal{};  ///< communication takes no time (it still meets and is still issued)
  Duration link{};   ///< everything but communication takes no time
};

/// Whether all ranks do the same at the same time, so that rank 0 tells of all: every rank runs every op, at one cost.
bool alike(const Tape& tape, const Costs& costs);
/// The first ranks, which tell of all others: rank r does what rank r modulo their number does, at the same time. All
/// ranks where none stands for others. Ranks that differ in costs alone, as those of a node do, repeat where the costs
/// do.
Rank distinct_ranks(const Program& program, const Tape& tape, const Costs& costs);

/// Keeps its memory from run to run; every run is otherwise a pure function of its arguments. One a thread.
class Replay {
 public:
  enum class Ranks : std::uint8_t {
    all,
    distinct,  ///< the first ranks, which stand for all: as many as distinct_ranks() says
  };

  /// The recorder, if there is one, hears of the actual run; of `distinct`, of the first ranks only, as if
  /// there were no others.
  /// Requires costs of this program. Throws ConfigError for a run of more than 2^53 ps (2.5 hours), which doubles
  /// cannot hold.
  Makespans run(const Program& program, const Tape& tape, const Costs& costs, Ranks ranks, Recorder* recorder);

  /// The same, the actual makespan only: a third of the work.
  Duration makespan(const Program& program, const Tape& tape, const Costs& costs, Ranks ranks);

  /// makespan() at each of several costs, in their order, in one pass over the tape. Appends to `makespans`. Requires
  /// costs of this program that are issued alike (Costs::issue) and whose ranks differ alike (rows_of).
  void makespans(const Program& program, const Tape& tape, std::span<const Costs> costs, Ranks ranks,
                 std::vector<Duration>& makespans);

  /// Makespans of the sampler's batch, by lane, in whole picoseconds; they live until the next run. Requires a sampler
  /// of this program and begin().
  std::span<const double> sample(const Program& program, const Tape& tape, const Costs& costs, JitterSampler& sampler);

 private:
  template <class Prices>
  class Pass;

  std::vector<double> values_;     // by register, then rank, then lane
  std::vector<double> durations_;  // of one op: by rank, then lane
  std::vector<double> others_;     // the same, of the op at a partner
  std::vector<double> issued_;     // by op, or by rank and op
  std::vector<double> last_end_;   // by lane
};

}  // namespace commfuse
