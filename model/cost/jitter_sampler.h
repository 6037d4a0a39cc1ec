// SPDX-License-Identifier: Apache-2.0
// Draws op times for batches of samples: the fast path of Monte Carlo. A sample is one simulated run, with its own
// draws for ranks and kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/cost/costs.h"
#include "model/cost/draw_keys.h"
#include "model/cost/jitter.h"
#include "model/cost/jitter_lanes.h"

namespace commfuse {

/// All inputs to the draws of a program: equal values produce equal draws.
struct JitterDraws {
  std::shared_ptr<const JitterTables> tables;
  std::uint64_t seed = 1;
  std::vector<DrawKey> keys;  ///< by op
};

/// Draws the times. A draw is Philox4x32-10: key = seed, counter = (sample / 4, rank, step, purpose), word = sample mod
/// 4. A word below JitterTables::stalls() is a stall; other words are looked up in a table. Times are doubles that hold
/// whole picoseconds, below 2^52. Each thread needs its own sampler.
class JitterSampler {
 public:
  /// Draws `lanes` samples together, one per lane of the vector loops (not of a program). Requires `lanes` to be a
  /// multiple of four up to 1,024, and ranks >= 1.
  JitterSampler(JitterDraws draws, std::int32_t ranks, std::size_t lanes,
                const JitterLanes& inner = fastest_jitter_lanes());

  /// Moves to samples first .. first + lanes - 1. Requires `first` to be a multiple of four below 2^34.
  void begin(std::uint64_t first);

  /// Writes the times of an op in this batch, by rank, then lane. `nominal` is its price: one for all ranks, or one per
  /// rank. For an exchange it is the duration of the send half, for a collective the rank's own part of it. Requires
  /// begin().
  void sample(std::size_t op, std::span<const double> nominal, double* times);

  [[nodiscard]] std::size_t lanes() const { return lanes_; }

 private:
  /// Consecutive ranks that start at `first`, as many as the buffer of words allows.
  struct RankRun {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  [[nodiscard]] RankRun ranks_from(std::size_t first) const;
  void draw_words(RankRun ranks, const DrawKey& draw);
  void sample_ranks(std::size_t op, RankRun ranks, std::span<const double> nominal, double* times);
  void add_stalls(const DrawKey& key, std::span<const std::uint32_t> words, double nominal, double* times) const;

  JitterDraws draws_;
  std::size_t ranks_;
  std::size_t lanes_;
  JitterLanes inner_;
  std::vector<std::uint32_t> counter_groups_;  // by rank and group of four lanes, and up to seven more
  std::vector<std::uint32_t> counter_ranks_;   // by rank and group of four lanes, and up to seven more
  std::vector<double> rank_factors_;           // by rank and lane
  std::vector<double> ones_;                   // by rank and lane
  std::vector<std::uint32_t> words_;           // words of a run of ranks, by rank and lane
};

/// Returns the costs of one sample, by rank, computed op by op. The times equal those that JitterSampler draws for the
/// sample, to the picosecond. If the costs have no undisturbed durations, the prices of the ops become them, so that
/// `stretch` includes the jitter; issue costs stay unchanged.
Costs jittered(const Program& program, Costs costs, const JitterDraws& draws, std::uint64_t sample);

}  // namespace commfuse
