// SPDX-License-Identifier: Apache-2.0
#include "model/cost/price.h"

#include <gtest/gtest.h>

#include <array>
#include <tuple>
#include <utility>

#include "model/config/catalogue.h"
#include "model/cost/attention.h"
#include "model/cost/communication.h"
#include "model/cost/gemm.h"
#include "model/cost/memory_bound.h"
#include "model/strategies/scope.h"
#include "model/workload/bare_mlp.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::by_formula_alone;
using test::shipped_machine;

/// Returns a machine without waits between the kernels of a stream, so that the price of an op equals the time of its
/// kernel.
Machine gapless_machine(const char* file) {
  Machine gapless = shipped_machine(file);
  gapless.accelerator.stream_gap.value = Duration::zero();
  return gapless;
}

/// Prices one schedule of Llama-3.1-70B with 32K tokens.
struct Priced {
  Priced(Scope scope, std::int32_t ranks, const char* strategy, const Machine& on, const PriceOptions& options = {},
         const StrategyOptions& schedule = {})
      : program(generate(operation_of(scope, true), Mesh{{{"tp", ranks}}}, 0, *find_strategy(strategy), schedule)),
        meetings(meetings_of(program, Order(program, 0))),
        sizes(bind_sizes(program, quantities_of(load_model(COMMFUSE_SOURCE_DIR "/configs/models/llama-3.1-70b.yaml"),
                                                {.seq = 32768}))),
        costs(price(program, meetings, sizes, on, options)) {}

  /// Returns the first op of a kind.
  [[nodiscard]] std::size_t first(OpKind kind) const {
    std::size_t op = 0;
    while (program.ops[op].kind != kind) {
      ++op;
    }
    return op;
  }

  Program program;
  std::vector<Meetings> meetings;
  Sizes sizes;
  Costs costs;
};

TEST(Price, SerialOpsHaveTheMachineToThemselves) {
  const Machine h100 = gapless_machine("hardware/h100-sxm.yaml");
  const Priced priced(Scope::gate_up, 8, "serial", h100);
  const GemmSize gemm{.m = 32768, .n = 2 * 28672 / 8, .k = 8192};
  EXPECT_EQ(priced.costs.duration[1], estimate_gemm(h100.accelerator, gemm, 132).time);
  EXPECT_EQ(priced.costs.compute, priced.costs.duration[1]);
  EXPECT_EQ(priced.costs.duration[0], all_gather_time(h100.link, 8, Bytes{32768LL * 8192 * 2}));
  EXPECT_EQ(priced.costs.issue[0], h100.link.collective.issue_cost.value);
  // The GEMM waits for the other lane: its launch and one event.
  EXPECT_EQ(priced.costs.issue[1], h100.accelerator.launch_cost.value + h100.accelerator.event_cost.value);
}

TEST(Price, PythonPaysForEachOpInAdditionToTheLibrary) {
  const Machine h100 = gapless_machine("hardware/h100-sxm.yaml");
  const Priced stream(Scope::gate_up, 8, "serial", h100);
  const Priced eager(Scope::gate_up, 8, "serial", h100, {.launch = Launch::eager});
  const Accelerator& accelerator = h100.accelerator;
  EXPECT_EQ(accelerator.eager_cost.value, std::chrono::microseconds(14));
  // The last of eight hosts begins 0.65 x 2.847 x 14 us after the first.
  EXPECT_EQ(eager.costs.issue[0],
            2 * accelerator.eager_cost.value + h100.link.collective.issue_cost.value + Duration{25'907'700});
  EXPECT_EQ(eager.costs.issue[1], accelerator.eager_cost.value + accelerator.event_cost.value);
  EXPECT_EQ(eager.costs.duration, stream.costs.duration);
}

TEST(Price, EagerHostsOfMoreRanksBeginFurtherApart) {
  const Machine h100 = gapless_machine("hardware/h100-sxm.yaml");
  const auto first_issue = [&](int ranks) {
    return Priced(Scope::down, ranks, "serial", h100, {.launch = Launch::eager}).costs.issue[0];
  };
  const Duration call = h100.accelerator.eager_cost.value;
  EXPECT_EQ(first_issue(1), call);
  EXPECT_EQ(first_issue(2), call + Duration{10'264'800});  // 0.65 x 1.128 x 14 us
  EXPECT_EQ(first_issue(4), call + Duration{18'736'900});  // 0.65 x 2.059 x 14 us
}

