// SPDX-License-Identifier: Apache-2.0
// Tests the price of attention by query slice.
#include "model/cost/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/cost/gemm.h"
#include "model/cost/memory_bound.h"
#include "model/cost/price.h"
#include "model/strategies/scope.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::h100_machine;
using test::shipped_llama_70b;

/// Returns the query rows of slice j of `slices` equal slices.
QueryRows slice_of(const AttentionSize& size, std::int64_t j, std::int64_t slices) {
  const auto n = static_cast<double>(slices);
  const double share = size.causal ? (2.0 * static_cast<double>(j) + 1.0) / (2.0 * n * n) : 1.0 / n;
  return {.queries = size.seq / slices, .keys = size.causal ? size.seq / slices * (j + 1) : size.seq, .share = share};
}

TEST(AttentionTime, IsTheSameForASliceOfAllRowsAndTheWhole) {
  const Machine machine = h100_machine();
  for (const bool causal : {true, false}) {
    for (const std::int64_t seq : {128, 1000, 4096, 131072}) {
      const AttentionSize size{.batch = 3, .seq = seq, .heads = 8, .kv_heads = 2, .causal = causal};
      EXPECT_EQ(attention_time(machine.accelerator, size, slice_of(size, 0, 1), 100),
                attention_time(machine.accelerator, size, 100));
    }
  }
}

/// Returns ten SMs at 1 TFLOP/s each and 1 TB/s of HBM; everything else is free unless a test sets it.
Accelerator ten_attention_sms() {
  Accelerator accelerator;
  accelerator.name = "ten SMs";
  accelerator.sms = 10;
  accelerator.hbm_bandwidth.value = BytesPerSecond{1e12};
  accelerator.sm_bandwidth.value = BytesPerSecond{1e12};
  accelerator.matrix_units[index_of(DType::bf16)] = MatrixUnit{.dense_peak = {FlopsPerSecond{10e12}}};
  AttentionParameters& attention = accelerator.attention;
  attention.overhead.value = Duration{0};
  attention.loop_efficiency.value = 1.0;
  attention.masked_width.value = 0.0;
  attention.tile_overhead.value = Duration{0};
  attention.query_cost.value = 0.0;
  attention.key_cost.value = 0.0;
  attention.imbalance.value = 0.0;
  return accelerator;
}

