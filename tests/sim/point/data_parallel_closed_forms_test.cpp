// SPDX-License-Identifier: Apache-2.0
// Compares the engine with the closed forms of data parallelism, for 1 to 9 ranks and transfers shorter than, as long
// as and longer than a GEMM. c: one forward GEMM, or one GEMM of dx; w: one GEMM of a gradient; p: one transfer; a: one
// add; g, r: one collective.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "model/strategies/scope.h"
#include "tests/sim/point/closed_forms.h"
#include "tests/sim/simulated.h"

namespace commfuse::test::data_parallel_closed_forms {
namespace {

using namespace std::chrono_literals;

constexpr Duration c = 10us;
constexpr Duration w = 12us;
constexpr Duration a = 3us;
constexpr std::array transfers{Duration{1us},  Duration{7us},  Duration{9us},
                               Duration{10us}, Duration{11us}, Duration{25us}};

Program two_layers(const char* strategy, std::int32_t ranks, const StrategyOptions& options) {
  return generate(operation_of(Scope::data_parallel, true), ranks, *find_strategy(strategy), options);
}

TEST(DataParallelClosedForms, AGatheredWeightTakesAsLongAsAGatheredInput) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    const OpCosts costs{.gemm = c, .exchange = p, .collective = p};
    EXPECT_EQ(Simulated(one_site("serial", SiteKind::weight_ag_gemm, ranks), costs).makespan(), ranks == 1 ? c : p + c);
    for (const std::int32_t slices : {1, 2, 4, 8}) {
      const Simulated sliced(one_site("sliced", SiteKind::weight_ag_gemm, ranks, {.slices = slices}), costs);
      EXPECT_EQ(sliced.makespan(), ranks == 1 ? c : c + (slices - 1) * std::max(c, p) + p);
    }
    for (const Form form : {Form::ring, Form::direct}) {
      const Simulated fused(one_site("commfuse", SiteKind::weight_ag_gemm, ranks, {.form = form}), costs);
      EXPECT_EQ(fused.makespan(), c + (ranks - 1) * std::max(c, p));
    }
  });
}

TEST(DataParallelClosedForms, SerialIsTheSumOfAllOps) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration g) {
    const Simulated simulated(two_layers("serial", ranks, {}), {.gemm = c, .collective = g, .gradient = w});
    EXPECT_EQ(simulated.makespan(), 4 * c + 2 * w + (ranks == 1 ? 0 : 4) * g);
  });
}

TEST(DataParallelClosedForms, SlicesAreGatheredAndScatteredUnderTheNeighbouringLayers) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration r) {
    for (const std::int32_t slices : {1, 2, 4, 8}) {
      Duration compute{};
      for (std::int32_t i = 0; i < 2 * slices; ++i) {  // forward passes of both layers
        compute = std::max(compute, (i + 1) * r) + c;
      }
      Duration comm = 2 * slices * r;
      for (int layer = 0; layer < 2; ++layer) {
        compute += c;  // dx
        for (std::int32_t i = 0; i < slices; ++i) {
          compute += w;
          comm = std::max(comm, compute) + r;
        }
      }
      const Simulated simulated(two_layers("sliced", ranks, {.slices = slices}),
                                {.gemm = c, .collective = r, .gradient = w});
      EXPECT_EQ(simulated.makespan(), ranks == 1 ? 4 * c + 2 * w : std::max(compute, comm));
    }
  });
}

/// Returns the ends of the forward GEMMs of both layers and of their transfers.
std::pair<Duration, Duration> fused_forward(std::int32_t ranks, Duration p) {
  Duration compute{};
  for (std::int32_t layer = 0; layer < 2; ++layer) {
    for (std::int32_t step = 0; step < ranks; ++step) {
      const Duration arrived = step == 0 ? Duration{} : (layer * (ranks - 1) + step) * p;
      compute = std::max(compute, arrived) + c;
    }
  }
  return {compute, 2 * (ranks - 1) * p};
}

TEST(DataParallelClosedForms, TheFusedRingWithAddsOnAuxFollowsItsRecurrence) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    auto [compute, comm] = fused_forward(ranks, p);
    Duration aux{};
    for (int layer = 0; layer < 2; ++layer) {
      std::vector<Duration> added;
      for (std::int32_t step = 0; step < ranks; ++step) {
        // The buffer of a partial GEMM result is free when the add two steps earlier has ended.
        const auto two_ago = static_cast<std::size_t>(std::max(0, step - 2));
        compute = std::max(compute, step >= 3 ? added[two_ago] : Duration{}) + w;
        if (step == 0) {
          added.push_back(compute);
          continue;
        }
        comm = std::max(comm, added.back()) + p;
        aux = std::max({aux, comm, compute}) + a;
        added.push_back(aux);
      }
      compute += c;  // dx
    }
    const Simulated simulated(two_layers("commfuse", ranks, {.add_lane = LaneKind::aux}),
                              {.gemm = c, .exchange = p, .elementwise = a, .gradient = w});
    EXPECT_EQ(simulated.makespan(), std::max(compute, aux));
  });
}

TEST(DataParallelClosedForms, TheFusedDirectFormAddsUpOnAux) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    auto [compute, comm] = fused_forward(ranks, p);
    Duration aux{};
    for (int layer = 0; layer < 2; ++layer) {
      std::vector<Duration> sent;
      for (std::int32_t step = 0; step < ranks; ++step) {
        const bool waits = step >= 2 && step + 1 < ranks;
        compute = std::max(compute, waits ? sent[static_cast<std::size_t>(step) - 2] : Duration{}) + w;
        if (step + 1 < ranks) {
          comm = std::max(comm, compute) + p;
          sent.push_back(comm);
        } else if (ranks > 1) {
          aux = std::max({aux, comm, compute}) + a;
        }
      }
      compute += c;  // dx
    }
    const Simulated simulated(two_layers("commfuse", ranks, {.form = Form::direct}),
                              {.gemm = c, .exchange = p, .elementwise = a, .gradient = w});
    EXPECT_EQ(simulated.makespan(), std::max(compute, aux));
  });
}

TEST(DataParallelClosedForms, NothingIsExposedWhileTransfersAreShorterThanGemms) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    for (const StrategyOptions& options :
         {StrategyOptions{.add_lane = LaneKind::aux}, StrategyOptions{.form = Form::direct}}) {
      const Simulated simulated(two_layers("commfuse", ranks, options),
                                {.gemm = c, .exchange = p, .elementwise = a, .gradient = w});
      if (p + a <= c) {
        EXPECT_EQ(simulated.breakdown().exposed, Duration{});
      } else if (ranks > 1 && p > w) {
        EXPECT_GT(simulated.breakdown().exposed, Duration{});
      }
    }
  });
}

}  // namespace
}  // namespace commfuse::test::data_parallel_closed_forms
