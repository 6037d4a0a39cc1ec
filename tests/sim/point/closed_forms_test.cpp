// SPDX-License-Identifier: Apache-2.0
// Compares the engine with the closed forms, in whole picoseconds, for 1 to 9 ranks and transfers shorter than, as long
// as and longer than a GEMM. c: one GEMM; p: one transfer; a: one add of a shard; r: one slice's collective; N:
// ranks; E(i): end of the add of step i.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "model/strategies/scope.h"
#include "tests/sim/point/closed_forms.h"
#include "tests/sim/simulated.h"

namespace commfuse::test::closed_forms {
namespace {

using namespace std::chrono_literals;

constexpr Duration c = 10us;
constexpr Duration a = 3us;
constexpr std::array transfers{Duration{1us},  Duration{7us},  Duration{9us},
                               Duration{10us}, Duration{11us}, Duration{25us}};

StrategyOptions form(Form form, LaneKind add_lane = LaneKind::compute) {
  StrategyOptions options;
  options.form = form;
  options.add_lane = add_lane;
  return options;
}

TEST(ClosedForms, FuseAgTakesOneGemmThenTheLongerOfGemmAndTransferPerStep) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    for (const Form ring_or_direct : {Form::ring, Form::direct}) {
      const Simulated simulated(one_site("commfuse", SiteKind::ag_gemm, ranks, form(ring_or_direct)),
                                {.gemm = c, .exchange = p});
      EXPECT_EQ(simulated.makespan(), c + (ranks - 1) * std::max(c, p));
    }
  });
}

TEST(ClosedForms, FuseRsDirectAddsTheSumOfItsBuffersAtTheEnd) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    // The sum has N reads and one write, while an add of two has two reads and one write: a (N+1)/3. One rank has
    // nothing to sum.
    const Duration sum = ranks == 1 ? Duration{} : a * (ranks + 1) / 3;
    const Simulated simulated(one_site("commfuse", SiteKind::gemm_rs, ranks, form(Form::direct)),
                              {.gemm = c, .exchange = p, .elementwise = sum});
    EXPECT_EQ(simulated.makespan(), c + (ranks - 1) * std::max(c, p) + sum);
  });
}

TEST(ClosedForms, FuseRsRingWithAddsOnTheComputeLanePaysOneAddPerStep) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    const Simulated simulated(one_site("commfuse", SiteKind::gemm_rs, ranks, form(Form::ring)),
                              {.gemm = c, .exchange = p, .elementwise = a});
    EXPECT_EQ(simulated.makespan(), c + (ranks - 1) * (std::max(c, p) + a));
  });
}

TEST(ClosedForms, FuseRsRingOfFourRanksTakes46) {
  // c = 10 us, p = 6 us, a = 2 us: 10 + 3 x (10 + 2) = 46 us.
  const Simulated simulated(one_site("commfuse", SiteKind::gemm_rs, 4, form(Form::ring)),
                            {.gemm = 10us, .exchange = 6us, .elementwise = 2us});
  EXPECT_EQ(simulated.makespan(), Duration{46us});
}

TEST(ClosedForms, FuseRsRingWithAddsOnTheirOwnLaneFollowsItsRecurrence) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    Duration e = c;  // E(0) = c; E(i) = max((i+1) c, E(i-1) + p) + a
    for (std::int32_t step = 1; step < ranks; ++step) {
      e = std::max((step + 1) * c, e + p) + a;
    }
    const Simulated simulated(one_site("commfuse", SiteKind::gemm_rs, ranks, form(Form::ring, LaneKind::aux)),
                              {.gemm = c, .exchange = p, .elementwise = a});
    EXPECT_EQ(simulated.makespan(), e);
  });
}

TEST(ClosedForms, SerialIsCollectivePlusGemmOrTheGemmOfOneRank) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration collective) {
    for (const SiteKind kind : {SiteKind::ag_gemm, SiteKind::gemm_rs, SiteKind::gemm_ar}) {
      const Simulated simulated(one_site("serial", kind, ranks), {.gemm = c, .collective = collective});
      EXPECT_EQ(simulated.makespan(), ranks == 1 ? c : c + collective);
    }
  });
}

