// SPDX-License-Identifier: Apache-2.0
// FuseRS, direct form with N buffers (CommFuse Fig 9b): every partial product is sent directly to the rank that owns
// its shard, while the next one is computed; the owner sums its N buffers at the end.
//
//            step 0     step 1       step 2       step 3          (4 ranks, seen from rank r)
//   compute  p[r+1]     p[r+2]       p[r+3]       p[r]   sum
//   comm     idle       p[r+1] ->    p[r+2] ->    p[r+3] ->
//
// There are N GEMMs, N-1 transfers and one sum. With their times c, p and s, the makespan is c + (N-1) max(c, p) + s.
//
// On L lanes transfer i starts when GEMM i and transfer i-L have ended. With m parts per shard there are 1 + (N-1) m
// GEMMs and (N-1) m transfers, and the makespan is max(N c, (N-1) p + c/m) + s. With groups, each GEMM multiplies g
// shards, then one GEMM the remaining shards, and one the rank's own shard.
//
// With sums on arrival, the data that arrived during a GEMM are added after the GEMM, or immediately on a separate
// lane. With 3 or more ranks there are N-2 adds; the last one includes the own product (aux lane; in[i] arrives during
// step i+1):
//
//   aux                            in[0]+in[1]  ...      +in[2]+p[r]
#include <algorithm>

#include "model/strategies/rings.h"
#include "model/strategies/strategies.h"

namespace commfuse {

namespace {

class DirectSum {
 public:
  DirectSum(const Stage& stage, const StrategyOptions& options)
      : stage_(stage),
        builder_(stage.builder),
        options_(options),
        peers_(stage.ranks - 1),
        // One slot for the partial product being computed and one for each lane, rounded up to whole groups, and at
        // least two groups.
        slots_(((std::max(options.lanes, options.group) - 1) / options.group + 2) * options.group),
        partial_(stage.scratch("partial", slots_ * stage.cuts, stage.output)),
        inbox_(stage.scratch("inbox", peers_ * stage.cuts, stage.output)),  // one slot per sender
        own_product_(stage.scratch("own", stage.cuts, stage.output)),
        lanes_(options.lanes) {}

  Done run() {
    for (std::int32_t step = 0; step < peers_; ++step) {
      const bool starts_group = step % options_.group == 0;
      for (std::int32_t part = 0; part < stage_.cuts; ++part) {
        if (starts_group) {
          product_ = multiply(step, std::min(step + options_.group, peers_), part);
        }
        send(step, part);
      }
      if (starts_group && options_.sum == Sum::arrival && step > summed_) {
        add_up(step, {}, stage_.rows_of(inbox_, 0, stage_.cuts));
      }
    }
    product_ = stage_.multiply({.a = {stage_.rows_of(stage_.input, stage_.shard(0), stage_.cuts)},
                                .b = {builder_.whole(stage_.weight)},
                                .out = {builder_.whole(own_product_)}});
    return {add_up(peers_, {builder_.whole(own_product_)}, builder_.whole(stage_.output))};
  }

 private:
  [[nodiscard]] Flight& sent(std::int32_t step, std::int32_t part) {
    return sent_[static_cast<std::size_t>(step) * static_cast<std::size_t>(stage_.cuts) +
                 static_cast<std::size_t>(part)];
  }
  [[nodiscard]] Region slot(std::int32_t step, std::int32_t part) const {
    return stage_.rows_of(partial_, step % slots_ * stage_.cuts + part);
  }

  /// Computes one part of the partial products of steps first to end - 1.
  OpId multiply(std::int32_t first, std::int32_t end, std::int32_t part) {
    Operand input;
    Operand results;
    std::vector<Flight> slot_users;
    for (std::int32_t step = first; step < end; ++step) {
      stack(input, stage_.rows_of(stage_.input, stage_.shard(1 + step) + part));
      stack(results, slot(step, part));
      if (step >= slots_) {
        slot_users.push_back(sent(step - slots_, part));
      }
    }
    const bool is_first = first == 0 && part == 0;
    return stage_.multiply({.a = input,
                            .b = {builder_.whole(stage_.weight)},
                            .out = results,
                            .waits = is_first ? Waits(stage_.ready) : landed(slot_users)});
  }

  void send(std::int32_t step, std::int32_t part) {
    const std::uint16_t lane = lanes_.of(step);
    // The lane's previous transfer may have waited for the same GEMM.
    const bool lane_waited = step - options_.lanes >= step / options_.group * options_.group;
    const OpId exchange = builder_.exchange({.lane = {LaneKind::comm, lane},
                                             .axis = stage_.axis,
                                             .shift = step + 1,
                                             .send = {slot(step, part)},
                                             .receive = {stage_.rows_of(inbox_, step * stage_.cuts + part)},
                                             .wire = builder_.buffer_of(stage_.output).dtype,
                                             .waits = lane_waited ? std::vector<OpId>{} : std::vector{product_}});
    sent_.push_back({exchange, lane});
  }

  /// Adds up the sum so far, which is in the first slot of the inbox, the slots from `summed_` to `end` - 1, and
  /// `own_product`.
  OpId add_up(std::int32_t end, const Operand& own_product, const Region& out) {
    std::vector<Operand> inputs{{stage_.rows_of(inbox_, 0, stage_.cuts)}};
    std::vector<Flight> arrivals;
    for (std::int32_t step = summed_; step < end; ++step) {
      inputs.push_back({stage_.rows_of(inbox_, step * stage_.cuts, stage_.cuts)});
    }
    for (std::int32_t step = summed_ == 1 ? 0 : summed_; step < end; ++step) {
      arrivals.push_back(sent(step, stage_.cuts - 1));
    }
    summed_ = end;
    Waits waits = landed(arrivals);
    const LaneKind lane = options_.sum == Sum::arrival ? options_.add_lane : LaneKind::compute;
    if (!own_product.empty()) {
      inputs.push_back(own_product);
      if (lane != LaneKind::compute) {
        waits.push_back(product_);
      }
    }
    return builder_.elementwise(
        {.lane = {lane, 0}, .function = Function::add, .inputs = inputs, .out = {out}, .waits = waits});
  }

  const Stage& stage_;
  ProgramBuilder& builder_;
  const StrategyOptions& options_;
  std::int32_t peers_;
  std::int32_t slots_;
  BufferId partial_;
  BufferId inbox_;
  BufferId own_product_;
  CommLanes lanes_;
  std::vector<Flight> sent_;  // by step and part
  std::int32_t summed_ = 1;   // number of inbox slots that the sum contains
  OpId product_{};
};

}  // namespace

Done fuse_rs_direct(const Stage& stage, const StrategyOptions& options) {
  return stage.ranks == 1 ? multiply_alone(stage) : DirectSum(stage, options).run();
}

}  // namespace commfuse