TEST(AttentionTime, FollowsFromItsScores) {
  Accelerator accelerator = ten_attention_sms();
  // 20 heads x 1024^2 scores x 4 x 128 FLOP / 10 TFLOP/s = 1073.741824 us, half of it under a causal mask.
  AttentionSize size{.seq = 1024, .heads = 20, .kv_heads = 20, .causal = false};
  EXPECT_EQ(attention_time(accelerator, size, 10), Duration{1'073'741'824});
  EXPECT_EQ(attention_time(accelerator, size, 5), Duration{2'147'483'648});
  size.causal = true;
  EXPECT_EQ(attention_time(accelerator, size, 10), Duration{536'870'912});
  // A masked width of 128 keys behind the diagonal adds 64 per query to the 512 that a query sees on average.
  accelerator.attention.masked_width.value = 128.0;
  EXPECT_EQ(attention_time(accelerator, size, 10), Duration{603'979'776});
  // One exponential per score at 0.01 T/s: 20 x 1024 x 576 of them take 1179.648 us, the matrix products 603.98 us.
  accelerator.attention.exponentials.value = FlopsPerSecond{0.01e12};
  EXPECT_NEAR(to_microseconds(attention_time(accelerator, size, 10)),
              std::pow(std::pow(603.979776, 4) + std::pow(1179.648, 4), 0.25), 1e-6);
}

TEST(AttentionTime, HasTheLongestTileAtItsEnd) {
  Accelerator accelerator = ten_attention_sms();
  // One head is eight tiles, fewer than the ten SMs, so the time is that of one tile of 128 queries x 1024 keys:
  // 128 x 1024 x 512 FLOP / 1 TFLOP/s = 67.108864 us.
  EXPECT_EQ(attention_time(accelerator, {.seq = 1024, .heads = 1, .causal = false}, 10), Duration{67'108'864});
  accelerator.attention.imbalance.value = 0.5;
  EXPECT_EQ(attention_time(accelerator, {.seq = 1024, .heads = 20, .causal = false}, 10),
            Duration{1'073'741'824 + 33'554'432});
  // 160 tiles on ten SMs: sixteen waves of 2 us.
  accelerator.attention.imbalance.value = 0.0;
  accelerator.attention.tile_overhead.value = Duration{2'000'000};
  EXPECT_EQ(attention_time(accelerator, {.seq = 1024, .heads = 20, .causal = false}, 10),
            Duration{1'073'741'824 + 32'000'000});
}

TEST(AttentionTime, ATileAloneOnAnSmHasItsOwnTime) {
  Accelerator accelerator = ten_attention_sms();
  accelerator.attention.lone_tile.value = 1.5;
  // One head: 1.5 x 67.108864 us. Twenty heads keep all SMs busy for longer than a tile takes.
  EXPECT_EQ(attention_time(accelerator, {.seq = 1024, .heads = 1, .causal = false}, 10), Duration{100'663'296});
  EXPECT_EQ(attention_time(accelerator, {.seq = 1024, .heads = 20, .causal = false}, 10), Duration{1'073'741'824});
}

TEST(AttentionTime, NarrowHeadsHaveTheirOwnOverheads) {
  Accelerator accelerator = ten_attention_sms();
  AttentionParameters& attention = accelerator.attention;
  attention.overhead.value = Duration{10'000'000};
  attention.tile_overhead.value = Duration{2'000'000};
  AttentionSize size{.seq = 1024, .heads = 20, .kv_heads = 20, .head_dim = 64, .causal = false};
  // Half of 1073.741824 us for the matrix products, 10 us of overhead and sixteen waves of 2 us.
  EXPECT_EQ(attention_time(accelerator, size, 10), Duration{536'870'912 + 10'000'000 + 32'000'000});
  attention.narrow_overhead.value = 1.5;
  EXPECT_EQ(attention_time(accelerator, size, 10), Duration{536'870'912 + 15'000'000 + 48'000'000});
  size.head_dim = 128;
  EXPECT_EQ(attention_time(accelerator, size, 10), Duration{1'073'741'824 + 10'000'000 + 32'000'000});
}

TEST(AttentionTime, PacksHeadsThatShareKeysWhereTheKernelDoes) {
  Accelerator accelerator = ten_attention_sms();
  AttentionParameters& attention = accelerator.attention;
  attention.tile_overhead.value = Duration{2'000'000};
  // One query of 32 heads in each of 5 sequences makes 160 tiles: 16 waves of 2 us. A tile of 128 rows takes 128 x 512
  // FLOP / 1 TFLOP/s, longer than all scores on ten SMs.
  AttentionSize size{.batch = 5, .seq = 1, .heads = 32, .kv_heads = 2, .causal = false};
  EXPECT_EQ(attention_time(accelerator, size, 10), Duration{32'000'000 + 512 * 128});
  // Packed, the 16 heads of a key head are one tile: 10 tiles, one wave. A tile of 128 rows still takes 0.065536 us.
  attention.split_cost.value = 1.5;
  EXPECT_EQ(attention_time(accelerator, size, 10), Duration{2'000'000 + 65'536});
  // 15 tiles are one and a half waves, because blocks take the next tile as soon as they are free.
  size.batch = 15;
  size.kv_heads = 1;
  attention.lone_tile.value = 0.0;
  EXPECT_EQ(attention_time(accelerator, size, 10), Duration{3'000'000 + 15 * 32 * 512 / 10});
}

TEST(AttentionTime, SplitsTheKeysOfFewTilesWhereTheKernelDoes) {
  Accelerator accelerator = ten_attention_sms();
  accelerator.attention.split_cost.value = 1.5;
  // One head of 896 queries: 7 tiles, fewer than 0.8 x 10, so all scores cost 1.5 times the usual 896^2 x 512 / 10 ps.
  AttentionSize size{.seq = 896, .heads = 1, .causal = false};
  EXPECT_EQ(attention_time(accelerator, size, 10), from_seconds(1.5 * 896 * 896 * 51.2e-12));
  // More sequences do not change this rule, although their tiles fill the SMs.
  size.batch = 10;
  EXPECT_EQ(attention_time(accelerator, size, 10), from_seconds(15 * 896 * 896 * 51.2e-12));
  // Eight tiles are not split. Four tiles of 512 keys are not split either, and take as long as one: 128 x 512 x 512
  // ps.
  EXPECT_EQ(attention_time(accelerator, {.seq = 1024, .heads = 1, .causal = false}, 10), Duration{67'108'864});
  EXPECT_EQ(attention_time(accelerator, {.seq = 512, .heads = 1, .causal = false}, 10), Duration{33'554'432});
  accelerator.attention.unsplit_keys.value = 256.0;
  EXPECT_EQ(attention_time(accelerator, {.seq = 512, .heads = 1, .causal = false}, 10), Duration{20'132'659});
}

TEST(AttentionTime, HidesQueriesBehindPackedTiles) {
  Accelerator accelerator = ten_attention_sms();
  accelerator.attention.query_cost.value = 32.0;
  // The scores of ten heads of 1024 queries take 536.870912 us. Queries and output are 2 x 10 x 1024 x 128 x 2 bytes,
  // at 32 ps per byte.
  const AttentionSize size{.seq = 1024, .heads = 10, .kv_heads = 10, .causal = false};
  EXPECT_EQ(attention_time(accelerator, size, 10), Duration{536'870'912 + 167'772'160});
  accelerator.attention.split_cost.value = 1.5;
  EXPECT_NEAR(to_microseconds(attention_time(accelerator, size, 10)),
              std::pow(std::pow(536.870912, 4) + std::pow(167.77216, 4), 0.25), 1e-6);
}

TEST(AttentionTime, SharedKeysAreReadOnce) {
  Accelerator accelerator = ten_attention_sms();
  accelerator.matrix_units[index_of(DType::bf16)]->dense_peak.value = FlopsPerSecond{1e24};
  accelerator.attention.query_cost.value = 1.0;
  accelerator.attention.key_cost.value = 3.0;
  // Queries and output are 2 x 8 x 1024 x 128 x 2 bytes, at one picosecond per byte. Keys and values are
  // 2 x 2 x 1024 x 128 x 2 bytes, at three times that price.
  EXPECT_EQ(attention_time(accelerator, {.seq = 1024, .heads = 8, .kv_heads = 2}, 10),
            Duration{4'194'304 + 3 * 1'048'576});
}

TEST(UnfusedAttentionTime, WritesTheScoresOut) {
  const Machine machine = h100_machine();
  const AttentionSize size{.batch = 2, .seq = 4096, .heads = 8, .kv_heads = 8, .causal = false};
  const Duration scores = estimate_gemm(machine.accelerator, {.m = 65536, .n = 4096, .k = 128}, 132).time;
  const Duration output = estimate_gemm(machine.accelerator, {.m = 65536, .n = 128, .k = 4096}, 132).time;
  const Duration softmax = memory_bound_time(machine.accelerator, Bytes{std::int64_t{8} * 65536 * 4096}, 132);
  EXPECT_EQ(unfused_attention_time(machine.accelerator, size, 132), scores + softmax + output);
  EXPECT_GT(unfused_attention_time(machine.accelerator, size, 132), attention_time(machine.accelerator, size, 132));
}

TEST(Windows, HaveASecondEdgeForQueriesThatMissEarlierKeys) {
  const AttentionWindow window_of_128{.keys = 128};
  EXPECT_EQ(queries_beyond(window_of_128, 0.0, 4096.0), 3968.0);
  EXPECT_EQ(queries_beyond(window_of_128, 0.0, 100.0), 0.0);
  EXPECT_EQ(queries_beyond(window_of_128, 64.0, 192.0), 64.0);
  EXPECT_EQ(queries_beyond(window_of_128, 512.0, 1024.0), 512.0);
  EXPECT_EQ(queries_beyond(AttentionWindow{}, 0.0, 4096.0), 0.0);
  EXPECT_EQ(queries_beyond(AttentionWindow{.keys = 128, .chunked = true}, 0.0, 4096.0), 0.0);
}

// With 16 heads of 4096 queries and a window of 128 keys, all tiles take 16 x (scores + (4096 + 3968) x 64 / 2) x 512
// FLOP / 10 TFLOP/s. Eight slices of the queries have the same total of scores and edges.
TEST(AttentionTime, AddsUpOverWindowedSlices) {
  Accelerator accelerator = ten_attention_sms();
  accelerator.attention.masked_width.value = 64.0;
  const AttentionWindow window{.keys = 128};
  const AttentionSize size{.batch = 1, .seq = 4096, .heads = 16, .kv_heads = 16, .head_dim = 128, .causal = true};
  const auto rows = [&](double first, double last) {
    const double keys = last - std::max(0.0, first - 128.0);
    return QueryRows{.queries = static_cast<std::int64_t>(last - first),
                     .keys = static_cast<std::int64_t>(keys),
                     .share = scores_in_window(window, first, last) / (4096.0 * 4096.0),
                     .window = window,
                     .beyond = queries_beyond(window, first, last)};
  };
  // A head has 4096 x 128 - 128 x 64 = 516,096 scores, and the edges count as 258,048 more.
  EXPECT_EQ(attention_time(accelerator, size, rows(0.0, 4096.0), 10), Duration{634'178'765});
  Duration slices{0};
  for (int j = 0; j < 8; ++j) {
    slices += attention_time(accelerator, size, rows(512.0 * j, 512.0 * (j + 1)), 10);
  }
  EXPECT_NEAR(static_cast<double>(slices.count()), 634'178'765.0, 8.0);
}

TEST(UnfusedAttentionTime, CoversAllKeysThatAnyQuerySees) {
  const Machine machine = h100_machine();
  const AttentionSize size{.batch = 2, .seq = 4096, .heads = 8, .kv_heads = 8};
  const QueryRows second{.queries = 1024, .keys = 2048, .share = 3.0 / 32.0};
  const Duration scores = estimate_gemm(machine.accelerator, {.m = 16384, .n = 2048, .k = 128}, 132).time;
  const Duration output = estimate_gemm(machine.accelerator, {.m = 16384, .n = 128, .k = 2048}, 132).time;
  const Duration softmax = memory_bound_time(machine.accelerator, Bytes{std::int64_t{8} * 16384 * 2048}, 132);
  EXPECT_EQ(unfused_attention_time(machine.accelerator, size, second, 132), scores + softmax + output);
  for (const AttentionKernel kernel : {AttentionKernel::fused, AttentionKernel::unfused}) {
    EXPECT_EQ(attention_time(machine.accelerator, kernel, size, second, 132),
              kernel == AttentionKernel::fused ? attention_time(machine.accelerator, size, second, 132)
                                               : unfused_attention_time(machine.accelerator, size, second, 132));
  }
}

void expect_slices_no_cheaper(const Machine& machine) {
  for (const bool causal : {true, false}) {
    for (const std::int64_t seq : {512, 4096, 32768, 262144}) {
      for (const std::int64_t slices : {2, 4, 8, 16}) {
        const AttentionSize size{.batch = 2, .seq = seq, .heads = 8, .kv_heads = 1, .causal = causal};
        Duration sum{};
        for (std::int64_t j = 0; j < slices; ++j) {
          const Duration slice =
              attention_time(machine.accelerator, size, slice_of(size, j, slices), machine.accelerator.sms);
          EXPECT_GT(slice, Duration{});
          sum += slice;
        }
        EXPECT_GE(sum, attention_time(machine.accelerator, size, machine.accelerator.sms))
            << machine.name << ": " << seq << " in " << slices;
      }
    }
  }
}

TEST(AttentionTime, AddsUpToAtLeastTheWholeOverAllSlices) {
  expect_slices_no_cheaper(h100_machine());
  expect_slices_no_cheaper(load_machine(COMMFUSE_SOURCE_DIR "/configs/hardware/a100-sxm-80.yaml"));
}

/// Prices the attention block of Llama-3.1-70B for one cut of attention.
struct PricedAttention {
  PricedAttention(std::int32_t ranks, AttentionCut cut, const Machine& machine, const PriceOptions& options = {},
                  std::int64_t seq = 65536)
      : program(generate(operation_of(Scope::attention, true), ranks, commfuse_strategy,
                         {.form = Form::direct, .attention = cut})),
        sizes(bind_sizes(program, quantities_of(shipped_llama_70b(), {.batch = 2, .seq = seq}))),
        costs(price(program, meetings_of(program, Order(program, 0)), sizes, machine, options)) {}

  [[nodiscard]] std::vector<std::size_t> cores() const {
    std::vector<std::size_t> ops;
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      if (program.ops[op].kind == OpKind::attention) {
        ops.push_back(op);
      }
    }
    return ops;
  }

  Program program;
  Sizes sizes;
  Costs costs;
};

TEST(PriceByQuery, PricesTheSliceAtThePositionOfTheRank) {
  const Machine machine = h100_machine();
  const PricedAttention priced(4, AttentionCut::by_query, machine, {.interference = Interference::none});
  const AttentionSize size{.batch = 2, .seq = 65536, .heads = 16, .kv_heads = 2};
  const std::vector<std::size_t> cores = priced.cores();
  ASSERT_EQ(cores.size(), 4U);
  for (Rank rank = 0; rank < 4; ++rank) {
    for (std::int32_t step = 0; step < 4; ++step) {
      const std::int32_t slice = (rank + 1 + step) % 4;
      EXPECT_EQ(priced.costs.of(rank, cores[static_cast<std::size_t>(step)]),
                attention_time(machine.accelerator, size, slice_of(size, slice, 4), 132))
          << rank << " " << step;
    }
  }
}

TEST(PriceByQuery, UnfusedPricesTheSliceWithItsScoresWrittenOut) {
  const Machine machine = h100_machine();
  const PriceOptions options{.interference = Interference::none, .attention = AttentionKernel::unfused};
  const PricedAttention priced(4, AttentionCut::by_query, machine, options);
  const AttentionSize size{.batch = 2, .seq = 65536, .heads = 16, .kv_heads = 2};
  const std::vector<std::size_t> cores = priced.cores();
  ASSERT_EQ(cores.size(), 4U);
  for (std::int32_t step = 0; step < 4; ++step) {
    EXPECT_EQ(priced.costs.of(0, cores[static_cast<std::size_t>(step)]),
              unfused_attention_time(machine.accelerator, size, slice_of(size, (1 + step) % 4, 4), 132));
  }
  const PricedAttention fused(4, AttentionCut::by_query, machine, {.interference = Interference::none});
  EXPECT_EQ(priced.costs.compute - fused.costs.compute,
            unfused_attention_time(machine.accelerator, size, 132) - attention_time(machine.accelerator, size, 132));
}

TEST(PriceByQuery, ZigZagCostsNearlyTheSameOnAllRanks) {
  // All ranks have the same number of scores, but their later halves see different numbers of keys, and their longest
  // tiles differ.
  const PricedAttention priced(4, AttentionCut::zigzag, h100_machine());
  for (const std::size_t core : priced.cores()) {
    for (Rank rank = 0; rank < 4; ++rank) {
      EXPECT_NEAR(to_seconds(priced.costs.undisturbed_of(rank, core)) /
                      to_seconds(priced.costs.undisturbed_of(0, priced.cores().front())),
                  1.0, 0.02);
    }
  }
}

TEST(PriceByQuery, GivesEveryRankTheSameTotalWork) {
  const Machine machine = h100_machine();
  const PricedAttention uncut(8, AttentionCut::whole, machine);
  EXPECT_TRUE(uncut.costs.by_rank.empty());
  EXPECT_TRUE(uncut.costs.undisturbed_by_rank.empty());
  for (const AttentionCut cut : {AttentionCut::by_query, AttentionCut::zigzag}) {
    const PricedAttention priced(8, cut, machine);
    EXPECT_EQ(priced.costs.compute, uncut.costs.compute);
    for (Rank rank = 0; rank < 8; ++rank) {
      EXPECT_EQ(essential_time(priced.program, priced.costs, rank), essential_time(priced.program, priced.costs, 0));
      EXPECT_GT(essential_time(priced.program, priced.costs, rank), uncut.costs.compute);
    }
  }
}

TEST(PriceByQuery, LosesSmsToExchangesOnEveryRank) {
  const PricedAttention disturbed(4, AttentionCut::by_query, h100_machine());
  const PricedAttention without_interference(4, AttentionCut::by_query, h100_machine(),
                                             {.interference = Interference::none});
  EXPECT_EQ(without_interference.costs.by_rank, without_interference.costs.undisturbed_by_rank);
  const std::size_t second = disturbed.cores()[1];  // This slice runs during the first transfer.
  for (Rank rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(disturbed.costs.undisturbed_of(rank, second), without_interference.costs.of(rank, second));
    EXPECT_GT(disturbed.costs.of(rank, second), without_interference.costs.of(rank, second));
  }
}

TEST(PriceByQuery, PaysAGapPerGraphNodeOnEveryRank) {
  Machine machine = h100_machine();
  machine.accelerator.graph_node_gap.value = std::chrono::microseconds(1);
  const PricedAttention stream(4, AttentionCut::by_query, machine);
  const PricedAttention graph(4, AttentionCut::by_query, machine, {.launch = Launch::graph});
  const Duration gap = machine.accelerator.graph_node_gap.value;
  for (Rank rank = 0; rank < 4; ++rank) {
    for (const std::size_t core : stream.cores()) {
      EXPECT_EQ(graph.costs.of(rank, core), stream.costs.of(rank, core) + gap);
      EXPECT_EQ(graph.costs.undisturbed_of(rank, core), stream.costs.undisturbed_of(rank, core) + gap);
    }
  }
}

TEST(PriceByQuery, AcrossNodesHasPairsAndPositions) {
  const Machine cluster = load_machine(COMMFUSE_SOURCE_DIR "/configs/clusters/dgx-h100-x2.yaml");
  Transformer model = shipped_llama_70b();
  model.kv_heads = 16;
  const Program program = generate(operation_of(Scope::attention, true), 16, commfuse_strategy,
                                   {.form = Form::direct, .attention = AttentionCut::by_query});
  const Sizes sizes = bind_sizes(program, quantities_of(model, {.seq = 65536}));
  const Costs costs = price(program, meetings_of(program, Order(program, 0)), sizes, cluster, {});
  ASSERT_EQ(costs.by_rank.size(), 16 * program.ops.size());
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const OpKind kind = program.ops[op].kind;
    const bool differs = costs.of(7, op) != costs.of(0, op);
    EXPECT_TRUE(kind == OpKind::attention ? differs : kind == OpKind::exchange || !differs) << op;
  }
}

TEST(PriceByQuery, NeedsWholePositionsInASlice) {
  try {
    const PricedAttention priced(8, AttentionCut::by_query, h100_machine(), {}, 4100);
    FAIL() << "4100 positions were cut into 8";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "a sequence of 4100 cannot be cut into 8 equal slices of queries, as commfuse (direct, by query) "
                 "attention requires; choose a multiple of 8, such as 4096 or 4104");
  }
  EXPECT_NO_THROW(PricedAttention(8, AttentionCut::whole, h100_machine(), {}, 4100));
}

}  // namespace
}  // namespace commfuse
