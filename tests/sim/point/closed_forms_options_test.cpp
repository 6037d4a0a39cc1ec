// SPDX-License-Identifier: Apache-2.0
// Compares the options of CommFuse with their closed forms, in whole picoseconds, for 1 to 9 ranks and transfers
// shorter than, as long as and longer than a GEMM. c: one GEMM; p: one transfer; a: one add of a shard; m: parts
// of a shard; g: shards per GEMM; L: lanes; N: ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "tests/sim/point/closed_forms.h"
#include "tests/sim/simulated.h"

namespace commfuse::test::closed_forms_options {
namespace {

using namespace std::chrono_literals;

constexpr Duration c = 12us;
constexpr Duration a = 3us;
constexpr std::array transfers{Duration{1us},  Duration{7us},  Duration{11us}, Duration{12us},
                               Duration{13us}, Duration{17us}, Duration{25us}, Duration{60us}};

Duration gathered(std::int32_t ranks, const StrategyOptions& options, Duration p) {
  return Simulated(one_site_of(SiteKind::ag_gemm, ranks, options), ShardCosts{.shard_gemm = c, .transfer = p})
      .makespan();
}
Duration scattered(std::int32_t ranks, const StrategyOptions& options, Duration p) {
  return Simulated(one_site_of(SiteKind::gemm_rs, ranks, options), ShardCosts{.shard_gemm = c, .transfer = p, .add = a})
      .makespan();
}

/// Returns how many shards each GEMM multiplies, except the GEMM of the rank's own shard: first (N - 1) mod g if that
/// is not 0, then g each time.
std::vector<std::int32_t> groups_of(std::int32_t ranks, std::int32_t g) {
  std::vector<std::int32_t> sizes;
  for (std::int32_t remaining = ranks - 1; remaining > 0; remaining -= sizes.back()) {
    sizes.push_back(remaining % g == 0 ? g : remaining % g);
  }
  return sizes;
}

// --- FuseAG ----------------------------------------------------------------------------------------------------------

TEST(ClosedForms, FuseAgInPartsHasOnlyOnePartLeftAfterTheLastArrival) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    for (const Form form : {Form::ring, Form::direct}) {
      for (const std::int32_t m : {1, 2, 4}) {
        EXPECT_EQ(gathered(ranks, {.sub_slices = m, .form = form}, p),
                  std::max(ranks * c, (ranks - 1) * p + c / (ranks == 1 ? 1 : m)));
      }
    }
  });
}

TEST(ClosedForms, FuseAgInHalvesBothWaysTakesHalfATransferPerStep) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    const StrategyOptions halves{.lanes = 2, .directions = Directions::halves};
    EXPECT_EQ(gathered(ranks, halves, p), c + (ranks - 1) * std::max(c, p / 2));
    StrategyOptions in_parts = halves;
    in_parts.sub_slices = 2;
    EXPECT_EQ(gathered(ranks, in_parts, p), std::max(ranks * c, (ranks - 1) * p / 2 + c / (ranks == 1 ? 1 : 2)));
    // On one lane the two halves follow each other, which gains nothing.
    EXPECT_EQ(gathered(ranks, {.directions = Directions::halves}, p), c + (ranks - 1) * std::max(c, p));
  });
}

TEST(ClosedForms, FuseAgInWholeShardsBothWaysHasHalfAsManySteps) {
  for_all_ranks_and_transfers(2, transfers, [](std::int32_t ranks, Duration p) {
    const std::int32_t half = ranks / 2;
    EXPECT_EQ(gathered(ranks, {.lanes = 2, .directions = Directions::shards}, p),
              std::max({ranks * c, p + (ranks - 1) * c, half * p + (ranks - 2 * half + 1) * c}));
  });
}

TEST(ClosedForms, FuseAgInGroupsWaitsForTheLastShardOfEachGroup) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    for (const std::int32_t g : {1, 2, 3, 9}) {
      Duration e = c;
      Duration both_ways = c;
      std::int32_t last = 0;
      for (const std::int32_t size : groups_of(ranks, g)) {
        last += size;
        e = std::max(e, last * p) + size * c;
        both_ways = std::max(both_ways, last * p / 2) + size * c;
      }
      EXPECT_EQ(gathered(ranks, {.form = Form::ring, .group = g}, p), e) << g;
      EXPECT_EQ(gathered(ranks, {.form = Form::direct, .group = g}, p), e) << g;
      EXPECT_EQ(gathered(ranks, {.lanes = 2, .directions = Directions::halves, .group = g}, p), both_ways) << g;
    }
  });
}

TEST(ClosedForms, FuseAgDirectReceivesOneShardPerLaneSimultaneously) {
  for_all_ranks_and_transfers(2, transfers, [](std::int32_t ranks, Duration p) {
    for (const std::int32_t lanes : {1, 2, 3, 1024}) {
      const std::int32_t used = std::min(lanes, ranks - 1);
      const std::int32_t rounds = (ranks - 1 + used - 1) / used;
      EXPECT_EQ(gathered(ranks, {.form = Form::direct, .lanes = lanes}, p),
                std::max({ranks * c, p + (ranks - 1) * c, rounds * p + (ranks - 1 - (rounds - 1) * used) * c}));
    }
  });
}

