// SPDX-License-Identifier: Apache-2.0
// FuseRS in nested rings, for nodes joined by a slow network: FuseAG's schedule (fuse_ag_nested.cpp) run backwards. A
// round computes the shards of one node; the rank's own node comes last. The inner ring adds up this node's
// contributions, then the outer ring carries the sum to the next node, where it is added to that node's sum at the end
// of a round. The sum of a shard enters each node on its route once. The diagram shows rank t of node n, with 2
// nodes of 3 ranks; n-1.t is the shard of rank t of node n-1.
//
//            round 0                     round 1
//   compute  n-1.t-1  n-1.t-2+  n-1.t+   n.t-1  n.t-2+  n.t++      + adds the inner arrival, ++ also the outer one
//   comm              ->        ->              ->      ->         inner ring
//   comm1                                n-1.t ===========>        outer ring, under all GEMMs of the next round
//
// With O nodes of I ranks, each rank runs N = O I GEMMs, O (I-1) inner and O-1 outer transfers, and O (I-1) adds, O-1
// of which have three terms. Let c be the time of a GEMM, p of an inner and P of an outer transfer, a of an add with
// two terms and b of one with three, on the compute lane. The makespan is N c + (O (I-1) - (O-1)) a + (O-1) b if p <= c
// and P <= I c + (I-2) a.
#include <array>
#include <optional>

#include "model/strategies/strategies.h"

namespace commfuse {

namespace {

class NestedSum {
 public:
  NestedSum(const Stage& stage, const StrategyOptions& options)
      : stage_(stage),
        builder_(stage.builder),
        options_(options),
        inner_(stage.builder.mesh().axes[static_cast<std::size_t>(stage.axis)].extent),
        sum_(stage.scratch("sum", 2, stage.output)),
        partial_(stage.scratch("partial", 2, stage.output)),
        node_sum_(stage.scratch("node_sum", 2, stage.output)) {}

  Done run() {
    for (std::int32_t step = 0; step < stage_.ranks; ++step) {
      const bool starts_round = step % inner_ == 0;
      if (!starts_round) {
        pass_on(step);
      } else if (step > 0) {
        cross(step / inner_);
      }
      multiply(step, starts_round);
      summed_ = starts_round ? product_ : add(step);
    }
    return {summed_};
  }

 private:
  [[nodiscard]] bool on_aux() const { return options_.add_lane == LaneKind::aux; }
  [[nodiscard]] Region slot(BufferId buffer, std::int32_t turn) const { return stage_.rows_of(buffer, turn % 2); }

  void pass_on(std::int32_t step) {
    std::vector<OpId> waits{summed_};
    if (on_aux() && step % inner_ == 1 && step > 1) {
      waits.push_back(last_add_);  // the last add of the previous round may still be reading the slot
    }
    passed_ = builder_.exchange({.axis = stage_.axis,
                                 .send = {slot(sum_, step - 1)},
                                 .receive = {slot(sum_, step)},
                                 .wire = builder_.buffer_of(stage_.output).dtype,
                                 .waits = waits});
  }

  void cross(std::int32_t round) {
    crossed_ = builder_.exchange({.lane = {LaneKind::comm, 1},
                                  .axis = *stage_.outer,
                                  .send = {slot(node_sum_, round - 1)},
                                  .receive = {slot(node_sum_, round)},
                                  .wire = builder_.buffer_of(stage_.output).dtype,
                                  .waits = {last_add_}});
  }

  void multiply(std::int32_t step, bool starts_round) {
    std::vector<OpId> waits = step == 0 ? stage_.ready : std::vector<OpId>{};
    if (on_aux() && starts_round && step > 0) {
      waits = {passed_};  // the transfer that sent from the slot
    } else if (on_aux() && used_[static_cast<std::size_t>(step % 2)]) {
      waits = {*used_[static_cast<std::size_t>(step % 2)]};
    }
    const Index shard = stage_.shard({.inner = -1 - step % inner_, .outer = -1 - step / inner_});
    product_ = stage_.multiply({.a = {stage_.rows_of(stage_.input, shard)},
                                .b = {builder_.whole(stage_.weight)},
                                .out = {starts_round ? slot(sum_, step) : slot(partial_, step)},
                                .waits = waits});
  }

  OpId add(std::int32_t step) {
    const std::int32_t round = step / inner_;
    const bool ends_round = (step + 1) % inner_ == 0;
    std::vector<Operand> inputs{{slot(sum_, step)}, {slot(partial_, step)}};
    std::vector<OpId> waits{passed_};
    if (ends_round && round > 0) {
      inputs.push_back({slot(node_sum_, round)});
      waits.push_back(crossed_);
    }
    if (on_aux()) {
      waits.push_back(product_);
    }
    const bool last = step + 1 == stage_.ranks;
    const Region node_sum = last ? builder_.whole(stage_.output) : slot(node_sum_, round);
    last_add_ = builder_.elementwise({.lane = {options_.add_lane, 0},
                                      .function = Function::add,
                                      .inputs = inputs,
                                      .out = {ends_round ? node_sum : slot(sum_, step)},
                                      .waits = waits});
    used_[static_cast<std::size_t>(step % 2)] = last_add_;
    return last_add_;
  }

  const Stage& stage_;
  ProgramBuilder& builder_;
  const StrategyOptions& options_;
  std::int32_t inner_;  // number of ranks of a node
  BufferId sum_;
  BufferId partial_;
  BufferId node_sum_;
  OpId product_{};
  OpId passed_{};   // the last transfer inside the node
  OpId crossed_{};  // the last transfer across nodes
  OpId summed_{};   // the op that made the sum that is sent next
  OpId last_add_{};
  std::array<std::optional<OpId>, 2> used_;  // by slot: the last add that read a partial product in it
};

}  // namespace

Done fuse_rs_nested(const Stage& stage, const StrategyOptions& options) { return NestedSum(stage, options).run(); }

}  // namespace commfuse
