// SPDX-License-Identifier: Apache-2.0
// The exchanges of FuseAG and FuseRS, ring and direct, apart from products: for schedules in which others go with them
// than one product a step.
#pragma once

#include <cstdint>
#include <vector>

#include "model/strategies/options.h"
#include "model/strategies/stage.h"

namespace commfuse {

/// Step `step` of ranks-1 in which a rank gathers what all ranks hold. places[i] is where the shard of the rank i
/// before lies here, once step i-1 has ended; places[0] is the own one, there from the start or after `ready`. In the
/// ring form what came last is passed on, in the direct form the own shard goes to the rank step+1 after. Requires the
/// steps in order, on one lane.
OpId gather_step(const Stage& stage, const StrategyOptions& options, std::int32_t step,
                 const std::vector<Operand>& places, const std::vector<OpId>& ready);

/// Copies the own shard into its place among all shards, beside the products.
OpId copy_own_shard(const Stage& stage, BufferId own, BufferId all, const std::vector<OpId>& waits);

/// A reduce-scatter in ranks-1 exchanges. In every step the caller makes the partial product of one shard, the own one
/// last. In the ring form it is added to the sum that comes from the rank before and goes on to the next; in the direct
/// form it goes to the rank that the shard is of, which adds up all of them at the end.
class ScatterSteps {
 public:
  /// How many partial products can wait to be sent or added: two, so that a third must wait for them, or all.
  enum class Room : std::uint8_t { two, all };
  /// `output` becomes the own shard; what travels has its dtype.
  ScatterSteps(const Stage& stage, const StrategyOptions& options, BufferId output, Room room);

  /// Which shard's partial product is made in a step: the first of its `scale` block rows.
  [[nodiscard]] Index shard(std::int32_t step, std::int32_t scale = 1) const;
  /// Where it goes.
  [[nodiscard]] Region place(std::int32_t step) const;
  /// The ops that have to end before that is free.
  [[nodiscard]] std::vector<OpId> free(std::int32_t step) const;
  /// Takes over the partial product of a step: adds and sends what can be. Requires the steps in order.
  void take(std::int32_t step, OpId product);
  /// The last addition; the direct form's is on `sum_lane`. Requires all steps taken.
  Done finish(LaneKind sum_lane = LaneKind::compute);

 private:
  [[nodiscard]] Region slot(BufferId buffer, std::int32_t i) const;
  [[nodiscard]] bool ring() const { return options_.form == Form::ring; }
  /// What place() gives in a step whose product is neither the first of a ring nor the last of the direct form.
  [[nodiscard]] Region partial(std::int32_t step) const;
  void add_up(std::int32_t step, const Region& out);

  const Stage& stage_;
  const StrategyOptions& options_;
  BufferId output_;
  Room room_;
  std::int32_t rows_;  // of a shard
  DType dtype_;
  BufferId partial_{};
  BufferId arriving_{};       // ring: running sums, two of them; direct: one slot a sender
  BufferId own_{};            // direct
  std::vector<OpId> made_;    // by step: the product
  std::vector<OpId> added_;   // ring, by step: the running sum with this step's product in it
  std::vector<OpId> passed_;  // by step: the exchange that sends what is ready
};

}  // namespace commfuse
