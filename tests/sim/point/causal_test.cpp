// SPDX-License-Identifier: Apache-2.0
// A causal mask makes query slices unequal: of N slices, slice j = 0..N-1 has (2j+1)/N^2 of the work. In sequence order
// ranks compute different slices in one step and fall out of step; in zig-zag order all slices cost the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/cost/communication.h"
#include "model/program/lower.h"
#include "sim/point/predict.h"
#include "tests/sim/simulated.h"

namespace commfuse::test {
namespace {

using namespace std::chrono_literals;

StrategyOptions direct(AttentionCut cut) { return {.form = Form::direct, .attention = cut}; }

/// The attention block in direct form: only transfers and cores take time, a core 10 us for every 1/N^2 of the work.
struct Causal {
  std::shared_ptr<const Program> program;
  Costs costs;
  Recorder recorder{Recorder::Keep::timeline};

  Causal(std::int32_t ranks, AttentionCut cut, Duration transfer)
      : program(std::make_shared<const Program>(
            generate(operation_of(Scope::attention, true), ranks, commfuse_strategy, direct(cut)))),
        costs(costs_of(*program, {.exchange = transfer})) {
    for (Rank rank = 0; rank < ranks; ++rank) {
      for (std::size_t op = 0; op < program->ops.size(); ++op) {
        costs.by_rank.push_back(program->ops[op].kind == OpKind::attention ? core(rank, program->ops[op])
                                                                           : costs.duration[op]);
      }
    }
    Engine{}.run(plan_of(lower(program)), costs, recorder);
  }

  /// A block of queries at block row j of B sees j whole blocks of keys and half of its own: 2j + 1 half blocks,
  /// of B^2 in total.
  [[nodiscard]] Duration core(Rank rank, const Op& op) const {
    const std::vector<std::int32_t> first = positions_at(*program, op, program->mesh.coordinates(rank));
    const auto queries = program->regions_of(program->inputs_of(op).front());
    std::int64_t halves = 0;
    for (std::size_t i = 0; i < queries.size(); ++i) {
      halves += std::int64_t{queries[i].rows} * (2 * first[i] + queries[i].rows);
    }
    const std::int64_t ranks = program->mesh.ranks();
    const std::int64_t blocks = program->dimensions.front().blocks;
    return Duration{10us} * (halves * ranks * ranks) / (blocks * blocks);
  }

