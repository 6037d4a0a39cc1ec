// SPDX-License-Identifier: Apache-2.0
// Tests the options of CommFuse: which of them matter in combination, their names, and the number of ops that result.
#include "model/strategies/commfuse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "model/strategies/generate.h"
#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"

namespace commfuse {
namespace {

constexpr std::array ag_gemm{SiteKind::ag_gemm};
constexpr std::array gemm_rs{SiteKind::gemm_rs};
constexpr std::array both{SiteKind::ag_gemm, SiteKind::gemm_rs};

const Strategy& commfuse() { return commfuse_strategy; }

StrategyOptions canonical_options(const StrategyOptions& options, std::int32_t ranks) {
  return canonical(commfuse(), both, options, ranks);
}

TEST(CommfuseOptions, AreResetWhereTheyMakeNoDifference) {
  // Groups move whole shards; the direct form has no directions; nested rings have no option but the lane of adds.
  EXPECT_EQ(canonical_options({.sub_slices = 4, .group = 2}, 8), (StrategyOptions{.group = 2}));
  EXPECT_EQ(canonical_options({.form = Form::direct, .directions = Directions::halves, .inner = 4}, 8),
            (StrategyOptions{.form = Form::direct}));
  EXPECT_EQ(
      canonical_options({.sub_slices = 2, .lanes = 2, .directions = Directions::halves, .group = 3, .inner = 4}, 8),
      (StrategyOptions{.inner = 4}));
  // The lane of adds matters only where adds run before the end. In a single chain, each transfer waits for the
  // previous one, so lanes make no difference.
  EXPECT_EQ(canonical_options({.form = Form::direct, .add_lane = LaneKind::aux}, 8),
            (StrategyOptions{.form = Form::direct}));
  EXPECT_EQ(canonical_options({.sum = Sum::arrival, .lanes = 7}, 8), StrategyOptions{});
  const StrategyOptions adds{.form = Form::direct, .add_lane = LaneKind::aux, .sum = Sum::arrival};
  EXPECT_EQ(canonical(commfuse(), gemm_rs, adds, 8), adds);
  EXPECT_EQ(canonical(commfuse(), ag_gemm, adds, 8), (StrategyOptions{.form = Form::direct}));
}

TEST(CommfuseOptions, OnlyNestedRingsDoNotCutAttention) {
  constexpr std::array attends{SiteKind::ag_gemm, SiteKind::attention_rs};
  constexpr std::array exchanges{SiteKind::gemm_a2a, SiteKind::attention_a2a};
  constexpr AttentionCut by_query = AttentionCut::by_query;
  EXPECT_EQ(canonical(commfuse(), attends, {.inner = 4, .attention = by_query}, 8), (StrategyOptions{.inner = 4}));
  // Neither the direct form nor an all-to-all has inner rings.
  EXPECT_EQ(canonical(commfuse(), attends, {.form = Form::direct, .inner = 4, .attention = by_query}, 8),
            (StrategyOptions{.form = Form::direct, .attention = by_query}));
  EXPECT_EQ(canonical(commfuse(), exchanges, {.inner = 4, .attention = by_query}, 8),
            (StrategyOptions{.attention = by_query}));
  // The inner ring of all ranks is the flat ring.
  EXPECT_EQ(canonical(commfuse(), attends, {.inner = 8, .attention = by_query}, 8),
            (StrategyOptions{.attention = by_query}));
}

TEST(CommfuseOptions, CountsAreNoLargerThanTheRanksCanUse) {
  EXPECT_EQ(canonical_options({.form = Form::direct, .lanes = fused::all_lanes}, 8).lanes, 7);
  EXPECT_EQ(canonical_options({.form = Form::direct, .lanes = fused::all_lanes}, 2).lanes, 1);
  EXPECT_EQ(canonical_options({.form = Form::direct, .lanes = fused::all_lanes}, 512).lanes, fused::max_lanes);
  EXPECT_EQ(canonical_options({.sub_slices = 2, .lanes = 9, .directions = Directions::halves}, 8).lanes, 4);
  EXPECT_EQ(canonical_options({.group = 9}, 4).group, 3);
  EXPECT_EQ(canonical_options({.group = 9}, 1).group, 1);
  EXPECT_EQ(canonical_options({.inner = 8}, 8), StrategyOptions{});  // One node makes a flat ring.
}

TEST(CommfuseOptions, AreNamedByTheirDifferencesFromThePlainForm) {
  const auto name = [](const StrategyOptions& options) { return commfuse().describe(options); };
  EXPECT_EQ(name({}), "ring");
  EXPECT_EQ(name({.add_lane = LaneKind::aux}), "ring, add on aux");
  EXPECT_EQ(name({.form = Form::direct}), "direct");
  EXPECT_EQ(name({.sub_slices = 2, .lanes = 4, .directions = Directions::halves}),
            "ring both ways, halves, m=2, 4 lanes");
  EXPECT_EQ(name({.form = Form::direct, .add_lane = LaneKind::aux, .sum = Sum::arrival, .lanes = 7, .group = 3}),
            "direct, g=3, 7 lanes, sum on arrival, add on aux");
  EXPECT_EQ(name({.form = Form::direct, .lanes = fused::all_lanes}), "direct, one lane per peer");
  EXPECT_EQ(name({.add_lane = LaneKind::aux, .inner = 8}), "nested rings of 8, add on aux");
}

TEST(CommfuseOptions, NodesAreOfEqualSize) {
  const auto refusal = [](std::int32_t inner, std::int32_t ranks, Form form = Form::ring) {
    return refusal_of(commfuse(), both, {.form = form, .inner = inner}, ranks);
  };
  EXPECT_EQ(refusal(4, 8), "");
  EXPECT_EQ(refusal(8, 8), "");
  EXPECT_EQ(refusal(3, 8), "an inner ring of 3 does not divide 8 ranks; choose 2 or 4");
  EXPECT_EQ(refusal(5, 7), "an inner ring of 5 does not divide 7 ranks; choose 1 or 7");
  EXPECT_EQ(refusal(8, 4), "an inner ring of 8 does not divide 4 ranks; choose 4");
  EXPECT_EQ(refusal(3, 8, Form::direct), "");  // The direct form ignores inner rings.
}

TEST(CommfuseOptions, TriedValuesAgreeWithFixedOnes) {
  StrategyOptions base;
  base.sub_slices = 4;
  for (const StrategyOptions& options : commfuse().variants(base, {Option::sub_slices})) {
    EXPECT_EQ(options.sub_slices, 4);
    EXPECT_EQ(options.group, 1);  // A larger group would have no parts.
    EXPECT_EQ(options.inner, 1);
  }
  base = {.form = Form::direct, .lanes = 3};
  const auto tried = distinct(commfuse(), both, commfuse().variants(base, {Option::form, Option::lanes}), 8);
  EXPECT_GE(tried.size(), 3U);
  for (const StrategyOptions& options : tried) {
    EXPECT_EQ(options.form, Form::direct);
    EXPECT_EQ(options.lanes, 3);
  }
}

TEST(CommfuseOptions, AreTriedInFewFormsAndProvedInManyWithoutDuplicates) {
  EXPECT_LE(schedules_to_try(commfuse(), both, 16).size(), 12U);
  EXPECT_EQ(schedules_to_prove(commfuse(), ag_gemm, 16).size(), 36U);
  EXPECT_EQ(schedules_to_prove(commfuse(), gemm_rs, 16).size(), 63U);
  // Fewer ranks distinguish fewer schedules.
  EXPECT_LT(schedules_to_prove(commfuse(), gemm_rs, 2).size(), 50U);
  for (const std::int32_t ranks : {1, 2, 3, 4, 5, 7, 8, 16}) {
    const auto schedules = schedules_to_prove(commfuse(), both, ranks);
    for (auto schedule = schedules.begin(); schedule != schedules.end(); ++schedule) {
      EXPECT_EQ(canonical(commfuse(), both, *schedule, ranks), *schedule);
      EXPECT_EQ(std::count(schedules.begin(), schedules.end(), *schedule), 1);
      EXPECT_EQ(refusal_of(commfuse(), both, *schedule, ranks), "");
    }
  }
}

// --- ops per rank: O(ranks) ------------------------------------------------------------------------------------------

struct Counts {
  std::int32_t gemms = 0;
  std::int32_t transfers = 0;
  std::int32_t adds = 0;
  friend bool operator==(const Counts&, const Counts&) = default;
};
void PrintTo(const Counts& counts, std::ostream* out) {
  *out << counts.gemms << " GEMMs, " << counts.transfers << " transfers, " << counts.adds << " adds";
}

Counts counts_of(Scope scope, std::int32_t ranks, const StrategyOptions& options) {
  Counts counts;
  for (const Op& op : generate(operation_of(scope, true), ranks, commfuse(), options).ops) {
    counts.gemms += op.kind == OpKind::gemm ? 1 : 0;
    counts.transfers += op.kind == OpKind::exchange ? 1 : 0;
    counts.adds += op.kind == OpKind::elementwise ? 1 : 0;
  }
  return counts;
}
Counts gather(std::int32_t ranks, const StrategyOptions& options) { return counts_of(Scope::qkv, ranks, options); }
Counts scatter(std::int32_t ranks, const StrategyOptions& options) { return counts_of(Scope::down, ranks, options); }

TEST(CommfuseOps, GrowWithRanksAndPartsInRings) {
  for (const std::int32_t n : {2, 3, 8, 64, 100}) {
    EXPECT_EQ(gather(n, {}), (Counts{n, n - 1, 0}));
    EXPECT_EQ(gather(n, {.sub_slices = 4}), (Counts{1 + 4 * (n - 1), 4 * (n - 1), 0}));
    EXPECT_EQ(gather(n, {.directions = Directions::halves}), (Counts{n, 2 * (n - 1), 0}));
    EXPECT_EQ(gather(n, {.directions = Directions::shards}), (Counts{n, n - 1, 0}));
    EXPECT_EQ(scatter(n, {}), (Counts{n, n - 1, n - 1}));
    EXPECT_EQ(scatter(n, {.sub_slices = 4}), (Counts{1 + 4 * (n - 1), 4 * (n - 1), 4 * (n - 1)}));
    EXPECT_EQ(scatter(n, {.directions = Directions::halves}), (Counts{n, 2 * (n - 1), n - 1}));
    EXPECT_EQ(scatter(n, {.directions = Directions::shards}), (Counts{n, n - 1, n == 2 ? 1 : n - 2}));
  }
}

TEST(CommfuseOps, GrowWithRanksAndPartsInDirectForms) {
  const StrategyOptions on_arrival{.form = Form::direct, .sum = Sum::arrival, .lanes = fused::all_lanes};
  for (const std::int32_t n : {2, 3, 8, 64, 100}) {
    EXPECT_EQ(gather(n, {.form = Form::direct, .lanes = fused::all_lanes}), (Counts{n, n - 1, 0}));
    EXPECT_EQ(gather(n, {.sub_slices = 2, .form = Form::direct}), (Counts{1 + 2 * (n - 1), 2 * (n - 1), 0}));
    EXPECT_EQ(scatter(n, {.form = Form::direct}), (Counts{n, n - 1, 1}));
    EXPECT_EQ(scatter(n, on_arrival), (Counts{n, n - 1, std::max(1, n - 2)}));
  }
}

TEST(CommfuseOps, AreFewerGemmsInGroups) {
  const auto gemms = [](std::int32_t n, std::int32_t g) { return 1 + (n - 1 + g - 1) / g; };
  for (const std::int32_t n : {2, 3, 8, 64, 100}) {
    for (const std::int32_t g : {2, 3, 7}) {
      EXPECT_EQ(gather(n, {.group = g}), (Counts{gemms(n, g), n - 1, 0}));
      EXPECT_EQ(scatter(n, {.form = Form::direct, .group = g}), (Counts{gemms(n, g), n - 1, 1}));
      EXPECT_EQ(scatter(n, {.group = g}), (Counts{gemms(n, g), n - 1, n - 1}));
    }
  }
}

TEST(CommfuseOps, CrossOncePerNodeInNestedRings) {
  for (const auto& [nodes, inner] : {std::pair{2, 2}, {2, 8}, {8, 8}, {3, 5}}) {
    const std::int32_t n = nodes * inner;
    const std::int32_t transfers = nodes * (inner - 1) + nodes - 1;
    EXPECT_EQ(gather(n, {.inner = inner}), (Counts{n, transfers, 0}));
    EXPECT_EQ(scatter(n, {.inner = inner}), (Counts{n, transfers, nodes * (inner - 1)}));
    const Program program = generate(operation_of(Scope::down, true), n, commfuse(), {.inner = inner});
    EXPECT_EQ(program.mesh, (Mesh{{{"node", nodes}, {"tp", inner}}}));
    EXPECT_EQ(std::count_if(program.ops.begin(), program.ops.end(),
                            [&](const Op& op) {
                              const auto* exchange = std::get_if<ExchangeShape>(&program.shapes[op.shape]);
                              return exchange != nullptr && exchange->axis == 0;
                            }),
              nodes - 1);
  }
}

TEST(CommfuseOps, AreOneGemmOnOneRank) {
  for (const StrategyOptions& options : schedules_to_prove(commfuse(), both, 1)) {
    EXPECT_EQ(gather(1, options), (Counts{1, 0, 0}));
    EXPECT_EQ(scatter(1, options), (Counts{1, 0, 0}));
  }
}

}  // namespace
}  // namespace commfuse
