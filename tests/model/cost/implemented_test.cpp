// SPDX-License-Identifier: Apache-2.0
#include "model/cost/implemented.h"

#include <gtest/gtest.h>

#include <chrono>
#include <variant>

#include "model/config/catalogue.h"
#include "model/cost/gemm.h"
#include "model/cost/memory_bound.h"
#include "model/cost/price.h"
#include "model/cost/priced_ops.h"
#include "model/program/order.h"
#include "model/strategies/generate.h"
#include "model/strategies/scope.h"
#include "model/workload/bare_mlp.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

/// A GEMM of 4096 x 8192 x 28672 over ranks of an H100 node, as one kernel whose shards are sent in one piece.
struct Kernel {
  explicit Kernel(Scope scope, const Strategy& strategy = fused_kernel_strategy, int ranks = 8,
                  std::int64_t tokens = 4096)
      : program(generate(operation_of(scope, false), ranks, strategy, {.sub_slices = 1})),
        meetings(meetings_of(program, Order(program, 0))),
        sizes(bind_sizes(
            program, quantities_of(bare_mlp({.hidden = 8192, .ffn = 28672}), {.batch = 1, .seq = tokens}, ranks))) {}

  [[nodiscard]] Costs costs(const ImplementedSites* sites, Launch launch = Launch::stream) const {
    PriceOptions options{.interference = Interference::none, .launch = launch};
    options.implementation = sites;
    return price(program, meetings, sizes, machine, options);
  }
  [[nodiscard]] std::vector<std::size_t> of_kind(OpKind kind) const {
    std::vector<std::size_t> ops;
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      if (program.ops[op].kind == kind) {
        ops.push_back(op);
      }
    }
    return ops;
  }

  Machine machine = load_machine("h100-sxm");
  Program program;
  std::vector<Meetings> meetings;
  Sizes sizes;
};

TEST(Implemented, DefaultsAreTheIdealKernels) {
  for (const Scope scope : {Scope::gate_up, Scope::down, Scope::mlp}) {
    const Kernel kernel(scope);
    const ImplementedSites ideal;
    EXPECT_EQ(kernel.costs(&ideal).duration, kernel.costs(nullptr).duration);
  }
}

TEST(Implemented, PerCallIsPaidOncePerSite) {
  const Kernel kernel(Scope::mlp);
  ImplementedSites sites;
  sites.ag_gemm.per_call.value = 40us;
  sites.gemm_rs.per_call.value = 7us;
  const Costs ideal = kernel.costs(nullptr);
  const Costs costs = kernel.costs(&sites);
  std::vector<Duration> added;
  for (std::size_t op = 0; op < costs.duration.size(); ++op) {
    if (costs.duration[op] != ideal.duration[op]) {
      EXPECT_EQ(kernel.program.ops[op].kind, OpKind::gemm);
      added.push_back(costs.duration[op] - ideal.duration[op]);
    }
  }
  EXPECT_EQ(added, (std::vector<Duration>{40us, 7us}));
}

TEST(Implemented, TransfersAreNoFasterThanTheirRateAndPayForEveryStep) {
  const Kernel kernel(Scope::down);
  ImplementedSites sites;
  sites.gemm_rs.rate.emplace().value = BytesPerSecond{100e9};
  sites.gemm_rs.per_step.value = 3us;
  sites.ag_gemm.per_step.value = 1s;  // This site is of the other kind.
  const Costs costs = kernel.costs(&sites);
  // A shard is 512 x 8192 values of two bytes: 8,388,608 bytes, 83.88608 us at 100 GB/s.
  for (const std::size_t op : kernel.of_kind(OpKind::exchange)) {
    EXPECT_EQ(costs.duration[op], Duration{83'886'080 + 3'000'000});
  }
  sites.gemm_rs.rate->value = BytesPerSecond{1e15};  // The transport is faster than the link, so the ideal rate stays.
  sites.gemm_rs.per_step.value = 0us;
  EXPECT_EQ(kernel.costs(&sites).duration, kernel.costs(nullptr).duration);
  sites.gemm_rs.rate_share.value = 0.5;  // half of the link's 450 GB/s
  for (const std::size_t op : kernel.of_kind(OpKind::exchange)) {
    EXPECT_EQ(kernel.costs(&sites).duration[op], Duration{37'282'702});
  }
}