TEST(ClosedForms, FuseAgInNestedRingsRunsTheSlowTransfersUnderTheInnerRings) {
  // Outer shard j arrives after j crossings. Inner transfers follow each other, and those of round j start after j
  // crossings at the earliest.
  for (const auto& [nodes, inner] : {std::pair{2, 2}, {2, 4}, {3, 2}, {4, 2}, {3, 3}}) {
    for (const Duration p : transfers) {
      for (const Duration crossing : {Duration{10us}, Duration{24us}, Duration{48us}, Duration{100us}}) {
        Duration e{};
        Duration inside{};
        for (std::int32_t step = 0; step < nodes * inner; ++step) {
          const Duration crossed = step / inner * crossing;
          Duration arrival = crossed;
          if (step % inner > 0) {
            inside = std::max(inside, crossed) + p;
            arrival = inside;
          }
          e = std::max(e, arrival) + c;
        }
        const Simulated simulated(one_site_of(SiteKind::ag_gemm, nodes * inner, {.inner = inner}),
                                  ShardCosts{.shard_gemm = c, .transfer = p, .crossing = crossing});
        EXPECT_EQ(simulated.makespan(), e);
        if (p <= c && crossing <= inner * c) {
          EXPECT_EQ(e, nodes * inner * c);
        }
      }
    }
  }
}

// --- FuseRS ----------------------------------------------------------------------------------------------------------

/// Returns the time to sum `buffers` buffers and one more. An add of two reads two buffers and writes one in time a;
/// each additional buffer is one more read, a / 3.
Duration sum_of(std::int32_t buffers) { return buffers == 0 ? Duration{} : a * (buffers + 2) / 3; }

TEST(ClosedForms, FuseRsDirectInPartsSendsTheFirstPartSooner) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    for (const std::int32_t m : {1, 2, 4}) {
      EXPECT_EQ(scattered(ranks, {.sub_slices = m, .form = Form::direct}, p),
                std::max(ranks * c, (ranks - 1) * p + c / (ranks == 1 ? 1 : m)) + sum_of(ranks - 1));
    }
  });
}

/// Returns the ends of the transfers of the direct form, by step: x(i) = max(x(i-L), (i+1) c) + p.
std::vector<Duration> arrivals_of(std::int32_t ranks, std::int32_t lanes, Duration p) {
  std::vector<Duration> ends;
  for (std::int32_t i = 0; i < ranks - 1; ++i) {
    const Duration lane_free = i < lanes ? Duration{} : ends[static_cast<std::size_t>(i - lanes)];
    ends.push_back(std::max(lane_free, (i + 1) * c) + p);
  }
  return ends;
}

TEST(ClosedForms, FuseRsDirectOnLanesWaitsForThePreviousTransferOfItsLane) {
  for_all_ranks_and_transfers(2, transfers, [](std::int32_t ranks, Duration p) {
    for (const std::int32_t lanes : {1, 2, 3, 1024}) {
      const std::vector<Duration> ends = arrivals_of(ranks, lanes, p);
      EXPECT_EQ(scattered(ranks, {.form = Form::direct, .lanes = lanes}, p),
                std::max(ranks * c, *std::max_element(ends.begin(), ends.end())) + sum_of(ranks - 1));
    }
  });
}

TEST(ClosedForms, FuseRsDirectSummedOnArrivalLeavesOneAddOfThreeAtTheEnd) {
  for_all_ranks_and_transfers(2, transfers, [](std::int32_t ranks, Duration p) {
    const std::vector<Duration> ends = arrivals_of(ranks, 1, p);
    Duration e{};  // end of the sum up to this step
    for (std::int32_t i = 1; i < ranks - 2; ++i) {
      e = std::max(e, ends[static_cast<std::size_t>(i)]) + a;
    }
    e = std::max({e, ends.back(), ranks * c}) + sum_of(ranks == 2 ? 1 : 2);
    EXPECT_EQ(scattered(ranks, {.form = Form::direct, .add_lane = LaneKind::aux, .sum = Sum::arrival}, p), e);
    if (p <= c && ranks > 2) {
      EXPECT_EQ(e, ranks * c + 4 * a / 3);
      // On the compute lane every add takes its full time.
      EXPECT_EQ(scattered(ranks, {.form = Form::direct, .sum = Sum::arrival}, p),
                ranks * c + (ranks - 3) * a + 4 * a / 3);
    }
  });
}