TEST(ClosedForms, SlicingTakesGemmAndCollectiveThenTheLongerPerFurtherSlice) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration r) {
    for (const std::int32_t slices : {1, 2, 4, 8}) {
      StrategyOptions options;
      options.slices = slices;
      for (const SiteKind kind : {SiteKind::ag_gemm, SiteKind::gemm_rs, SiteKind::gemm_ar}) {
        const Simulated simulated(one_site("sliced", kind, ranks, options), {.gemm = c, .collective = r});
        EXPECT_EQ(simulated.makespan(), ranks == 1 ? c : c + (slices - 1) * std::max(c, r) + r);
      }
    }
  });
}

TEST(ClosedForms, CopiedSlicesPayOneCopyOfTheWholeInputOrOutput) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration r) {
    for (const std::int32_t slices : {1, 2, 4, 8}) {
      StrategyOptions options;
      options.slices = slices;
      put(*option_named("shuffles"), "copied", options);
      const Duration copy = slices == 1 || ranks == 1 ? Duration{} : a;  // a single slice has nothing to shuffle
      for (const SiteKind kind : {SiteKind::ag_gemm, SiteKind::gemm_rs}) {
        const Simulated simulated(one_site("sliced", kind, ranks, options),
                                  {.gemm = c, .collective = r, .elementwise = a});
        EXPECT_EQ(simulated.makespan(), ranks == 1 ? c : c + (slices - 1) * std::max(c, r) + r + copy);
        EXPECT_EQ(simulated.breakdown().local, copy);
      }
    }
  });
}

TEST(ClosedForms, LoopedEinsumGathersAsFuseAgDoes) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    const Simulated simulated(one_site("looped_einsum", SiteKind::ag_gemm, ranks), {.gemm = c, .exchange = p});
    EXPECT_EQ(simulated.makespan(), c + (ranks - 1) * std::max(c, p));
  });
}

TEST(ClosedForms, LoopedEinsumScattersInOneIterationPerRank) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    // Zeroing costs as much as an add: a + N (max(c, p) + a). One rank has nothing to send.
    const Duration expected = ranks == 1 ? c : a + ranks * (std::max(c, p) + a);
    const Simulated simulated(one_site("looped_einsum", SiteKind::gemm_rs, ranks),
                              {.gemm = c, .exchange = p, .elementwise = a});
    EXPECT_EQ(simulated.makespan(), expected);
  });
}

TEST(ClosedForms, LoopedEinsumWaitsEveryIterationAndFuseAgDoesNot) {
  // Four ranks; the first GEMM takes 25 us, the others 10 us, transfers 15 us.
  const auto slow_first = [](const char* strategy) {
    return Simulated(one_site(strategy, SiteKind::ag_gemm, 4), {.gemm = 10us, .exchange = 15us},
                     [](Costs& costs) { costs.duration[1] = 25us; });
  };
  // FuseAG: transfers end at 15, 30, 45; GEMMs 0-25, 25-35, 35-45, 45-55.
  EXPECT_EQ(slow_first("commfuse").makespan(), Duration{55us});
  // The loop: iterations end at 25, 40, 55; the last GEMM at 65.
  EXPECT_EQ(slow_first("looped_einsum").makespan(), Duration{65us});
}

TEST(ClosedForms, AsyncTpGathersAsFuseAgDoesAfterItsCopyIntoSymmetricMemory) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    const Simulated simulated(one_site("async_tp", SiteKind::ag_gemm, ranks),
                              {.gemm = c, .exchange = p, .elementwise = a});
    EXPECT_EQ(simulated.makespan(), (ranks == 1 ? Duration{} : a) + c + (ranks - 1) * std::max(c, p));
  });
}

TEST(ClosedForms, AsyncTpScattersWithOneMoreGapForAnOddNumberOfRanks) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    const Duration sum = ranks == 1 ? Duration{} : a;
    const Duration gap = ranks > 1 && ranks % 2 == 1 ? std::min(c, p) : Duration{};
    const Simulated simulated(one_site("async_tp", SiteKind::gemm_rs, ranks),
                              {.gemm = c, .exchange = p, .elementwise = a});
    EXPECT_EQ(simulated.makespan(), c + (ranks - 1) * std::max(c, p) + gap + sum);
  });
}