  /// Returns the times of a rank's cores, step by step, in microseconds.
  [[nodiscard]] std::vector<std::int64_t> cores(Rank rank) const {
    std::vector<std::int64_t> times;
    for (const OpSpan& span : recorder.timeline()) {
      if (span.rank == rank && program->ops[position(span.op)].kind == OpKind::attention) {
        times.push_back((span.end - span.start) / Duration{1us});
      }
    }
    return times;
  }
  [[nodiscard]] Duration makespan() const { return recorder.makespan().time_since_epoch(); }
};

TEST(CausalSlices, InSequenceOrderCostByTheirPosition) {
  // Rank r takes slices r+1, r+2, r+3 and r, modulo 4; slices 0 to 3 have 1, 3, 5 and 7 sixteenths of the work.
  const Causal causal(4, AttentionCut::by_query, 1us);
  using Times = std::vector<std::int64_t>;
  EXPECT_EQ(causal.cores(0), (Times{30, 50, 70, 10}));
  EXPECT_EQ(causal.cores(1), (Times{50, 70, 10, 30}));
  EXPECT_EQ(causal.cores(2), (Times{70, 10, 30, 50}));
  EXPECT_EQ(causal.cores(3), (Times{10, 30, 50, 70}));
}

TEST(CausalSlices, InZigZagAllCostTheSame) {
  const Causal causal(4, AttentionCut::zigzag, 1us);
  for (Rank rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(causal.cores(rank), (std::vector<std::int64_t>{40, 40, 40, 40})) << rank;
  }
}

TEST(CausalSlices, MakeTheFasterOfTwoRanksWaitUnlessInZigZag) {
  // x is gathered in 20 us. By query, rank 0 takes slice 1 (30 us) and then slice 0 (10 us), rank 1 in the opposite
  // order: both transfers start at 50 us and end at 70 us. In zig-zag order both ranks finish their first slice at 40
  // us and their last at 60 us, and have sent by then.
  EXPECT_EQ(Causal(2, AttentionCut::by_query, 20us).makespan(), Duration{70us});
  EXPECT_EQ(Causal(2, AttentionCut::zigzag, 20us).makespan(), Duration{60us});
}

TEST(CausalSlices, AreNeverLaterInZigZag) {
  for (std::int32_t ranks = 1; ranks <= 9; ++ranks) {
    for (const Duration transfer : {Duration{}, Duration{1us}, Duration{15us}, Duration{40us}, Duration{100us}}) {
      EXPECT_LE(Causal(ranks, AttentionCut::zigzag, transfer).makespan(),
                Causal(ranks, AttentionCut::by_query, transfer).makespan())
          << ranks << " ranks, " << transfer.count() << " ps";
    }
  }
}

// --- on a machine ----------------------------------------------------------------------------------------------------

Point point(Scope scope, std::int32_t ranks, std::int64_t seq) {
  Point point;
  point.model = load_model(COMMFUSE_SOURCE_DIR "/configs/models/llama-3.1-70b.yaml");
  point.machine = load_machine(COMMFUSE_SOURCE_DIR "/configs/hardware/h100-sxm.yaml");
  point.scope = scope;
  point.ranks = ranks;
  point.seq = seq;
  return point;
}

TEST(CausalSlices, ZigZagWinsWhereComputeIsLong) {
  StructureCache structures;
  Predictor predictor(structures);
  const Strategy& commfuse = commfuse_strategy;
  for (const Scope scope : {Scope::attention, Scope::layer}) {
    for (const std::int32_t ranks : {2, 4, 8}) {
      const Point long_point = point(scope, ranks, 65536);
      const Prediction by_query = predictor.predict(long_point, commfuse, direct(AttentionCut::by_query));
      const Prediction zigzag = predictor.predict(long_point, commfuse, direct(AttentionCut::zigzag));
      EXPECT_LT(zigzag.analysis.critical.makespan, by_query.analysis.critical.makespan) << ranks;
      EXPECT_LE(zigzag.analysis.max_exposed, by_query.analysis.max_exposed) << ranks;
    }
  }
}

TEST(CausalSlices, InUlyssesMatchSerialComputeInLessTime) {
  StructureCache structures;
  Predictor predictor(structures);
  const Strategy& commfuse = commfuse_strategy;
  const Prediction fused = predictor.predict(point(Scope::ulysses, 8, 65536), commfuse, {});
  const Prediction serial = predictor.predict(point(Scope::ulysses, 8, 65536), serial_strategy, {});
  EXPECT_LT(fused.analysis.critical.makespan, serial.analysis.critical.makespan);
  EXPECT_EQ(fused.analysis.critical.compute, serial.analysis.critical.compute);
}

TEST(Ulysses, NeedsHeadsAndKvHeadsThatItsRanksDivide) {
  try {
    require_possible(point(Scope::ulysses, 3, 4096));
    FAIL() << "64 heads were split over 3 ranks";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "8 kv heads of llama-3.1-70b cannot be split over 3 ranks; choose ranks that divide heads (64) and kv "
                 "heads (8): 1, 2, 4, 8");
  }
}

TEST(Ulysses, MovesOneBlockOfHeadsAndTokensPerStep) {
  // 64K tokens, 10240 columns of q, k and v in bf16, eight ranks: a step moves 1/64 of them, and 1/64 of 8192 columns.
  StructureCache structures;
  Predictor predictor(structures);
  const Point long_point = point(Scope::ulysses, 8, 65536);
  const Prediction fused = predictor.predict(long_point, commfuse_strategy, {});
  const Program& program = fused.structure->program();
  const Sizes sizes = bind_sizes(program, quantities_of(long_point.model, long_point.load()));
  const Costs costs = price(program, fused.structure->meetings, sizes, long_point.machine, long_point.price);
  std::vector<Duration> exchanges;
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    if (program.ops[op].kind == OpKind::exchange) {
      exchanges.push_back(costs.of(0, op));
    }
  }
  std::vector<Duration> expected(7, p2p_time(long_point.machine.link, Bytes{65536LL * 10240 * 2 / 64}));
  expected.resize(14, p2p_time(long_point.machine.link, Bytes{65536LL * 8192 * 2 / 64}));
  EXPECT_EQ(exchanges, expected);
}

}  // namespace
}  // namespace commfuse::test
