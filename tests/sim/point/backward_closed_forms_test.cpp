// SPDX-License-Identifier: Apache-2.0
// Compares the engine with the closed forms of backward passes that the files of model/strategies state, for 1 to 9
// ranks and transfers shorter than, as long as and longer than a GEMM. c: one GEMM of a shard; w: the GEMM of the
// gradient; p: one transfer; a: one add of a shard; s: the sum of all shards; g: one collective; N: ranks; E(i): end
// of step i on the lane of transfers and adds. Copies take no time, except in async_tp and ring_exchange, where a copy
// takes as long as an add.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "tests/sim/point/closed_forms.h"
#include "tests/sim/simulated.h"

namespace commfuse::test::backward_closed_forms {
namespace {

using namespace std::chrono_literals;

constexpr Duration c = 10us;
constexpr Duration a = 3us;
constexpr std::array transfers{Duration{1us},  Duration{5us},  Duration{7us}, Duration{9us},
                               Duration{10us}, Duration{11us}, Duration{25us}};

template <class Check>
void for_all_cases(Check check) {
  for_all_ranks_and_transfers(1, transfers, [&](std::int32_t ranks, Duration p) {
    for (const Duration w : {Duration{8us}, ranks * c}) {
      SCOPED_TRACE(testing::Message() << "w = " << w.count() << " ps");
      check(ranks, p, w);
    }
  });
}

StrategyOptions options_with(Form form, LaneKind add_lane, Regather regather) {
  return {.form = form, .add_lane = add_lane, .regather = regather};
}

/// Returns the time of the gather of x that comes first on the lane: (N-1) p, unless x was saved whole.
Duration gather(std::int32_t ranks, Duration p, Regather regather) {
  return regather == Regather::saved ? Duration{} : (ranks - 1) * p;
}

TEST(BackwardClosedForms, SerialIsTheSumOfItsParts) {
  for_all_cases([](std::int32_t ranks, Duration transfer, Duration w) {
    const Duration g = ranks == 1 ? Duration{} : transfer;
    const OpCosts costs{.gemm = c, .collective = transfer, .gradient = w};
    EXPECT_EQ(Simulated(one_site("serial", SiteKind::ag_gemm_backward, ranks), costs).makespan(), g + c + g + w);
    EXPECT_EQ(Simulated(one_site("serial", SiteKind::ag_gemm_backward, ranks, {.regather = Regather::saved}), costs)
                  .makespan(),
              c + g + w);
    EXPECT_EQ(Simulated(one_site("serial", SiteKind::gemm_rs_backward, ranks), costs).makespan(), g + c + w);
  });
}

TEST(BackwardClosedForms, TheColumnGemmsHideOneCollectiveEach) {
  for_all_cases([](std::int32_t ranks, Duration transfer, Duration w) {
    const Duration g = ranks == 1 ? Duration{} : transfer;
    const OpCosts costs{.gemm = c, .collective = transfer, .gradient = w};
    EXPECT_EQ(Simulated(one_site("sliced", SiteKind::ag_gemm_backward, ranks), costs).makespan(),
              std::max(c, g) + std::max(w, g));
    EXPECT_EQ(Simulated(one_site("sliced", SiteKind::ag_gemm_backward, ranks, {.regather = Regather::saved}), costs)
                  .makespan(),
              c + std::max(w, g));
  });
}

TEST(BackwardClosedForms, TheRowGatherIsSlicedAndTheGradientFollows) {
  for_all_cases([](std::int32_t ranks, Duration r, Duration w) {
    for (const std::int32_t slices : {1, 2, 4, 8}) {
      const Simulated simulated(one_site("sliced", SiteKind::gemm_rs_backward, ranks, {.slices = slices}),
                                {.gemm = c, .collective = r, .gradient = w});
      EXPECT_EQ(simulated.makespan(), ranks == 1 ? c + w : c + (slices - 1) * std::max(c, r) + r + w);
    }
  });
}

TEST(BackwardClosedForms, TheFusedRowComputesTheGradientAtTheEndOrPerShard) {
  for_all_cases([](std::int32_t ranks, Duration p, Duration w) {
    for (const Form form : {Form::ring, Form::direct}) {
      const OpCosts costs{.gemm = c, .exchange = p, .gradient = w};
      EXPECT_EQ(Simulated(one_site("commfuse", SiteKind::gemm_rs_backward, ranks, {.form = form}), costs).makespan(),
                c + (ranks - 1) * std::max(c, p) + w);
      EXPECT_EQ(
          Simulated(one_site("commfuse", SiteKind::gemm_rs_backward, ranks, {.form = form, .sum = Sum::arrival}), costs)
              .makespan(),
          c + w + (ranks - 1) * std::max(c + w, p));
    }
  });
}

TEST(BackwardClosedForms, TheFusedColumnDirectGathersFirstAndScattersUnderTheGradient) {
  for_all_cases([](std::int32_t ranks, Duration p, Duration w) {
    for (const Regather regather : {Regather::again, Regather::saved}) {
      const Duration gathered = gather(ranks, p, regather);
      const Duration sum = ranks == 1 ? Duration{} : a * (ranks + 1) / 3;
      Duration e = gathered;  // E(0): end of the gather; E(i) = max(E(i-1), i c) + p
      for (std::int32_t i = 1; i < ranks; ++i) {
        e = std::max(e, i * c) + p;
      }
      const Simulated simulated(one_site("commfuse", SiteKind::ag_gemm_backward, ranks,
                                         options_with(Form::direct, LaneKind::compute, regather)),
                                {.gemm = c, .exchange = p, .elementwise = sum, .gradient = w, .copy = Duration{}});
      EXPECT_EQ(simulated.makespan(), std::max(std::max(ranks * c, gathered) + w, e) + sum);
    }
  });
}

TEST(BackwardClosedForms, TheFusedColumnRingWithAddsOnAuxFollowsItsRecurrence) {
  for_all_cases([](std::int32_t ranks, Duration p, Duration w) {
    for (const Regather regather : {Regather::again, Regather::saved}) {
      const Duration gathered = gather(ranks, p, regather);
      Duration e = std::max(c, gathered);  // E(i) = max(E(i-1) + p, (i+1) c) + a
      for (std::int32_t i = 1; i < ranks; ++i) {
        e = std::max(e + p, (i + 1) * c) + a;
      }
      const Simulated simulated(
          one_site("commfuse", SiteKind::ag_gemm_backward, ranks, options_with(Form::ring, LaneKind::aux, regather)),
          {.gemm = c, .exchange = p, .elementwise = a, .gradient = w, .copy = Duration{}});
      EXPECT_EQ(simulated.makespan(), std::max(std::max(ranks * c, gathered) + w, e));
    }
  });
}

TEST(BackwardClosedForms, TheFusedColumnRingWithAddsOnComputeHidesItsLastStep) {
  for_all_cases([](std::int32_t ranks, Duration p, Duration w) {
    for (const Regather regather : {Regather::again, Regather::saved}) {
      const Duration one_gather = regather == Regather::saved ? Duration{} : p;
      Duration compute = c;                                  // Time when the compute lane is free.
      Duration comm = ranks == 1 ? Duration{} : one_gather;  // Time when the communication lane is free.
      Duration arrival = comm;                               // Time when all requested shards of x have arrived.
      Duration scattered{};                                  // Time when the last step of the scatter has ended.
      Duration summed = c;                                   // Time when the running sum can continue.
      for (std::int32_t i = 1; i < ranks; ++i) {
        scattered = std::max(comm, summed) + p;
        comm = scattered + (i + 1 < ranks ? one_gather : Duration{});
        arrival = i + 1 < ranks ? comm : arrival;
        compute += c;
        if (i + 1 < ranks) {
          compute = std::max(compute, scattered) + a;
          summed = compute;
        }
      }
      const Duration gradient = std::max(compute, regather == Regather::saved ? Duration{} : arrival) + w;
      const Duration end = ranks == 1 ? gradient : std::max(gradient, scattered) + a;
      const Simulated simulated(one_site("commfuse", SiteKind::ag_gemm_backward, ranks,
                                         options_with(Form::ring, LaneKind::compute, regather)),
                                {.gemm = c, .exchange = p, .elementwise = a, .gradient = w, .copy = Duration{}});
      EXPECT_EQ(simulated.makespan(), end);
    }
  });
}

TEST(BackwardClosedForms, LoopedEinsumRunsALoopForEachGradientOfAColumn) {
  for_all_cases([](std::int32_t ranks, Duration p, Duration w) {
    const auto makespan = [&](SiteKind kind, Regather regather) {
      return Simulated(one_site("looped_einsum", kind, ranks, {.regather = regather}),
                       {.gemm = c, .exchange = p, .elementwise = a, .gradient = w, .copy = Duration{}})
          .makespan();
    };
    // Zeroing costs as much as an add. One rank has no loop.
    const Duration scattered = ranks == 1 ? c : a + ranks * (std::max(c, p) + a);
    EXPECT_EQ(makespan(SiteKind::ag_gemm_backward, Regather::again), scattered + w + (ranks - 1) * std::max(w, p));
    EXPECT_EQ(makespan(SiteKind::ag_gemm_backward, Regather::saved), scattered + w);
    EXPECT_EQ(makespan(SiteKind::gemm_rs_backward, Regather::again), c + (ranks - 1) * std::max(c, p) + w);
  });
}

TEST(BackwardClosedForms, AsyncTpHidesNothingUnderTheGradient) {
  for_all_cases([](std::int32_t ranks, Duration p, Duration w) {
    constexpr Duration all_gather = 6us;
    const OpCosts costs{.gemm = c, .exchange = p, .collective = all_gather, .elementwise = a, .gradient = w};
    const bool single_rank = ranks == 1;
    const Duration gap = !single_rank && ranks % 2 == 1 ? std::min(c, p) : Duration{};
    const Duration scattered = c + (ranks - 1) * std::max(c, p) + gap + (single_rank ? Duration{} : a);
    const auto makespan = [&](SiteKind kind, Regather regather) {
      return Simulated(one_site("async_tp", kind, ranks, {.regather = regather}), costs).makespan();
    };
    EXPECT_EQ(makespan(SiteKind::ag_gemm_backward, Regather::again),
              scattered + (single_rank ? Duration{} : all_gather) + w);
    EXPECT_EQ(makespan(SiteKind::ag_gemm_backward, Regather::saved), scattered + w);
    // The copy into symmetric memory comes first; the copy of the rank's own shard overlaps the last GEMM.
    EXPECT_EQ(makespan(SiteKind::gemm_rs_backward, Regather::again),
              (single_rank ? Duration{} : a) + c + (ranks - 1) * std::max(c, p) + w);
  });
}

TEST(BackwardClosedForms, RingExchangeGathersDuringItsScatterAndSumsBeforeTheGradient) {
  for_all_cases([](std::int32_t ranks, Duration p, Duration w) {
    constexpr Duration all_gather = 150us;  // longer than most scatters
    const OpCosts costs{.gemm = c, .exchange = p, .collective = all_gather, .elementwise = a, .gradient = w};
    const bool single_rank = ranks == 1;
    const Duration scattered = c + (ranks - 1) * std::max(c, p) + (single_rank ? Duration{} : a);
    const auto makespan = [&](SiteKind kind, Regather regather) {
      return Simulated(one_site("ring_exchange", kind, ranks, {.regather = regather}), costs).makespan();
    };
    EXPECT_EQ(makespan(SiteKind::ag_gemm_backward, Regather::again),
              std::max(scattered, single_rank ? Duration{} : all_gather) + w);
    EXPECT_EQ(makespan(SiteKind::ag_gemm_backward, Regather::saved), scattered + w);
    // dy is copied into the buffer of the ring first.
    EXPECT_EQ(makespan(SiteKind::gemm_rs_backward, Regather::again),
              (single_rank ? Duration{} : a) + c + (ranks - 1) * std::max(c, p) + w);
  });
}

TEST(BackwardClosedForms, NothingIsExposedWhileTransfersAreShortEnough) {
  for_all_cases([](std::int32_t ranks, Duration p, Duration) {
    const Duration w = ranks * c;
    const auto exposed = [&](SiteKind kind, const StrategyOptions& options) {
      return Simulated(one_site("commfuse", kind, ranks, options),
                       {.gemm = c, .exchange = p, .elementwise = a, .gradient = w, .copy = Duration{}})
                 .breakdown()
                 .exposed != Duration{};
    };
    if (p <= c) {
      EXPECT_FALSE(exposed(SiteKind::gemm_rs_backward, {}));
      EXPECT_FALSE(exposed(SiteKind::ag_gemm_backward, {.form = Form::direct}));
    }
    if (2 * p <= c + a) {
      EXPECT_FALSE(exposed(SiteKind::ag_gemm_backward, {}));
    }
    if (ranks > 1 && p > c) {
      EXPECT_TRUE(exposed(SiteKind::gemm_rs_backward, {}));
    }
  });
}

}  // namespace
}  // namespace commfuse::test::backward_closed_forms