TEST(ClosedForms, FuseRsDirectInGroupsSendsTheShardsOfAGemmOneByOne) {
  for_all_ranks_and_transfers(2, transfers, [](std::int32_t ranks, Duration p) {
    for (const std::int32_t g : {1, 2, 3, 9}) {
      // The sizes are g, g, ..., then the remainder. The rank's own shard comes last and is not sent.
      std::vector<std::int32_t> sizes = groups_of(ranks, std::min(g, ranks - 1));
      std::reverse(sizes.begin(), sizes.end());
      Duration computed{};
      Duration sent{};
      for (const std::int32_t size : sizes) {
        computed += size * c;
        sent = std::max(sent, computed) + size * p;
      }
      EXPECT_EQ(scattered(ranks, {.form = Form::direct, .group = g}, p), std::max(ranks * c, sent) + sum_of(ranks - 1));
    }
  });
}

TEST(ClosedForms, FuseRsInHalvesBothWaysTakesHalfATransferPerStep) {
  for_all_ranks_and_transfers(1, transfers, [](std::int32_t ranks, Duration p) {
    StrategyOptions halves{.lanes = 2, .directions = Directions::halves};
    EXPECT_EQ(scattered(ranks, halves, p), c + (ranks - 1) * (std::max(c, p / 2) + a));
    halves.add_lane = LaneKind::aux;
    Duration e = c;
    for (std::int32_t step = 1; step < ranks; ++step) {
      e = std::max((step + 1) * c, e + p / 2) + a;
    }
    EXPECT_EQ(scattered(ranks, halves, p), e);
  });
}

TEST(ClosedForms, FuseRsRingInPartsKeepsTheLinkBusyWhereTheLinkIsSlower) {
  for_all_ranks_and_transfers(2, transfers, [](std::int32_t ranks, Duration p) {
    for (const std::int32_t m : {2, 4}) {
      // The time is that of the compute lane, or, if longer, the sum of the first part of a GEMM, all transfers, and
      // one part of an add.
      if (p <= c || p >= c + a) {
        EXPECT_EQ(scattered(ranks, {.sub_slices = m}, p),
                  std::max(ranks * c + (ranks - 1) * a, c / m + (ranks - 1) * p + a / m));
      }
    }
  });
}

TEST(ClosedForms, FuseRsInWholeShardsBothWaysAddsUpTwoChains) {
  for_all_ranks_and_transfers(2, transfers, [](std::int32_t ranks, Duration p) {
    StrategyOptions shards{.lanes = 2, .directions = Directions::shards};
    const std::int32_t half = ranks / 2;
    if (p <= c) {
      // N - 3 adds of two and one of three; two ranks have one add of two.
      EXPECT_EQ(scattered(ranks, shards, p), ranks * c + (ranks == 2 ? a : (ranks - 3) * a + 4 * a / 3));
    }
    if (p >= 2 * (c + a)) {
      // The longer chain starts after one GEMM, or after two if the number of ranks is odd; its last add is of three.
      shards.add_lane = LaneKind::aux;
      EXPECT_EQ(scattered(ranks, shards, p),
                (ranks % 2 == 0 ? c : 2 * c) + half * p + (half - 1) * a + (ranks == 2 ? a : 4 * a / 3));
    }
  });
}

TEST(ClosedForms, FuseRsRingInGroupsAddsTheShardsOfAGemmOneByOne) {
  for_all_ranks_and_transfers(2, transfers, [](std::int32_t ranks, Duration p) {
    for (const std::int32_t g : {1, 2, 3, 9}) {
      std::vector<std::int32_t> sizes = groups_of(ranks, std::min(g, ranks - 1));
      std::reverse(sizes.begin(), sizes.end());
      sizes.push_back(1);  // the rank's own shard
      Duration computed{};
      Duration e{};
      for (const std::int32_t size : sizes) {
        computed += size * c;
        for (std::int32_t i = 0; i < size; ++i) {
          e = e == Duration{} ? computed : std::max(computed, e + p) + a;
        }
      }
      EXPECT_EQ(scattered(ranks, {.add_lane = LaneKind::aux, .group = g}, p), e) << g;
    }
  });
}

TEST(ClosedForms, FuseRsInNestedRingsPaysItsAddsAndHidesTheSlowTransfers) {
  for (const auto& [nodes, inner] : {std::pair{2, 2}, {2, 4}, {3, 2}, {4, 2}, {3, 3}}) {
    for (const Duration p : {Duration{1us}, Duration{12us}}) {
      const Duration longest_hidden = inner * c + (inner - 2) * a;
      for (const Duration crossing : {Duration{10us}, longest_hidden, longest_hidden + 5us}) {
        const Simulated simulated(one_site_of(SiteKind::gemm_rs, nodes * inner, {.inner = inner}),
                                  ShardCosts{.shard_gemm = c, .transfer = p, .crossing = crossing, .add = a});
        const Duration adds = (nodes * (inner - 1) - (nodes - 1)) * a + (nodes - 1) * (4 * a / 3);
        const Duration late = std::max(Duration{}, crossing - longest_hidden);
        EXPECT_EQ(simulated.makespan(), nodes * inner * c + adds + (nodes - 1) * late);
      }
    }
  }
}

}  // namespace
}  // namespace commfuse::test::closed_forms_options