TEST(Price, CallsBetweenNodesCostWhatTheNetworkStates) {
  Machine cluster = shipped_machine("clusters/dgx-h100-x2.yaml");
  cluster.accelerator.event_cost.value = Duration::zero();
  cluster.link.peer.issue_cost.value = std::chrono::microseconds(1);
  cluster.link.collective.issue_cost.value = std::chrono::microseconds(2);
  cluster.network->peer.issue_cost.value = std::chrono::microseconds(3);
  cluster.network->collective.issue_cost.value = std::chrono::microseconds(4);
  for (const auto& [ranks, exchange, collective] : {std::tuple{8, 1, 2}, std::tuple{16, 3, 4}}) {
    const Priced serial(Scope::gate_up, ranks, "serial", cluster);
    EXPECT_EQ(serial.costs.issue[serial.first(OpKind::collective)], std::chrono::microseconds(collective)) << ranks;
    const Priced ring(Scope::gate_up, ranks, "commfuse", cluster);
    EXPECT_EQ(ring.costs.issue[ring.first(OpKind::exchange)], std::chrono::microseconds(exchange)) << ranks;
  }

  // The outer ring of nested rings crosses nodes, the inner one does not.
  const Program nested =
      generate(operation_of(Scope::gate_up, true), 16, *find_strategy("commfuse"), StrategyOptions{.inner = 8});
  const Sizes sizes = bind_sizes(
      nested, quantities_of(load_model(COMMFUSE_SOURCE_DIR "/configs/models/llama-3.1-70b.yaml"), {.seq = 32768}));
  const Costs costs = price(nested, meetings_of(nested, Order(nested, 0)), sizes, cluster, {});
  std::array<int, 2> exchanges{};
  for (std::size_t op = 0; op < nested.ops.size(); ++op) {
    if (const auto* exchange = std::get_if<ExchangeShape>(&nested.shapes[nested.ops[op].shape])) {
      EXPECT_EQ(costs.issue[op], std::chrono::microseconds(exchange->axis == 0 ? 3 : 1)) << op;
      ++exchanges.at(static_cast<std::size_t>(exchange->axis));
    }
  }
  EXPECT_GT(exchanges[0], 0);
  EXPECT_GT(exchanges[1], 0);
}

TEST(Price, AGemmLosesSmsDuringAnExchangeButNotAfterTheLastOne) {
  Machine h100 = gapless_machine("hardware/h100-sxm.yaml");
  h100.accelerator = by_formula_alone(h100.accelerator);
  const Priced priced(Scope::gate_up, 8, "commfuse", h100);
  GemmSize part{.m = 32768 / 8, .n = 2 * 28672 / 8, .k = 8192};
  part.run = 8.0 * flops_of(part);  // The part is priced for a chip as hot as the whole GEMM leaves it.
  const std::size_t first = priced.first(OpKind::gemm);
  EXPECT_EQ(priced.costs.duration[first], estimate_gemm(h100.accelerator, part, 132 - 16).time);
  EXPECT_EQ(priced.costs.undisturbed[first], estimate_gemm(h100.accelerator, part, 132).time);
  EXPECT_EQ(priced.costs.duration.back(), priced.costs.undisturbed.back());
  const Priced without_interference(Scope::gate_up, 8, "commfuse", h100, {.interference = Interference::none});
  EXPECT_EQ(without_interference.costs.duration, without_interference.costs.undisturbed);
}

//   comm      |gather 0|gather 1|
//   compute            |GEMM 0         |GEMM 1         |
TEST(Price, AGemmIsSlowOnlyAsLongAsACollectiveLasts) {
  const Machine h100 = gapless_machine("hardware/h100-sxm.yaml");
  const Priced priced(Scope::gate_up, 8, "sliced", h100, {}, {.slices = 2});
  const Duration gather = priced.costs.duration[priced.first(OpKind::collective)];
  const std::size_t gemm = priced.first(OpKind::gemm);
  GemmSize slice{.m = 32768 / 2, .n = 2 * 28672 / 8, .k = 8192};
  slice.run = 2.0 * flops_of(slice);
  const Duration alone = estimate_gemm(h100.accelerator, slice, 132).time;
  const Duration met = estimate_gemm(h100.accelerator, slice, 132 - 24).time;
  ASSERT_GT(met, alone);
  ASSERT_LT(gather, met / 2);
  EXPECT_EQ(priced.costs.undisturbed[gemm], alone);
  // While the gather lasts, the GEMM does `gather / met` of its work.
  EXPECT_NEAR(to_microseconds(priced.costs.duration[gemm]),
              to_microseconds(alone) + to_microseconds(gather) * (1.0 - to_seconds(alone) / to_seconds(met)), 1e-5);
  EXPECT_EQ(priced.costs.duration.back(), priced.costs.undisturbed.back());
}