TEST(Implemented, SumsInTheSwitchReadTheOwnShareToo) {
  const Kernel kernel(Scope::down);
  ImplementedSites sites;
  sites.gemm_rs.rate.emplace().value = BytesPerSecond{100e9};
  sites.gemm_rs.sums_in_switch = true;
  // Seven transfers of 83.88608 us carry the shares of seven ranks; the switch reads those of eight.
  for (const std::size_t op : kernel.of_kind(OpKind::exchange)) {
    EXPECT_EQ(kernel.costs(&sites).duration[op], Duration{95'869'806});
  }
}

TEST(Implemented, AnAllReduceInTheSwitchCrossesALinkOncePerDirection) {
  constexpr double whole_us = 671.08864;  // 4096 x 8192 values of two bytes at 100 GB/s
  for (const int ranks : {2, 8}) {
    const Kernel kernel(Scope::down_ar, fused_kernel_strategy, ranks);
    ImplementedSites sites;
    sites.gemm_rs.per_step.value = sites.ag_gemm.per_step.value = 1s;  // Costs of other sites must not count.
    sites.gemm_ar.rate.emplace().value = BytesPerSecond{100e9};
    const std::vector<std::size_t> exchanges = kernel.of_kind(OpKind::exchange);
    const std::size_t transfers = exchanges.size();  // partial sums, and as many complete ones
    const auto moving = [&] {
      const Costs costs = kernel.costs(&sites);
      Duration sum{};
      for (const std::size_t op : exchanges) {
        sum += costs.duration[op];
      }
      return to_microseconds(sum);
    };
    EXPECT_NEAR(moving(), whole_us * 2 * (ranks - 1) / ranks, 1e-3);
    sites.gemm_ar.sums_in_switch = true;
    EXPECT_NEAR(moving(), whole_us * (ranks + 1) / ranks, 1e-3);
    sites.gemm_ar.per_step.value = 2us;
    EXPECT_NEAR(moving(), whole_us * (ranks + 1) / ranks + 2.0 * static_cast<double>(transfers), 1e-3);
  }
}

TEST(Implemented, AKernelPaysForCutsIntoShardsOfRowsEvenIfItsPartsAreColumns) {
  ImplementedSites sites;
  sites.gemm_rs.cut_cost.value = sites.gemm_ar.cut_cost.value = 1.0;
  const auto gemms_of = [&](const Kernel& kernel) {
    const Costs costs = kernel.costs(&sites);
    Duration sum{};
    for (const std::size_t op : kernel.of_kind(OpKind::gemm)) {
      sum += costs.duration[op];
    }
    return to_microseconds(sum);
  };
  const Kernel rows(Scope::down);
  const double whole_us = gemms_of(rows);
  EXPECT_GT(whole_us, to_microseconds(rows.costs(nullptr).compute));
  EXPECT_DOUBLE_EQ(gemms_of(Kernel(Scope::down_ar)), whole_us);
  // Eight GEMMs of 512 rows less one eighth of a row each.
  EXPECT_NEAR(gemms_of(Kernel(Scope::down_ar, fused_kernel_strategy, 8, 4095)), whole_us, 1e-3 * whole_us);
}

