// SPDX-License-Identifier: Apache-2.0
// Tests the GEMM of a site with experts: its size, the traffic beside it, and the price of an op.
#include "model/cost/expert_gemm.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <tuple>

#include "model/config/catalogue.h"
#include "model/cost/memory_bound.h"
#include "model/cost/price.h"
#include "model/program/order.h"
#include "model/strategies/generate.h"
#include "model/strategies/scope.h"
#include "model/workload/bare_mlp.h"

namespace commfuse {
namespace {

constexpr ExpertSplit columns_of_32{.count = 32, .active = 4};
constexpr ExpertSplit shared_columns_of_32{.count = 32, .active = 4, .ranks = 2};
constexpr ExpertSplit contraction_of_32{.count = 32, .active = 4, .cut = WeightCut::contraction};
constexpr ExpertSplit shared_contraction_of_32{.count = 32, .active = 4, .ranks = 2, .cut = WeightCut::contraction};

/// GEMMs of 8,192 tokens on one of eight ranks: an up and a down projection of 8,192 x 8,192.
constexpr GemmSize up{.m = 8192, .n = 1024, .k = 8192};
constexpr GemmSize down{.m = 8192, .n = 8192, .k = 1024};

using Extents = std::array<std::int64_t, 4>;
Extents extents(const GemmSize& size) { return {size.groups, size.m, size.n, size.k}; }

TEST(ExpertGemm, EveryExpertMultipliesItsRows) {
  // 8,192 x 4 / 32 = 1,024 rows of each expert.
  EXPECT_EQ(extents(grouped(columns_of_32, up)), (Extents{32, 1024, 1024, 8192}));
  EXPECT_EQ(extents(grouped(contraction_of_32, down)), (Extents{32, 1024, 8192, 1024}));
  EXPECT_EQ(extents(grouped({}, up)), (Extents{1, 8192, 1024, 8192}));
}

TEST(ExpertGemm, ExpertParallelismGivesARankFewerAndWiderExperts) {
  EXPECT_EQ(extents(grouped(shared_columns_of_32, up)), (Extents{16, 1024, 2048, 8192}));
  EXPECT_EQ(extents(grouped(shared_contraction_of_32, down)), (Extents{16, 1024, 8192, 2048}));
  // The work of a rank stays the same: that of four GEMMs of all tokens.
  EXPECT_EQ(flops_of(grouped(shared_columns_of_32, up)).count, 4.0 * flops_of(up).count);
  EXPECT_EQ(flops_of(grouped(columns_of_32, up)).count, 4.0 * flops_of(up).count);
}

TEST(ExpertGemm, FewTokensUseFewerExperts) {
  EXPECT_EQ(extents(grouped(columns_of_32, {.m = 4, .n = 8, .k = 8})), (Extents{16, 1, 8, 8}));
  EXPECT_EQ(extents(grouped(shared_columns_of_32, {.m = 4, .n = 8, .k = 8})), (Extents{8, 1, 16, 8}));
  // Nine tokens have 36 rows, at most two per expert.
  EXPECT_EQ(extents(grouped(columns_of_32, {.m = 9, .n = 8, .k = 8})), (Extents{32, 2, 8, 8}));
  EXPECT_EQ(routed_rows({.count = 8, .active = 2, .ranks = 4}, 3), 2);  // 6 rows on 4 ranks
}

TEST(ExpertGemm, RowsAreCopiedBeforeTheGemmOrSummedAfterIt) {
  EXPECT_EQ(routing_traffic(columns_of_32, up).count, 2 * 32768 * 8192 * 2);
  EXPECT_EQ(routing_traffic(shared_columns_of_32, up).count, 2 * 16384 * 8192 * 2);
  EXPECT_EQ(routing_traffic(contraction_of_32, down).count, (32768 + 8192) * 8192 * 2);
  EXPECT_EQ(routing_traffic(shared_contraction_of_32, down).count, (16384 + 8192) * 8192 * 2);
  EXPECT_EQ(routing_traffic({}, up).count, 0);
}

/// A site of a mixture of 32 experts over eight ranks of an H100 node.
struct Site8 {
  Site8(Scope scope, const Strategy& strategy)
      : program(generate(operation_of(scope, false), 8, strategy, {.sub_slices = 1})),
        meetings(meetings_of(program, Order(program, 0))),
        sizes(bind_sizes(program, quantities_of(bare_mixture({.hidden = 8192, .ffn = 8192}, {.count = 32, .active = 4}),
                                                {.batch = 1, .seq = 8192}, 8))) {
    machine.accelerator.stream_gap.value = Duration::zero();
  }

