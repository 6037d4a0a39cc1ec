// SPDX-License-Identifier: Apache-2.0
// The exchanges of FuseAG and FuseRS, ring and direct, without GEMMs: for schedules that combine these exchanges with
// other GEMMs.
#pragma once

#include <cstdint>
#include <vector>

#include "model/strategies/options.h"
#include "model/strategies/stage.h"

namespace commfuse {

/// Adds step `step` of the ranks-1 steps in which a rank gathers all shards. Once step i-1 has ended, places[i] holds
/// the shard of the i-th rank before this one; places[0] is the rank's own shard, which exists from the start or after
/// `ready`. The ring form forwards the shard that arrived last; the direct form sends the rank's own shard to the rank
/// step+1 ahead. Steps must be added in order, on one lane.
OpId gather_step(const Stage& stage, const StrategyOptions& options, std::int32_t step,
                 const std::vector<Operand>& places, const std::vector<OpId>& ready);

/// Copies the rank's own shard to its place among all shards, concurrently with the GEMMs.
OpId copy_own_shard(const Stage& stage, BufferId own_shard, BufferId all_shards, const std::vector<OpId>& waits);

/// A reduce-scatter in ranks-1 exchanges. In every step the caller computes the partial product of one shard, the
/// rank's own shard last. The ring form adds the product to the sum that arrives from the previous rank and sends the
/// sum to the next rank; the direct form sends the product to the owner of the shard, which adds up all partial
/// products at the end.
class ScatterSteps {
 public:
  /// Number of slots for partial products that wait to be sent or added. With two, a third partial product must wait
  /// until a slot is free.
  enum class Slots : std::uint8_t { two, all };
  /// `output` receives the rank's own shard; transferred data have the dtype of `output`.
  ScatterSteps(const Stage& stage, const StrategyOptions& options, BufferId output, Slots slots);

  /// Returns the index of the shard whose partial product is computed in a step.
  [[nodiscard]] Index shard(std::int32_t step) const;
  /// Returns the buffer rows for that partial product.
  [[nodiscard]] Region place(std::int32_t step) const;
  /// Returns the ops that must end before those rows are free.
  [[nodiscard]] std::vector<OpId> free(std::int32_t step) const;
  /// Accepts the partial product of a step: adds and sends as far as possible. Steps must be taken in order.
  void take(std::int32_t step, OpId gemm);
  /// Appends the last add, which the direct form runs on `sum_lane`. Requires a previous take() of every step.
  Done finish(LaneKind sum_lane = LaneKind::compute);

 private:
  [[nodiscard]] Region slot(BufferId buffer, std::int32_t i) const;
  [[nodiscard]] bool ring() const { return options_.form == Form::ring; }
  /// Returns place() for a step whose GEMM is neither the first of a ring nor the last of the direct form.
  [[nodiscard]] Region partial(std::int32_t step) const;
  void add_up(std::int32_t step, const Region& out);

  const Stage& stage_;
  const StrategyOptions& options_;
  BufferId output_;
  Slots slots_;
  std::int32_t rows_;  // number of rows of a shard
  DType dtype_;
  BufferId partial_{};
  BufferId arriving_{};       // ring: two running sums; direct: one slot per sender
  BufferId own_product_{};    // direct form only
  std::vector<OpId> made_;    // by step: the GEMM
  std::vector<OpId> added_;   // ring, by step: the op that makes the running sum with this step's partial product
  std::vector<OpId> passed_;  // by step: the exchange that sends the partial product (direct) or the sum (ring)
};

}  // namespace commfuse