TEST(Implemented, EagerPythonIssuesEveryOpAndItsOwnCalls) {
  const Kernel kernel(Scope::down, async_tp_strategy);
  ImplementedSites sites;
  sites.gemm_rs.host_per_call.value = 5;
  sites.gemm_rs.host_per_step.value = 2;
  sites.ag_gemm.host_per_call.value = 1000;  // This site is of the other kind.
  const Costs costs = kernel.costs(&sites, Launch::eager);
  bool is_called = false;
  for (std::size_t op = 0; op < costs.issue.size(); ++op) {
    const OpKind kind = kernel.program.ops[op].kind;
    const int calls = kind == OpKind::exchange ? 2 : kind == OpKind::gemm && !is_called ? 5 : 0;
    is_called = is_called || kind == OpKind::gemm;
    const Duration skew{op == 0 ? 25'907'700 : 0};  // eight hosts: 0.65 x 2.847 x 14 us
    EXPECT_EQ(costs.issue[op], (1 + calls) * Duration{14us} + skew) << op;
  }
  EXPECT_EQ(costs.duration, kernel.costs(nullptr).duration);
  for (const Launch launch : {Launch::stream, Launch::graph}) {  // The host runs ahead of the device.
    EXPECT_EQ(kernel.costs(&sites, launch).issue, kernel.costs(nullptr, launch).issue);
  }
}

TEST(Implemented, AShardedGemmCostsTheSumOfItsShards) {
  const Kernel kernel(Scope::gate_up);
  ImplementedSites sites;
  sites.ag_gemm.cut_cost.value = 1.0;
  const Costs costs = kernel.costs(&sites);
  const Accelerator& h100 = kernel.machine.accelerator;
  GemmSize shard{.m = 512, .n = 28672 / 8, .k = 8192};
  shard.run = heating_work(kernel.program, kernel.sizes, {});
  const Duration shard_time = estimate_gemm(h100, shard, h100.sms).time;
  const std::vector<std::size_t> parts = kernel.of_kind(OpKind::gemm);
  ASSERT_EQ(parts.size(), 8U);
  for (std::size_t i = 1; i < parts.size(); ++i) {  // The first part also has the wait of the kernel in its stream.
    EXPECT_NEAR(to_seconds(costs.duration[parts[i]]), to_seconds(shard_time), 2e-12);
  }
}

TEST(Implemented, ShardsHaveTheDtypeAndWeightsOfTheirKernel) {
  const Kernel kernel(Scope::gate_up);
  ImplementedSites sites;
  sites.ag_gemm.cut_cost.value = 1.0;
  PriceOptions options{.interference = Interference::none, .gemm_dtype = DType::fp8, .weight_bits = 4.0};
  options.implementation = &sites;
  const Costs costs = price(kernel.program, kernel.meetings, kernel.sizes, kernel.machine, options);
  const Accelerator& h100 = kernel.machine.accelerator;
  GemmSize shard{.m = 512, .n = 28672 / 8, .k = 8192, .dtype = DType::fp8, .out = DType::bf16};
  shard.run = heating_work(kernel.program, kernel.sizes, {});
  shard.weight_bits = 4.0;
  const std::size_t last = kernel.of_kind(OpKind::gemm).back();
  EXPECT_NEAR(to_seconds(costs.duration[last]), to_seconds(estimate_gemm(h100, shard, h100.sms).time), 2e-12);
}

TEST(Implemented, SumsInTheSwitchContainTheNorm) {
  const Kernel kernel(Scope::mlp_ar, tokenweave_strategy);
  ImplementedSites sites;
  sites.mlp_ar.per_call.value = 5us;
  sites.mlp_ar.sms.value = 32;
  // Half of 4096 tokens x 8192 values x 2 bytes, and an eighth of them again, at NVLink's 450 GB/s.
  const Link& link = kernel.machine.link;
  const Duration sum = switch_sum_time(sites.mlp_ar, link, 8, Bytes{2048 * 8192 * 2});
  EXPECT_EQ(sum, Duration{5'000'000 + 83'886'080});
  const Costs ideal = kernel.costs(nullptr);
  const Costs costs = kernel.costs(&sites);
  const Duration gap = kernel.machine.accelerator.stream_gap.value;
  for (std::size_t i = 0; i < kernel.program.ops.size(); ++i) {
    const Op& op = kernel.program.ops[i];
    const auto* collective = std::get_if<CollectiveShape>(&kernel.program.shapes[op.shape]);
    if (collective != nullptr) {
      EXPECT_EQ(costs.duration[i], collective->kind == CollectiveKind::reduce_scatter ? sum : Duration{});
    } else if (op.kind == OpKind::gemm) {
      EXPECT_NEAR(to_seconds(costs.duration[i] - gap), to_seconds(ideal.duration[i] - gap) * 132 / 100, 2e-12);
    } else if (kernel.program.lanes[op.lane].kind == LaneKind::aux) {
      EXPECT_EQ(costs.duration[i], Duration{});
    } else {
      EXPECT_EQ(costs.duration[i], ideal.duration[i]);
    }
  }
  sites.mlp_ar.rate.emplace().value = BytesPerSecond{100e9};
  EXPECT_EQ(switch_sum_time(sites.mlp_ar, link, 8, Bytes{1'000'000}), Duration{5'000'000 + 11'250'000});
  EXPECT_EQ(switch_sum_time(sites.mlp_ar, link, 2, Bytes{1'000'000}), Duration{5'000'000 + 15'000'000});
  sites.mlp_ar.rate->value = BytesPerSecond{1e15};  // No kernel is faster than the link.
  EXPECT_EQ(switch_sum_time(sites.mlp_ar, link, 8, Bytes{2048 * 8192 * 2}), sum);
}

