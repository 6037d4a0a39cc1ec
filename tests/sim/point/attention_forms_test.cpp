// SPDX-License-Identifier: Apache-2.0
// Compares the attention block by query slice and under Ulysses with the closed forms of their generators, in whole
// picoseconds. c: one GEMM; e: the core of one slice; p: one transfer; a: one add of a shard; r: one collective; N:
// ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "model/strategies/scope.h"
#include "tests/sim/point/closed_forms.h"
#include "tests/sim/simulated.h"

namespace commfuse::test::attention_forms {
namespace {

using namespace std::chrono_literals;

constexpr Duration c = 4us;
constexpr Duration e = 6us;
constexpr Duration a = 3us;
constexpr std::array transfers{Duration{1us},  Duration{5us},  Duration{9us},
                               Duration{10us}, Duration{11us}, Duration{25us}};

Program program_of(Scope scope, const char* strategy, std::int32_t ranks, const StrategyOptions& options) {
  return generate(operation_of(scope, true), Mesh{{{"tp", ranks}}}, 0, *find_strategy(strategy), options);
}

/// Returns the time of one part plus, for each of N - 1 steps, the longer of part and transfer. Every gather, scatter
/// and exchange of heads takes N - 1 steps.
Duration steps(std::int32_t ranks, Duration part, Duration p) { return part + (ranks - 1) * std::max(part, p); }

TEST(AttentionForms, ByQueryInDirectFormHidesTransfersUnderCoreAndGemm) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    const Duration sum = ranks == 1 ? Duration{} : a * (ranks + 1) / 3;
    for (const AttentionCut cut : {AttentionCut::by_query, AttentionCut::zigzag}) {
      const Simulated simulated(
          program_of(Scope::attention, "commfuse", ranks, {.form = Form::direct, .attention = cut}),
          {.gemm = c, .attention = e, .exchange = p, .elementwise = sum});
      EXPECT_EQ(simulated.makespan(), steps(ranks, c, p) + steps(ranks, e + c, p) + sum);
    }
  });
}

TEST(AttentionForms, ByQueryInRingFormHidesTransfersUnderCoreAndGemm) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    const Simulated simulated(program_of(Scope::attention, "commfuse", ranks, {.attention = AttentionCut::by_query}),
                              {.gemm = c, .attention = e, .exchange = p, .elementwise = a});
    EXPECT_EQ(simulated.makespan(), steps(ranks, c, p) + e + c + (ranks - 1) * (std::max(e + c, p) + a));
  });
}

TEST(AttentionForms, ByQuerySlicedHidesScattersUnderCoreAndGemm) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration r) {
    for (const std::int32_t k : {1, 2, 4, 8}) {
      const Simulated simulated(
          program_of(Scope::attention, "sliced", ranks, {.slices = k, .attention = AttentionCut::by_query}),
          {.gemm = c, .attention = e, .collective = r});
      EXPECT_EQ(simulated.makespan(), ranks == 1 ? c + e + c : steps(k, c, r) + r + steps(k, e + c, r) + r);
    }
  });
}

TEST(UlyssesForms, SerialIsTheSumOfAllItsParts) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration r) {
    const Simulated simulated(program_of(Scope::ulysses, "serial", ranks, {}),
                              {.gemm = c, .attention = e, .collective = r});
    EXPECT_EQ(simulated.makespan(), ranks == 1 ? c + e + c : c + r + e + r + c);
  });
}

TEST(UlyssesForms, SlicedHidesAllButTheFirstAndTheLastAllToAll) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration r) {
    for (const std::int32_t k : {1, 2, 4, 8}) {
      for (const AttentionCut cut : {AttentionCut::whole, AttentionCut::by_query}) {
        const bool whole = cut == AttentionCut::whole;
        const Duration begin = steps(k, c, r) + r;
        Duration end = begin + (whole ? e : k * e);
        Duration arrived = begin;
        for (std::int32_t i = 0; i < k; ++i) {
          arrived = std::max(arrived, begin + (whole ? e : (i + 1) * e)) + r;
          end = std::max(end, arrived) + c;
        }
        const Simulated simulated(program_of(Scope::ulysses, "sliced", ranks, {.slices = k, .attention = cut}),
                                  {.gemm = c, .attention = e, .collective = r});
        EXPECT_EQ(simulated.makespan(), ranks == 1 ? c + e + c : end) << k;
      }
    }
  });
}

TEST(UlyssesForms, FuseAllToAllAddsUpHeadGroupsAsTheyArrive) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    for (const AttentionCut cut : {AttentionCut::whole, AttentionCut::by_query, AttentionCut::zigzag}) {
      const bool whole = cut == AttentionCut::whole;
      const Duration begin = steps(ranks, c, p);
      Duration end = begin + (whole ? e : ranks * e) + c;
      Duration arrived = begin;
      for (std::int32_t i = 1; i < ranks; ++i) {
        arrived = std::max(arrived, begin + (whole ? e : i * e)) + p;
        end = std::max(end, arrived) + c;
      }
      const Simulated simulated(program_of(Scope::ulysses, "commfuse", ranks, {.attention = cut}),
                                {.gemm = c, .attention = e, .exchange = p});
      EXPECT_EQ(simulated.makespan(), end);
    }
  });
}

TEST(UlyssesForms, FuseAllToAllExposesNothingWhileAStepIsNoLongerThanAGemm) {
  for (std::int32_t ranks = 2; ranks <= 9; ++ranks) {
    const Simulated simulated(program_of(Scope::ulysses, "commfuse", ranks, {.attention = AttentionCut::by_query}),
                              {.gemm = c, .attention = e, .exchange = c});
    EXPECT_EQ(simulated.breakdown().exposed, Duration{});
  }
}

}  // namespace
}  // namespace commfuse::test::attention_forms
