// SPDX-License-Identifier: Apache-2.0
// The bound for kernels that do their own communication (Flux, TileLink, cuBLASMp): one GEMM kernel per site, whose
// tiles are loaded from, or stored to, other ranks while it runs. No implementation reaches this bound. Slicing costs
// the GEMM nothing: every part takes its share of the whole kernel's time. The kernel's data move directly to their
// destination at the highest rate, without launch, latency or SMs, and sums take no time. 4 ranks, seen from rank r;
// each shard consists of m blocks (sub_slices) that move and are multiplied one by one. Shards are rows, except in a
// gemm_ar, where they are columns of the sums, so that any number of tokens can be cut:
//
//   ag_gemm   compute  |x[r]    :x[r-1]  :x[r-2]  :x[r-3] |
//             kernel   |-> r+1  |-> r+2  |-> r+3  |
//
//   gemm_rs   compute  |p[r+1]  :p[r+2]  :p[r+3]  :p[r]    |
//             kernel    |-> r+1  |-> r+2  |-> r+3  |
//
//   gemm_ar   compute  |p[r+1]  :p[r+2]  :p[r+3]  :p[r]    :p[r+1]  :p[r+2]  :p[r+3]  :p[r]    |       m = 2: the
//             kernel    |-> r+1  |-> r+2  |-> r+3   |-> all |-> r+1  |-> r+2  |-> r+3     |-> all    sum goes to all
//
// With the times C of the kernel and T of the transfers of N-1 shards together, the makespan of ag_gemm and gemm_rs is
// max(C, T + C/(N m)), and C for one rank. In a gemm_ar, block 0 of all shards comes first, then block 1 and so on, so
// that the complete sums of one block move under the next one; those of the last block stay exposed after the GEMM.
// A gemm_ar therefore depends most on m.
#include <fmt/format.h>

#include "model/strategies/partials_to_owners.h"
#include "model/strategies/strategies.h"
#include "model/strategies/strategy_parts.h"

namespace commfuse {

namespace {

constexpr Lane in_kernel{LaneKind::kernel, 0};

Done fused_kernel_ag_gemm(const Stage& stage, const StrategyOptions& options) {
  ProgramBuilder& builder = stage.builder;
  const std::int32_t ranks = stage.ranks;
  const std::int32_t cuts = stage.cuts;
  const BufferId gathered = ranks > 1 ? stage.scratch("gathered", (ranks - 1) * cuts, stage.input) : stage.input;
  struct Part {
    std::int32_t step = 0;
    std::int32_t block = 0;
  };
  const auto multiply = [&](const Part& part, const Region& input, const std::vector<OpId>& arrived) {
    const Index shard = along(builder.mesh(), stage.axis, -part.step) * cuts;
    return builder.gemm({.a = {input},
                         .b = {builder.whole(stage.weight)},
                         .out = {builder.rows_of(stage.output, shard + part.block)},
                         .waits = arrived,
                         .kernel_rows = ranks * cuts});
  };
  OpId last{};
  for (std::int32_t block = 0; block < cuts; ++block) {
    last = multiply({.block = block}, builder.rows_of(stage.input, block), stage.ready);
  }
  for (std::int32_t step = 1; step < ranks; ++step) {
    for (std::int32_t block = 0; block < cuts; ++block) {
      const Region received = builder.rows_of(gathered, (step - 1) * cuts + block);
      const OpId arrived = builder.exchange({.lane = in_kernel,
                                             .axis = stage.axis,
                                             .shift = step,
                                             .send = {builder.rows_of(stage.input, block)},
                                             .receive = {received},
                                             .wire = options.dtype,
                                             .waits = step + block == 1 ? stage.ready : std::vector<OpId>{}});
      last = multiply({.step = step, .block = block}, received, {arrived});
    }
  }
  return {last};
}

Done fused_kernel_gemm_rs(const Stage& stage, const StrategyOptions&) {
  return partials_to_owners(stage, {.transfers = in_kernel, .sum = in_kernel, .one_kernel = true});
}

/// Multiplies all tokens by one block of the weight's columns after another. One rank sums nothing.
Done multiply_by_columns(const Stage& stage) {
  ProgramBuilder& builder = stage.builder;
  OpId computed{};
  for (std::int32_t block = 0; block < stage.cuts; ++block) {
    computed = builder.gemm({.a = {builder.whole(stage.input)},
                             .b = {builder.column_of(stage.weight, block)},
                             .out = {builder.column_of(stage.output, block)},
                             .waits = block == 0 ? stage.ready : std::vector<OpId>{},
                             .kernel_columns = stage.cuts});
  }
  return {computed};
}

/// Passes blocks on in the order in which all ranks complete them: block 0 of every shard, then block 1, and so on. A
/// block is all tokens of some columns. The blocks of partial sums lie one after another, so each is contiguous.
class FusedAllReduce {
 public:
  explicit FusedAllReduce(const Stage& stage)
      : stage_(stage),
        builder_(stage.builder),
        partial_(blocks("partial", stage.ranks * stage.cuts)),
        received_(blocks("received", (stage.ranks - 1) * stage.cuts)) {}