TEST(Implemented, AKernelThatSumsInTheSwitchIsLaunchedOnce) {
  Kernel kernel(Scope::mlp_ar, tokenweave_strategy);
  kernel.machine.accelerator.graph_node_gap.value = 3us;
  const ImplementedSites sites;
  const Costs stream = kernel.costs(&sites);
  const Costs graph = kernel.costs(&sites, Launch::graph);
  int parts = 0;
  for (std::size_t i = 0; i < kernel.program.ops.size(); ++i) {
    if (is_inside_switch_sum(kernel.program, i)) {
      ++parts;
      EXPECT_EQ(stream.issue[i], Duration{}) << i;
      EXPECT_EQ(graph.duration[i], Duration{}) << i;
    } else {
      EXPECT_GT(stream.issue[i], Duration{}) << i;
      EXPECT_GT(graph.duration[i], Duration{3us}) << i;
    }
  }
  EXPECT_EQ(parts, 4 * 3);  // residual, norm and all-gather of four sums
}

TEST(Implemented, SerialMlpsSumInTheSwitchToo) {
  const Kernel kernel(Scope::mlp_ar, serial_strategy);
  ImplementedSites sites;
  sites.mlp_ar.per_call.value = 5us;
  const Costs ideal = kernel.costs(nullptr);
  const Costs costs = kernel.costs(&sites);
  for (std::size_t i = 0; i < kernel.program.ops.size(); ++i) {
    const bool sums = kernel.program.ops[i].kind == OpKind::collective;
    EXPECT_EQ(costs.duration[i], sums ? Duration{5'000'000 + 167'772'160} : ideal.duration[i]);
  }
}

TEST(Implemented, ASlowerGemmAndTakenSmsLengthenIt) {
  const Kernel kernel(Scope::gate_up);
  ImplementedSites sites;
  sites.ag_gemm.product_time.value = 1.2;
  sites.ag_gemm.sms.value = 32;
  const std::size_t last = kernel.of_kind(OpKind::gemm).back();
  EXPECT_NEAR(to_seconds(kernel.costs(&sites).duration[last]),
              to_seconds(kernel.costs(nullptr).duration[last]) * 1.2 * 132 / 100, 2e-12);
}

TEST(Implemented, SeparateSumsAreAPassOverMemory) {
  const Kernel kernel(Scope::down);
  ImplementedSites sites;
  sites.gemm_rs.separate_sum.value = 1;
  const std::size_t sum = kernel.of_kind(OpKind::elementwise).back();
  EXPECT_EQ(kernel.costs(nullptr).duration[sum], Duration{});
  // Eight partial sums of 512 x 8192 are read and one is written.
  const Accelerator& h100 = kernel.machine.accelerator;
  EXPECT_EQ(kernel.costs(&sites).duration[sum], memory_bound_time(h100, Bytes{9 * 512 * 8192 * 2}, h100.sms));
}