TEST(Price, AnExchangeBetweenNodesHoldsTheSmsOfTheNetwork) {
  Machine cluster = shipped_machine("clusters/dgx-h100-x2.yaml");
  ASSERT_EQ(cluster.link.peer.ctas.value, 16);
  cluster.network->peer.ctas.value = 40;
  for (const auto& [ranks, ctas] : {std::pair{8, 16}, std::pair{16, 40}}) {
    const Priced ring(Scope::gate_up, ranks, "commfuse", cluster);
    EXPECT_EQ(sms_left(ring.program, cluster, {.exchange = true}, Interference::constant), 132 - ctas) << ranks;
  }
  cluster.network->peer.ctas.value = 2;  // exchanges inside the nodes hold more
  const Priced ring(Scope::gate_up, 16, "commfuse", cluster);
  EXPECT_EQ(sms_left(ring.program, cluster, {.exchange = true}, Interference::constant), 132 - 16);
}

TEST(Price, CopyEnginesTakeNoSmsFromGemms) {
  const Machine h100 = gapless_machine("hardware/h100-sxm.yaml");
  for (const char* strategy : {"async_tp", "ring_exchange"}) {
    const Priced priced(Scope::mlp, 8, strategy, h100);
    EXPECT_EQ(priced.costs.duration, priced.costs.undisturbed) << strategy;
    const Priced ring(Scope::gate_up, 8, "commfuse", h100);
    EXPECT_EQ(priced.costs.duration[priced.first(OpKind::exchange)], ring.costs.duration[0]) << strategy;
  }
}

TEST(Price, ThePartsOfAKernelAddUpToTheKernel) {
  Machine h100 = gapless_machine("hardware/h100-sxm.yaml");
  h100.accelerator = by_formula_alone(h100.accelerator);
  for (const Scope scope : {Scope::gate_up, Scope::down, Scope::down_ar}) {
    for (const std::int32_t ranks : {1, 2, 4, 8}) {
      const Priced priced(scope, ranks, "fused_kernel", h100);
      Duration together{};
      Duration shortest = Duration::max();
      Duration longest{};
      for (std::size_t op = 0; op < priced.program.ops.size(); ++op) {
        if (priced.program.ops[op].kind == OpKind::gemm) {
          together += priced.costs.duration[op];
          shortest = std::min(shortest, priced.costs.duration[op]);
          longest = std::max(longest, priced.costs.duration[op]);
        }
      }
      EXPECT_EQ(together, priced.costs.compute);
      EXPECT_LE(longest - shortest, Duration{1});
    }
  }
}

// An uncut GEMM of 512 rows leaves much of its last wave of tiles on an A100 empty.
TEST(Price, AKernelTakesTheBestCutOfItsRowsEvenIfItsPartsAreColumns) {
  const Machine a100 = gapless_machine("hardware/a100-sxm-80.yaml");
  const auto times_of = [&](Scope scope, std::int64_t tokens) {
    const Program program = generate(operation_of(scope, false), 8, fused_kernel_strategy, {});
    const Sizes sizes =
        bind_sizes(program, quantities_of(bare_mlp({.hidden = 8192, .ffn = 28672}), {.seq = tokens}, 8));
    const Costs costs = price(program, meetings_of(program, Order(program, 0)), sizes, a100, {});
    Duration together{};
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      together += program.ops[op].kind == OpKind::gemm ? costs.duration[op] : Duration{};
    }
    return std::pair(together, costs.compute);
  };
  EXPECT_LT(times_of(Scope::down, 512).first, times_of(Scope::down, 512).second);
  EXPECT_EQ(times_of(Scope::down_ar, 512), times_of(Scope::down, 512));
  // Parts of 511 rows differ by one row and take about as long.
  const auto [cut, whole] = times_of(Scope::down_ar, 511);
  EXPECT_NEAR(to_seconds(cut) / to_seconds(times_of(Scope::down_ar, 512).first), 1.0, 0.01);
  EXPECT_LT(cut, whole);
}