  Done run() {
    for (std::int32_t block = 0; block < stage_.cuts; ++block) {
      for (std::int32_t step = 0; step < stage_.ranks; ++step) {
        multiply(step, block);
      }
      add_up(block);
      pass_on(block);
    }
    return {last_};
  }

 private:
  /// Adds a buffer of `count` blocks.
  [[nodiscard]] BufferId blocks(const std::string& what, std::int32_t count) const {
    const Buffer& sums = builder_.buffer_of(stage_.output);
    return stage_.scratch(what, count, {sums.columns.dimension, 1}, sums.dtype);
  }
  /// Returns, in the output, a block of the shard that is `steps` ahead.
  [[nodiscard]] Region sum_of(std::int32_t steps, std::int32_t block) const {
    return builder_.column_of(stage_.output, stage_.shard(steps) + block);
  }

  /// Computes this rank's part of a block for the rank `step` + 1 ahead, and sends it there. The own shard comes last
  /// and is not sent.
  void multiply(std::int32_t step, std::int32_t block) {
    const Region part = builder_.rows_of(partial_, step * stage_.cuts + block);
    computed_ = builder_.gemm({.a = {builder_.whole(stage_.input)},
                               .b = {builder_.column_of(stage_.weight, stage_.shard(step + 1) + block)},
                               .out = {part},
                               .waits = step + block == 0 ? stage_.ready : std::vector<OpId>{},
                               .kernel_columns = stage_.ranks * stage_.cuts});
    if (step + 1 < stage_.ranks) {
      builder_.exchange({.lane = in_kernel,
                         .axis = stage_.axis,
                         .shift = step + 1,
                         .send = {part},
                         .receive = {builder_.rows_of(received_, step * stage_.cuts + block)},
                         .wire = builder_.buffer_of(stage_.output).dtype,
                         .waits = {computed_}});
    }
  }

  void add_up(std::int32_t block) {
    std::vector<Operand> parts{{builder_.rows_of(partial_, (stage_.ranks - 1) * stage_.cuts + block)}};
    for (std::int32_t step = 0; step + 1 < stage_.ranks; ++step) {
      parts.push_back({builder_.rows_of(received_, step * stage_.cuts + block)});
    }
    builder_.elementwise({.lane = in_kernel,
                          .function = Function::add,
                          .inputs = parts,
                          .out = {sum_of(0, block)},
                          .waits = {computed_}});
  }

  void pass_on(std::int32_t block) {
    for (std::int32_t step = 1; step < stage_.ranks; ++step) {
      last_ = builder_.exchange({.lane = in_kernel,
                                 .axis = stage_.axis,
                                 .shift = step,
                                 .send = {sum_of(0, block)},
                                 .receive = {sum_of(-step, block)},
                                 .wire = builder_.buffer_of(stage_.output).dtype});
    }
  }

  const Stage& stage_;
  ProgramBuilder& builder_;
  BufferId partial_;
  BufferId received_;
  OpId computed_{};
  OpId last_{};
};

Done fused_kernel_gemm_ar(const Stage& stage, const StrategyOptions&) {
  return stage.ranks == 1 ? multiply_by_columns(stage) : FusedAllReduce(stage).run();
}

std::int32_t sub_slices(const StrategyOptions& options) { return options.sub_slices; }
OptionSet sub_slices_only(SiteKind, const StrategyOptions&) { return {Option::sub_slices}; }

std::vector<StrategyOptions> sub_slice_counts(const StrategyOptions& base, OptionSet fixed) {
  return expanded({base}, fixed, Option::sub_slices, &StrategyOptions::sub_slices, {8, 4, 2, 1});
}
std::vector<StrategyOptions> all_sub_slice_counts(const StrategyOptions& base) { return sub_slice_counts(base, {}); }

std::string bound(const StrategyOptions& options) { return fmt::format("bound, m={}", options.sub_slices); }

}  // namespace

constexpr Strategy fused_kernel_strategy{
    .name = "fused_kernel",
    .summary = "bound: one kernel per site moves its own tiles; no implementation reaches it",
    .exposed = "max(0, total transfer time - kernel)",
    .source = "the goal of Flux, TileLink and cuBLASMp",
    .bound = true,
    .uses = {Option::sub_slices},
    .cuts = sub_slices,
    .gemm_ar_cuts_columns = true,
    .ag_gemm = fused_kernel_ag_gemm,
    .gemm_rs = fused_kernel_gemm_rs,
    .gemm_ar = fused_kernel_gemm_ar,
    .relevant = sub_slices_only,
    .tried = sub_slice_counts,
    .proved = all_sub_slice_counts,
    .describe = bound,
};

}  // namespace commfuse
