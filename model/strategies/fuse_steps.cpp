// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/fuse_steps.h"

#include "model/check.h"

namespace commfuse {

OpId gather_step(const Stage& stage, const StrategyOptions& options, std::int32_t step,
                 const std::vector<Operand>& places, const std::vector<OpId>& ready) {
  const bool ring = options.form == Form::ring;
  const auto next = static_cast<std::size_t>(step) + 1;
  // After step 0, a ring forwards what the previous exchange received; the lane keeps the exchanges in order.
  return stage.builder.exchange({.axis = stage.axis,
                                 .shift = ring ? 1 : step + 1,
                                 .send = ring ? places[next - 1] : places.front(),
                                 .receive = places[next],
                                 .wire = options.dtype,
                                 .waits = step == 0 ? ready : std::vector<OpId>{}});
}

OpId copy_own_shard(const Stage& stage, BufferId own_shard, BufferId all_shards, const std::vector<OpId>& waits) {
  ProgramBuilder& builder = stage.builder;
  return builder.elementwise({.lane = {LaneKind::aux, 0},
                              .function = Function::copy,
                              .inputs = {{builder.whole(own_shard)}},
                              .out = {builder.rows_of(all_shards, along(builder.mesh(), stage.axis))},
                              .waits = waits});
}

ScatterSteps::ScatterSteps(const Stage& stage, const StrategyOptions& options, BufferId output, Slots slots)
    : stage_(stage),
      options_(options),
      output_(output),
      slots_(slots),
      rows_(stage.builder.buffer_of(output).rows.blocks),
      dtype_(stage.builder.buffer_of(output).dtype) {
  if (stage.ranks == 1) {
    return;
  }
  const std::int32_t slot_count = slots == Slots::two ? 2 : stage.ranks - 1;
  if (ring()) {
    arriving_ = stage.scratch("sum", 2 * rows_, output);
    partial_ = stage.scratch("partial", slot_count * rows_, output);
  } else {
    partial_ = stage.scratch("partial", slot_count * rows_, output);
    arriving_ = stage.scratch("inbox", (stage.ranks - 1) * rows_, output);
    own_product_ = stage.scratch("own", rows_, output);
  }
}

Index ScatterSteps::shard(std::int32_t step) const {
  return along(stage_.builder.mesh(), stage_.axis, ring() ? -1 - step : 1 + step);
}

Region ScatterSteps::slot(BufferId buffer, std::int32_t i) const {
  return stage_.builder.rows_of(buffer, i * rows_, rows_);
}

Region ScatterSteps::partial(std::int32_t step) const {
  return slot(partial_, slots_ == Slots::two ? step % 2 : ring() ? step - 1 : step);
}

Region ScatterSteps::place(std::int32_t step) const {
  if (stage_.ranks == 1) {
    return stage_.builder.whole(output_);
  }
  if (ring()) {
    return step == 0 ? slot(arriving_, 0) : partial(step);
  }
  return step + 1 == stage_.ranks ? stage_.builder.whole(own_product_) : partial(step);
}

std::vector<OpId> ScatterSteps::free(std::int32_t step) const {
  const bool last_of_direct = !ring() && step + 1 == stage_.ranks;
  if (slots_ == Slots::all || last_of_direct) {
    return {};
  }
  const std::vector<OpId>& users = ring() ? added_ : passed_;
  // On the compute lane, the add of two steps ago precedes this step's GEMM anyway.
  const bool in_use = ring() ? step >= 3 && options_.add_lane == LaneKind::aux : step >= 2;
  return in_use ? std::vector{users[static_cast<std::size_t>(step) - 2]} : std::vector<OpId>{};
}

void ScatterSteps::take(std::int32_t step, OpId gemm) {
  check(step == static_cast<std::int32_t>(made_.size()), "partial products are taken in order");
  made_.push_back(gemm);
  if (step + 1 == stage_.ranks) {
    return;  // finish() adds the last one
  }
  if (!ring()) {
    passed_.push_back(stage_.builder.exchange({.axis = stage_.axis,
                                               .shift = step + 1,
                                               .send = {place(step)},
                                               .receive = {slot(arriving_, step)},
                                               .wire = dtype_,
                                               .waits = {gemm}}));
    return;
  }
  if (step == 0) {
    added_.push_back(gemm);
  } else {
    add_up(step, slot(arriving_, step % 2));
  }
  passed_.push_back(stage_.builder.exchange({.axis = stage_.axis,
                                             .shift = 1,
                                             .send = {slot(arriving_, step % 2)},
                                             .receive = {slot(arriving_, (step + 1) % 2)},
                                             .wire = dtype_,
                                             .waits = {added_.back()}}));
}

void ScatterSteps::add_up(std::int32_t step, const Region& out) {
  const OpId arrival = passed_[static_cast<std::size_t>(step) - 1];
  const bool has_own_lane = options_.add_lane == LaneKind::aux;
  added_.push_back(stage_.builder.elementwise(
      {.lane = {options_.add_lane, 0},
       .function = Function::add,
       .inputs = {{slot(arriving_, step % 2)}, {place(step)}},
       .out = {out},
       .waits = has_own_lane ? std::vector{arrival, made_[static_cast<std::size_t>(step)]} : std::vector{arrival}}));
}

Done ScatterSteps::finish(LaneKind sum_lane) {
  check(static_cast<std::int32_t>(made_.size()) == stage_.ranks, "every shard has its partial product");
  if (stage_.ranks == 1) {
    return {made_.back()};
  }
  if (ring()) {
    add_up(stage_.ranks - 1, stage_.builder.whole(output_));
    return {added_.back()};
  }
  std::vector<Operand> parts;
  for (std::int32_t step = 0; step + 1 < stage_.ranks; ++step) {
    parts.push_back({slot(arriving_, step)});
  }
  parts.push_back({stage_.builder.whole(own_product_)});
  const bool has_own_lane = sum_lane != LaneKind::compute;
  return {stage_.builder.elementwise(
      {.lane = {sum_lane, 0},
       .function = Function::add,
       .inputs = parts,
       .out = {stage_.builder.whole(output_)},
       .waits = has_own_lane ? std::vector{passed_.back(), made_.back()} : std::vector{passed_.back()}})};
}

}  // namespace commfuse