TEST(Price, TheBoundComputesTheScoresOfTheBestCutOfUnfusedAttention) {
  const Machine h100 = gapless_machine("hardware/h100-sxm.yaml");
  const PriceOptions unfused{.attention = AttentionKernel::unfused};
  const AttentionSize size{.seq = 32768, .heads = 8, .kv_heads = 1};
  const auto in_parts = [&](std::int64_t parts) {
    Duration sum{};
    for (std::int64_t part = 1; part <= parts; ++part) {
      sum +=
          unfused_attention_time(h100.accelerator, size, {.queries = 32768 / parts, .keys = 32768 / parts * part}, 132);
    }
    return sum;
  };
  const Priced bound(Scope::attention, 8, "fused_kernel", h100, unfused, {.sub_slices = 2});
  Duration shortest_sum = Duration::max();
  for (const std::int64_t parts : {1, 2, 4, 8, 16}) {  // 8 ranks with two blocks each can have these numbers of parts.
    shortest_sum = std::min(shortest_sum, in_parts(parts));
  }
  EXPECT_LT(shortest_sum, in_parts(1));
  EXPECT_EQ(bound.costs.duration[bound.first(OpKind::attention)], shortest_sum);
  const Priced serial(Scope::attention, 8, "serial", h100, unfused);
  EXPECT_EQ(serial.costs.duration[serial.first(OpKind::attention)], in_parts(1));
  // Fused attention skips masked scores, whether it is cut or not.
  const Priced fused(Scope::attention, 8, "fused_kernel", h100);
  EXPECT_EQ(fused.costs.duration[fused.first(OpKind::attention)], attention_time(h100.accelerator, size, 132));
}

TEST(Price, OnlyTheFirstPartOfAKernelIsLaunched) {
  Machine h100 = gapless_machine("hardware/h100-sxm.yaml");
  h100.accelerator.graph_node_gap.value = std::chrono::microseconds(1);
  const Priced stream(Scope::mlp, 4, "fused_kernel", h100);
  const Priced graph(Scope::mlp, 4, "fused_kernel", h100, {.launch = Launch::graph});
  const Duration gap = h100.accelerator.graph_node_gap.value;
  std::vector<std::size_t> launched;
  for (std::size_t op = 0; op < stream.program.ops.size(); ++op) {
    const bool has_gap = graph.costs.duration[op] - stream.costs.duration[op] == gap;
    EXPECT_EQ(has_gap, stream.costs.issue[op] > Duration{});
    if (has_gap) {
      launched.push_back(op);
    }
  }
  // Ops 0 to 6 are the kernel of gate-up (four parts, three exchanges), op 7 is the activation, and op 8 is the first
  // part of the kernel of down.
  EXPECT_EQ(launched, (std::vector<std::size_t>{0, 7, 8}));
  EXPECT_EQ(stream.costs.issue[0], h100.accelerator.launch_cost.value);
}

TEST(Price, GemmsInFp8WriteTensorsOfTheProgramsDtype) {
  const Machine h100 = gapless_machine("hardware/h100-sxm.yaml");
  const Priced priced(Scope::gate_up, 8, "serial", h100, {.gemm_dtype = DType::fp8});
  const GemmSize gemm{.m = 32768, .n = 2 * 28672 / 8, .k = 8192, .dtype = DType::fp8, .out = DType::bf16};
  EXPECT_EQ(priced.costs.duration[1], estimate_gemm(h100.accelerator, gemm, 132).time);
  EXPECT_EQ(priced.costs.compute, priced.costs.duration[1]);
}

TEST(Price, GemmsOfFp8TensorsConvertNothing) {
  const Machine h100 = gapless_machine("hardware/h100-sxm.yaml");
  const Priced priced(Scope::gate_up, 8, "serial", h100, {}, {.dtype = DType::fp8});
  GemmSize gemm{.m = 32768, .n = 2 * 28672 / 8, .k = 8192, .dtype = DType::fp8, .converts = false};
  gemm.run = flops_of(gemm);
  EXPECT_EQ(priced.costs.duration[1], estimate_gemm(h100.accelerator, gemm, 132).time);
  EXPECT_EQ(priced.costs.compute, priced.costs.duration[1]);
  gemm.converts = true;
  EXPECT_LT(priced.costs.duration[1], estimate_gemm(h100.accelerator, gemm, 132).time);
}