TEST(ClosedForms, RingExchangeTakesAsLongAsFuseAgRingAndFuseRsDirect) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    const Simulated gather(one_site("ring_exchange", SiteKind::ag_gemm, ranks), {.gemm = c, .exchange = p});
    EXPECT_EQ(gather.makespan(), c + (ranks - 1) * std::max(c, p));
    const Simulated scatter(one_site("ring_exchange", SiteKind::gemm_rs, ranks),
                            {.gemm = c, .exchange = p, .elementwise = a});
    EXPECT_EQ(scatter.makespan(), c + (ranks - 1) * std::max(c, p) + (ranks == 1 ? Duration{} : a));
  });
}

TEST(ClosedForms, RingExchangeInPairsExposesItsFirstTransferOnly) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    StrategyOptions options;
    options.group = 2;
    // Every op is scaled by its number of shards: c and p are those of one shard.
    Simulated simulated(one_site("ring_exchange", SiteKind::ag_gemm, ranks, options), OpCosts{});
    for (std::size_t op = 0; op < simulated.program->ops.size(); ++op) {
      const Shape& shape = simulated.program->shapes[simulated.program->ops[op].shape];
      const auto* gemm = std::get_if<GemmShape>(&shape);
      simulated.costs.duration[op] =
          gemm != nullptr ? gemm->m.blocks * c : std::get<ExchangeShape>(shape).rows.blocks * p;
    }
    simulated.run();
    const std::int32_t pairs = ranks / 2;
    Duration expected = ranks == 1 ? c : p + 2 * c + (pairs - 1) * std::max(2 * c, 2 * p);
    if (ranks > 1 && ranks % 2 == 1) {  // The remaining shard moves under the last pair's GEMM.
      expected = p + (pairs - 1) * std::max(2 * c, 2 * p) + std::max(2 * c, p) + c;
    }
    EXPECT_EQ(simulated.makespan(), expected);
  });
}

TEST(ClosedForms, FusedKernelIsTheLongerOfKernelAndTransfersPlusOneBlock) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    for (const std::int32_t blocks : {1, 2, 4, 8}) {
      StrategyOptions options;
      options.sub_slices = blocks;
      const Duration kernel = ranks * blocks * c;  // c and p are those of one block
      const Duration moving = (ranks - 1) * blocks * p;
      for (const SiteKind kind : {SiteKind::ag_gemm, SiteKind::gemm_rs}) {
        const Simulated simulated(one_site("fused_kernel", kind, ranks, options), {.gemm = c, .exchange = p});
        EXPECT_EQ(simulated.makespan(), std::max(kernel, moving + c));
      }
    }
  });
}

TEST(ClosedForms, AFusedAllReduceExposesTheSumsOfTheLastBlock) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    for (const std::int32_t blocks : {1, 2, 4, 8}) {
      StrategyOptions options;
      options.sub_slices = blocks;
      Duration moved{};  // end of the last transfer; c and p are those of one block
      for (std::int32_t block = 0; block < blocks; ++block) {
        for (std::int32_t step = 1; step < ranks; ++step) {
          moved = std::max(moved, (block * ranks + step) * c) + p;
        }
        moved = std::max(moved, (block + 1) * ranks * c) + (ranks - 1) * p;
      }
      const Simulated simulated(one_site("fused_kernel", SiteKind::gemm_ar, ranks, options),
                                {.gemm = c, .exchange = p});
      EXPECT_EQ(simulated.makespan(), moved);
    }
  });
}

TEST(ClosedForms, CommFuseGathersTheSumsThatItScattered) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    const OpCosts costs{.gemm = c, .exchange = p, .collective = 5us, .elementwise = a};
    for (const StrategyOptions& options : schedules_to_try(commfuse_strategy, std::array{SiteKind::gemm_rs}, ranks)) {
      const Simulated scattered(one_site("commfuse", SiteKind::gemm_rs, ranks, options), costs);
      const Simulated reduced(one_site("commfuse", SiteKind::gemm_ar, ranks, options), costs);
      EXPECT_EQ(reduced.makespan(), scattered.makespan() + (ranks == 1 ? Duration{} : Duration{5us}));
    }
  });
}