  [[nodiscard]] Costs costs_of(const ExpertSplit& experts) const {
    return price(program, meetings, sizes, machine, {.interference = Interference::none, .experts = experts});
  }
  /// Returns the sum of the prices of the GEMMs.
  [[nodiscard]] Duration gemms(const ExpertSplit& experts) const {
    const Costs costs = costs_of(experts);
    Duration sum{};
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      sum += program.ops[op].kind == OpKind::gemm ? costs.duration[op] : Duration{};
    }
    return sum;
  }
  /// Returns the price of the grouped GEMM alone.
  [[nodiscard]] Duration kernel(const ExpertSplit& experts, const GemmSize& size) const {
    GemmSize kernel_size = grouped(experts, size);
    kernel_size.run = flops_of(kernel_size);
    return estimate_gemm(machine.accelerator, kernel_size, machine.accelerator.sms).time;
  }

  Machine machine = load_machine("h100-sxm");
  Program program;
  std::vector<Meetings> meetings;
  Sizes sizes;
};

TEST(ExpertGemm, ASeparateKernelHasAKernelForItsRowsBesideIt) {
  for (const ExpertSplit& experts : {columns_of_32, shared_columns_of_32}) {
    const Site8 site(Scope::gate_up, serial_strategy);
    const Accelerator& accelerator = site.machine.accelerator;
    EXPECT_EQ(site.gemms(experts),
              site.kernel(experts, up) + memory_bound_time(accelerator, routing_traffic(experts, up), accelerator.sms));
  }
  for (const ExpertSplit& experts : {contraction_of_32, shared_contraction_of_32}) {
    const Site8 site(Scope::down, serial_strategy);
    const Accelerator& accelerator = site.machine.accelerator;
    EXPECT_EQ(site.gemms(experts), site.kernel(experts, down) +
                                       memory_bound_time(accelerator, routing_traffic(experts, down), accelerator.sms));
  }
}

TEST(ExpertGemm, AKernelThatMovesItsOwnTilesNeedsNoCopies) {
  const Site8 site(Scope::gate_up, fused_kernel_strategy);
  const Duration bound = site.gemms(columns_of_32);
  // Eight parts round their shares of the kernel's time; the best cut of the rows may be faster than none.
  EXPECT_LE(bound, site.kernel(columns_of_32, up) + Duration{8});
  EXPECT_GT(bound, 3 * site.gemms({}));  // four times the rows of a dense GEMM, and 32 weights
}

TEST(ExpertGemm, TheUnslicedComputeOfAKernelThatMovesItsTilesHasNoCopies) {
  for (const auto& [scope, experts, size] :
       {std::tuple(Scope::gate_up, columns_of_32, up), std::tuple(Scope::down, contraction_of_32, down)}) {
    const Site8 fused(scope, fused_kernel_strategy);
    const Site8 serial(scope, serial_strategy);
    const Accelerator& accelerator = serial.machine.accelerator;
    const Duration copies = memory_bound_time(accelerator, routing_traffic(experts, size), accelerator.sms);
    EXPECT_EQ(serial.costs_of(experts).compute - fused.costs_of(experts).compute, copies);
    // The parts therefore take as long as the uncut kernel, except that the best cut of the rows may fill waves better.
    const double ratio = to_seconds(fused.gemms(experts)) / to_seconds(fused.costs_of(experts).compute);
    EXPECT_NEAR(ratio, 1.0, 0.01);
  }
}

TEST(ExpertGemm, ARankHoldsTheWeightsAndRowsOfItsExperts) {
  const Site8 site(Scope::gate_up, serial_strategy);
  constexpr std::int64_t width = 2;
  constexpr std::int64_t shard = 1024 * 8192 * width;
  constexpr std::int64_t tokens = 8 * shard;
  constexpr std::int64_t weight = 8192 * 1024 * width;
  constexpr std::int64_t rows_of_output = 8192 * 1024 * width;
  EXPECT_EQ(bytes_per_rank(site.program, site.sizes).count, shard + tokens + weight + rows_of_output);
  EXPECT_EQ(bytes_per_rank(site.program, site.sizes, ExpertSplit{}), bytes_per_rank(site.program, site.sizes));
  // The buffers include 32,768 routed rows that are as wide as the tokens.
  EXPECT_EQ(bytes_per_rank(site.program, site.sizes, columns_of_32).count,
            shard + tokens + 32 * weight + 4 * rows_of_output + 4 * tokens);
  EXPECT_EQ(bytes_per_rank(site.program, site.sizes, shared_columns_of_32).count,
            shard + tokens + 32 * weight + 4 * rows_of_output + 2 * tokens);
}

}  // namespace
}  // namespace commfuse