TEST(Implemented, SlowSumsTakeAMultipleOfTheirPass) {
  const Kernel kernel(Scope::down, async_tp_strategy);
  ImplementedSites sites;
  sites.gemm_rs.sum_time.value = 2.5;
  sites.ag_gemm.sum_time.value = 9.0;  // This site is of the other kind.
  const Costs ideal = kernel.costs(nullptr);
  const Costs costs = kernel.costs(&sites);
  for (std::size_t op = 0; op < costs.duration.size(); ++op) {
    const bool is_sum = kernel.program.ops[op].kind == OpKind::elementwise;
    const Duration gap = is_sum ? kernel.machine.accelerator.stream_gap.value : Duration{};
    EXPECT_EQ(is_sum ? 2 * (costs.duration[op] - gap) : costs.duration[op],
              is_sum ? 5 * (ideal.duration[op] - gap) : ideal.duration[op]);
  }
}

TEST(Implemented, EveryHandicapIsRemovedSeparately) {
  const Kernel kernel(Scope::down);
  ImplementedSites every_handicap;
  every_handicap.gemm_rs = {.per_call = {.value = 40us},
                            .product_time = {.value = 1.2},
                            .rate_share = {.value = 0.3},
                            .separate_sum = {.value = 1}};
  ImplementedSites remaining = every_handicap;
  for (const Handicap handicap : all_handicaps) {
    const ImplementedSites fewer = without(remaining, handicap);
    EXPECT_NE(kernel.costs(&fewer).duration, kernel.costs(&remaining).duration) << in_words(handicap);
    remaining = fewer;
  }
  EXPECT_EQ(kernel.costs(&remaining).duration, kernel.costs(nullptr).duration);
}

TEST(Implemented, IdealTransfersOfAnAllReduceStayInTheSwitch) {
  const Kernel kernel(Scope::down_ar);
  ImplementedSites ideal_in_switch;
  ideal_in_switch.gemm_ar.sums_in_switch = true;
  ImplementedSites slow = ideal_in_switch;
  slow.gemm_ar.rate_share.value = 0.5;
  slow.gemm_ar.per_step.value = 2us;
  const ImplementedSites freed = without(slow, Handicap::transfers);
  EXPECT_EQ(kernel.costs(&freed).duration, kernel.costs(&ideal_in_switch).duration);
}

TEST(Implemented, ParametersWithAnErrorAreRaisedOneByOne) {
  ImplementedSites sites;
  sites.ag_gemm.per_call = {.value = 40us, .standard_error = 0.5};
  sites.gemm_rs.rate = Parameter<BytesPerSecond>{.value = {100e9}, .standard_error = 0.1};
  const std::vector<RaisedImplementation> raised = raised_by_error(sites);
  ASSERT_EQ(raised.size(), 2U);
  EXPECT_EQ(raised[0].name, "ag_gemm.per_call");
  EXPECT_EQ(raised[0].sites.ag_gemm.per_call.value, Duration{65'948'851});  // 40 us x exp(0.5)
  EXPECT_EQ(raised[0].sites.gemm_rs.rate->value.value, 100e9);
  EXPECT_EQ(raised[1].name, "gemm_rs.rate");
  EXPECT_NEAR(raised[1].sites.gemm_rs.rate->value.value, 100e9 * 1.1051709180756477, 1.0);
}

TEST(Implemented, OneRankOverlapsNothing) {
  const Program program = generate(operation_of(Scope::down, false), 1, fused_kernel_strategy, {.sub_slices = 1});
  const Sizes sizes =
      bind_sizes(program, quantities_of(bare_mlp({.hidden = 8192, .ffn = 28672}), {.batch = 1, .seq = 4096}, 1));
  const Machine machine = load_machine("h100-sxm");
  ImplementedSites slow;
  slow.gemm_rs.per_call.value = 1s;
  PriceOptions options;
  const std::vector<Meetings> meetings = meetings_of(program, Order(program, 0));
  const Costs ideal = price(program, meetings, sizes, machine, options);
  options.implementation = &slow;
  EXPECT_EQ(price(program, meetings, sizes, machine, options).duration, ideal.duration);
}

}  // namespace
}  // namespace commfuse