TEST(ClosedForms, TokenWeaveHidesAllButTheLastAllReduce) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration r) {
    // For one half of the tokens: m is its MLP, two GEMMs and an activation; f is two collectives, residual and norm.
    const Duration m = c + a + c;
    const Duration f = r + a + a + r;
    const Simulated simulated(one_site("tokenweave", SiteKind::mlp_ar, ranks),
                              {.gemm = c, .collective = r, .elementwise = a});
    const Duration one_rank_time = m + a + a;
    EXPECT_EQ(simulated.makespan(), ranks == 1 ? one_rank_time : m + std::max(m, f) + f);
    const Simulated two_mlps(generate(operation_of(Scope::mlp_ar, true), ranks, tokenweave_strategy, {}),
                             {.gemm = c, .collective = r, .elementwise = a});
    EXPECT_EQ(two_mlps.makespan(), ranks == 1 ? 2 * one_rank_time : m + 3 * std::max(m, f) + f);
  });
}

TEST(ClosedForms, AnAllReducedMlpIsSerialOrSlicesItsSecondGemm) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration r) {
    const Duration one_rank_time = c + a + c + a + a;
    const Simulated serial(one_site("serial", SiteKind::mlp_ar, ranks), {.gemm = c, .collective = r, .elementwise = a});
    EXPECT_EQ(serial.makespan(), ranks == 1 ? one_rank_time : one_rank_time + r);
    for (const std::int32_t slices : {1, 2, 4, 8}) {
      StrategyOptions options;
      options.slices = slices;
      const Simulated sliced(one_site("sliced", SiteKind::mlp_ar, ranks, options),
                             {.gemm = c, .collective = r, .elementwise = a});
      EXPECT_EQ(sliced.makespan(), ranks == 1 ? one_rank_time : one_rank_time + (slices - 1) * std::max(c, r) + r);
    }
  });
}

TEST(ClosedForms, CommFuseExposesNothingIffATransferIsNoLongerThanAGemm) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    const bool hidden = ranks == 1 || p <= c;
    const Simulated gather(one_site("commfuse", SiteKind::ag_gemm, ranks), {.gemm = c, .exchange = p});
    EXPECT_EQ(gather.breakdown().exposed == Duration{}, hidden);
    const Simulated scatter(one_site("commfuse", SiteKind::gemm_rs, ranks),
                            {.gemm = c, .exchange = p, .elementwise = a});
    EXPECT_EQ(scatter.breakdown().exposed == Duration{}, hidden);
    const bool hidden_aux = ranks <= 2 ? hidden : p + a <= c;
    const Simulated aux(one_site("commfuse", SiteKind::gemm_rs, ranks, form(Form::ring, LaneKind::aux)),
                        {.gemm = c, .exchange = p, .elementwise = a});
    EXPECT_EQ(aux.breakdown().exposed == Duration{}, hidden_aux);
  });
}

TEST(ClosedForms, SlicedGatherShowsItsFirstSliceAsHeadAndTheRestAsBubble) {
  // Four slices, each with a collective of 25 us and a GEMM of 10 us: the head is 25 us, then there is a gap of 15 us
  // before each of the other three GEMMs, and no tail.
  StrategyOptions options;
  options.slices = 4;
  const Breakdown parts =
      Simulated(one_site("sliced", SiteKind::ag_gemm, 4, options), {.gemm = 10us, .collective = 25us, .compute = 40us})
          .breakdown();
  EXPECT_EQ(parts.head, Duration{25us});
  EXPECT_EQ(parts.bubble, Duration{45us});
  EXPECT_EQ(parts.tail, Duration{0us});
  EXPECT_EQ(parts.exposed, Duration{70us});
}

TEST(ClosedForms, SlicedScatterShowsEverythingAsTail) {
  // Four slices, each with a GEMM of 10 us and a collective of 25 us: the GEMMs end at 40 us, the collectives at 10 + 4
  // x 25 = 110 us.
  StrategyOptions options;
  options.slices = 4;
  const Breakdown parts =
      Simulated(one_site("sliced", SiteKind::gemm_rs, 4, options), {.gemm = 10us, .collective = 25us, .compute = 40us})
          .breakdown();
  EXPECT_EQ(parts.head, Duration{0us});
  EXPECT_EQ(parts.bubble, Duration{0us});
  EXPECT_EQ(parts.tail, Duration{70us});
}

}  // namespace
}  // namespace commfuse::test::closed_forms