TEST(Price, SumsOfFp8LayersMoveIn16Bits) {
  const Machine h100 = gapless_machine("hardware/h100-sxm.yaml");
  const Priced narrow(Scope::down, 8, "serial", h100, {}, {.dtype = DType::fp8});
  const Priced wide(Scope::down, 8, "serial", h100, {}, {.dtype = DType::bf16});
  EXPECT_EQ(narrow.costs.duration[1], wide.costs.duration[1]);
}

TEST(Price, AGradientSummedByShardIsReadAndWrittenInFp32EachTime) {
  const Machine h100 = gapless_machine("hardware/h100-sxm.yaml");
  const Priced priced(Scope::down_backward, 8, "commfuse", h100, {}, {.sum = Sum::arrival});
  GemmSize whole{.m = 28672 / 8, .n = 8192, .k = 32768, .out = DType::fp32};
  GemmSize input{.m = 32768, .n = 28672 / 8, .k = 8192};
  whole.run = input.run = flops_of(whole) + flops_of(input);
  GemmSize shard{.m = 28672 / 8, .n = 8192, .k = 32768 / 8, .out = DType::fp32, .run = whole.run};
  std::vector<std::size_t> gradients;
  for (std::size_t op = 0; op < priced.program.ops.size(); ++op) {
    const auto* gemm = std::get_if<GemmShape>(&priced.program.shapes[priced.program.ops[op].shape]);
    if (gemm != nullptr && gemm->transpose_a) {
      gradients.push_back(op);
    }
  }
  ASSERT_EQ(gradients.size(), 8U);
  EXPECT_EQ(priced.costs.undisturbed[gradients.front()], estimate_gemm(h100.accelerator, shard, 132).time);
  shard.accumulate = true;
  const Duration adding = estimate_gemm(h100.accelerator, shard, 132).time;
  EXPECT_GT(adding, priced.costs.undisturbed[gradients.front()]);
  for (std::size_t i = 1; i < gradients.size(); ++i) {
    EXPECT_EQ(priced.costs.undisturbed[gradients[i]], adding);
  }
  // In the uncut work the gradient is one GEMM.
  EXPECT_EQ(priced.costs.compute,
            estimate_gemm(h100.accelerator, input, 132).time + estimate_gemm(h100.accelerator, whole, 132).time);
}

TEST(Price, KernelsMoveAtTheDataSheetsRateAndAddForFree) {
  const Machine h100 = gapless_machine("hardware/h100-sxm.yaml");
  const Priced priced(Scope::down, 4, "fused_kernel", h100);
  EXPECT_EQ(priced.costs.duration[priced.first(OpKind::exchange)],
            Bytes{32768LL / 4 * 8192 * 2} / h100.link.nominal_rate.value);
  EXPECT_EQ(priced.costs.duration[priced.first(OpKind::elementwise)], Duration{});
}

TEST(Price, AGraphPaysOneLaunchAndAGapPerNode) {
  Machine h100 = gapless_machine("hardware/h100-sxm.yaml");
  h100.accelerator.graph_node_gap.value = std::chrono::microseconds(1);
  const Priced stream(Scope::down, 4, "commfuse", h100);
  const Priced graph(Scope::down, 4, "commfuse", h100, {.launch = Launch::graph});
  EXPECT_EQ(graph.costs.issue[0], h100.accelerator.graph_launch_cost.value);
  for (std::size_t op = 0; op < graph.costs.duration.size(); ++op) {
    EXPECT_EQ(graph.costs.duration[op], stream.costs.duration[op] + h100.accelerator.graph_node_gap.value);
    EXPECT_EQ(op == 0 || graph.costs.issue[op] == Duration{}, true);
  }
}

TEST(Price, AStreamWaitsBeforeKernelsButNotBeforeCommunication) {
  const Machine h100 = shipped_machine("hardware/h100-sxm.yaml");
  ASSERT_EQ(h100.accelerator.stream_gap.value, std::chrono::nanoseconds(1400));
  const Machine gapless_h100 = gapless_machine("hardware/h100-sxm.yaml");
  for (const Interference interference : {Interference::none, Interference::constant, Interference::dynamic}) {
    for (const auto& [scope, strategy] :
         {std::pair{Scope::down, "commfuse"}, std::pair{Scope::mlp, "serial"}, std::pair{Scope::mlp, "fused_kernel"}}) {
      const PriceOptions options{.interference = interference};
      const Priced waits(scope, 4, strategy, h100, options);
      const Priced gapless(scope, 4, strategy, gapless_h100, options);
      std::size_t waiting = 0;
      for (std::size_t op = 0; op < waits.program.ops.size(); ++op) {
        const OpKind kind = waits.program.ops[op].kind;
        const bool is_launched = waits.costs.issue[op] > Duration::zero();
        const bool is_kernel = kind == OpKind::gemm || kind == OpKind::elementwise;
        const Duration gap = is_launched && is_kernel ? h100.accelerator.stream_gap.value : Duration::zero();
        EXPECT_EQ(waits.costs.duration[op] - gapless.costs.duration[op], gap) << strategy << op;
        EXPECT_EQ(waits.costs.undisturbed[op] - gapless.costs.undisturbed[op], gap) << strategy << op;
        waiting += gap > Duration::zero() ? 1 : 0;
      }
      EXPECT_GT(waiting, 0U) << strategy;
      // The uncut, undisturbed work waits once per kernel.
      const auto kernels = static_cast<std::int64_t>(waits.program.unfused.size());
      EXPECT_EQ(waits.costs.compute - gapless.costs.compute, kernels * h100.accelerator.stream_gap.value);
    }
  }
}

TEST(Price, ARingOverTwoNodesPaysTheNetworkOnlyWhereItCrosses) {
  const Machine cluster = gapless_machine("clusters/dgx-h100-x2.yaml");
  const Priced inside(Scope::gate_up, 8, "commfuse", cluster);
  EXPECT_TRUE(inside.costs.by_rank.empty());
  const Priced across(Scope::gate_up, 16, "commfuse", cluster);
  const std::size_t exchange = across.first(OpKind::exchange);
  const Bytes shard{32768LL / 16 * 8192 * 2};
  for (Rank rank = 0; rank < 16; ++rank) {
    const bool crosses = rank == 7 || rank == 15;
    EXPECT_EQ(across.costs.of(rank, exchange), p2p_time(crosses ? cluster.network->peer : cluster.link.peer, shard))
        << rank;
  }
  const Priced serial(Scope::gate_up, 16, "serial", cluster);
  EXPECT_EQ(serial.costs.duration[0], all_gather_time(cluster.network->collective, 16, Bytes{32768LL * 8192 * 2}));
}

TEST(Price, AttentionIsPricedForTheHeadsOfOneRank) {
  const Machine h100 = gapless_machine("hardware/h100-sxm.yaml");
  const Priced priced(Scope::attention, 8, "serial", h100);
  const AttentionSize size{.batch = 1, .seq = 32768, .heads = 8, .kv_heads = 1, .head_dim = 128};
  EXPECT_EQ(priced.costs.duration[priced.first(OpKind::attention)], attention_time(h100.accelerator, size, 132));
}

TEST(AttentionTime, RisesToItsShareOfThePeakWithTheSequence) {
  // 16K causal, 64 heads of 128: 2 x 16384^2 x 8192 = 4.4 TFLOP, measured at 538 TFLOP/s (attn_prefill_aic.csv).
  const Machine h100 = gapless_machine("hardware/h100-sxm.yaml");
  const auto rate = [&](std::int64_t seq, bool causal) {
    const AttentionSize size{.seq = seq, .heads = 64, .kv_heads = 8, .causal = causal};
    const double scores = static_cast<double>(seq * seq) * (causal ? 0.5 : 1.0);
    return 4.0 * scores * 8192 / to_seconds(attention_time(h100.accelerator, size, 132));
  };
  EXPECT_NEAR(rate(16384, true), 538e12, 25e12);
  EXPECT_LT(rate(4096, true), rate(16384, true));
  EXPECT_LT(rate(1024, true), 0.6 * rate(16384, true));
  // Full attention has no diagonal that wastes scores.
  EXPECT_GT(rate(4096, false), rate(4096, true));
}

TEST(Price, ResultsStateTheProvenanceOfTheirParameters) {
  const Machine h100 = gapless_machine("hardware/h100-sxm.yaml");
  const Priced priced(Scope::mlp, 8, "commfuse", h100);
  const auto kinds = provenances_of(priced.program, h100, {});
  EXPECT_TRUE(kinds[static_cast<std::size_t>(Provenance::prior)]);      // launch costs
  EXPECT_TRUE(kinds[static_cast<std::size_t>(Provenance::published)]);  // peaks
  EXPECT_TRUE(kinds[static_cast<std::size_t>(Provenance::fitted)]);     // GEMMs, links
  EXPECT_FALSE(kinds[static_cast<std::size_t>(Provenance::measured)]);  // No parameter is measured.
}

}  // namespace
}  // namespace commfuse
