// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/nccl_tuning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace commfuse {
namespace {

using namespace std::chrono_literals;

// Twelve rings of 30 GB/s, as NCCL finds them on eight H100 (NVIDIA/nccl issue 1189).
constexpr NcclTuning h100_tuning{
    .generation = NcclGeneration::hopper, .wire = NcclWire::nvlink, .channels = 12, .channel_rate = {30e9}};
constexpr NcclTuning a100{
    .generation = NcclGeneration::ampere, .wire = NcclWire::nvlink, .channels = 12, .channel_rate = {20e9}};
constexpr NcclTuning pcie{
    .generation = NcclGeneration::blackwell, .wire = NcclWire::pcie, .channels = 2, .channel_rate = {24e9}};

NcclEstimate estimate(const NcclTuning& tuning, NcclKernel kernel) { return nccl_estimate(tuning, kernel).value(); }

TEST(NcclEstimate, MatchesTheTableOfNcclForEightH100) {
  // Seven steps of an all-gather: 6.6 + 7 x 0.6 = 10.8 us, 14 + 7 x 1.9 = 27.3 us, 8.4 + 7 x 3.4 = 32.2 us.
  const auto latency = [](const NcclEstimate& kernel) { return kernel.base_latency + 7 * kernel.step_latency; };
  EXPECT_EQ(latency(estimate(h100_tuning, NcclKernel::ll)), Duration{10'800ns});
  EXPECT_EQ(latency(estimate(h100_tuning, NcclKernel::ll128)), Duration{27'300ns});
  EXPECT_EQ(latency(estimate(h100_tuning, NcclKernel::simple)), Duration{32'200ns});
  // Algorithm bandwidth is 8/7 of the wire's: 161, 378.5 and 411.4 GB/s.
  EXPECT_NEAR(estimate(h100_tuning, NcclKernel::ll).rate.value * 8 / 7, 161e9, 0.2e9);
  EXPECT_NEAR(estimate(h100_tuning, NcclKernel::ll128).rate.value * 8 / 7, 378.5e9, 0.1e9);
  EXPECT_NEAR(estimate(h100_tuning, NcclKernel::simple).rate.value * 8 / 7, 411.4e9, 0.1e9);
}

TEST(NcclEstimate, IsAbsentForHardwareThatTheMachineLacks) {
  EXPECT_FALSE(nccl_estimate(pcie, NcclKernel::ll128).has_value());
  EXPECT_FALSE(nccl_estimate(pcie, NcclKernel::nvls).has_value());
  EXPECT_FALSE(nccl_estimate(a100, NcclKernel::nvls).has_value());
  EXPECT_EQ(estimate(pcie, NcclKernel::simple).step_latency, Duration{5'700ns});
}

TEST(NcclChoice, GoesFromLlThroughLl128ToSimpleAsSizesGrow) {
  // The estimates of the three kernels on eight H100 are equal at about 4.6 MB and 23 MB.
  const auto choice = [](double total) { return nccl_choice(h100_tuning, {.ranks = 8, .passes = 1, .total = total}); };
  EXPECT_EQ(choice(1e3), NcclKernel::ll);
  EXPECT_EQ(choice(4.5e6), NcclKernel::ll);
  EXPECT_EQ(choice(4.9e6), NcclKernel::ll128);
  EXPECT_EQ(choice(22e6), NcclKernel::ll128);
  EXPECT_EQ(choice(24e6), NcclKernel::simple);
}

TEST(NcclChoice, UsesTheSwitchForLargeTensorsOfFiveRanksOrMore) {
  const auto choice = [](const NcclTuning& tuning, int ranks, double total) {
    return nccl_choice(tuning, {.ranks = ranks, .passes = 2, .total = total});
  };
  EXPECT_EQ(choice(h100_tuning, 8, 1e9), NcclKernel::nvls);
  EXPECT_EQ(choice(h100_tuning, 5, 1e9), NcclKernel::nvls);
  EXPECT_EQ(choice(h100_tuning, 4, 1e9), NcclKernel::simple);
  EXPECT_EQ(choice(h100_tuning, 8, 1e5), NcclKernel::ll);
  EXPECT_EQ(choice(a100, 8, 1e9), NcclKernel::simple);
}

// Two rings and a tree of four channels, as NCCL finds them with two NICs of 100 Gbit/s. The tree steps are those of
// version 2.17.
constexpr NcclTuning two_nics{.generation = NcclGeneration::ampere,
                              .wire = NcclWire::network,
                              .channels = 2,
                              .channel_rate = {12e9},
                              .tree_channels = 4,
                              .ll128_across = false,
                              .amd_hosts = true,
                              .tree_step = 28us,
                              .tree_node_step = 28us};

NcclKernel among_nodes(int ranks, int mebibytes, const NcclTuning& tuning = two_nics) {
  return nccl_choice(tuning, {.ranks = ranks, .passes = 2, .total = 1048576.0 * mebibytes, .nodes = 2});
}

TEST(NcclChoice, UsesTheTreeForOneDoublingOfSizesOnTwoNodes) {
  // Ring: 1.4 x (8.4 + 4 x 3.4 + 2 x 14) = 70 us and 2/3 of 24 GB/s. Tree: 8.4 + 2 x (28 + 28) = 120.4 us and half of
  // 0.92 of 48 GB/s, corrected by 0.7, by 0.8 from 8 MiB up and by 0.7 from 16 MiB up: 15.5, 17.7, 15.5 against 16
  // GB/s.
  EXPECT_EQ(among_nodes(4, 7), NcclKernel::simple);
  EXPECT_EQ(among_nodes(4, 9), NcclKernel::tree_simple);
  EXPECT_EQ(among_nodes(4, 15), NcclKernel::tree_simple);
  EXPECT_EQ(among_nodes(4, 17), NcclKernel::simple);
}

TEST(NcclChoice, CountsStepsOfTheTreeAndOfTheRingAmongNodes) {
  // Sixteen ranks: the tree takes 8.4 + 2 x 8 x 28 = 456.4 us, the ring 1.4 x (8.4 + 28 x 3.4 + 28) = 184.2 us at 8/15
  // of 24 GB/s. Both take the same time at 12.1 MiB where the tree is corrected by 0.8, and at 19.3 MiB where it is
  // corrected by 0.7.
  EXPECT_EQ(among_nodes(16, 12), NcclKernel::simple);
  EXPECT_EQ(among_nodes(16, 13), NcclKernel::tree_simple);
  EXPECT_EQ(among_nodes(16, 15), NcclKernel::tree_simple);
  EXPECT_EQ(among_nodes(16, 17), NcclKernel::simple);
  EXPECT_EQ(among_nodes(16, 19), NcclKernel::simple);
  EXPECT_EQ(among_nodes(16, 20), NcclKernel::tree_simple);
  NcclTuning newer = two_nics;
  newer.tree_step = 4us;
  newer.tree_node_step = 14us;
  EXPECT_EQ(among_nodes(16, 12, newer), NcclKernel::tree_simple);
}

TEST(NcclChoice, UsesATreeOnlyForAllReduceAndWhereOneExists) {
  const NcclTask gather{.ranks = 4, .passes = 1, .total = 9.0 * 1048576, .nodes = 2};
  EXPECT_EQ(nccl_choice(two_nics, gather), NcclKernel::simple);
  NcclTuning rings_only = two_nics;
  rings_only.tree_channels = 0;
  EXPECT_EQ(among_nodes(4, 9, rings_only), NcclKernel::simple);
}

TEST(NcclChoice, UsesSimpleAbove2MiBForAllGatherAmongIntelHosts) {
  // Sixteen ranks, eight NICs: LL 6.6 + 14 x 1.08 + 2.7 = 24.4 us at 39 GB/s, Simple 8.4 + 14 x 3.4 + 14 = 70 us at
  // 384 GB/s.
  const NcclTuning pods{.generation = NcclGeneration::blackwell,
                        .wire = NcclWire::network,
                        .channels = 8,
                        .channel_rate = {48e9},
                        .ll128_across = false};
  const auto choice = [&](double total) {
    return nccl_choice(pods, {.ranks = 16, .passes = 1, .total = total, .nodes = 2});
  };
  EXPECT_EQ(choice(2.09e6), NcclKernel::ll);
  EXPECT_EQ(choice(2.2e6), NcclKernel::simple);
}

TEST(NcclOffers, AreTheKernelsOfLargerMessagesFromTheCrossingOn) {
  // LL and LL128 of eight H100 are 16.5 us apart, LL128 and Simple 4.9 us; each rank sends 7/8 of the bytes.
  const NcclOffers offers = nccl_offers(h100_tuning, {.ranks = 8, .passes = 1, .total = 1e6});
  ASSERT_EQ(offers.count, 3U);
  EXPECT_EQ(offers.kernels[0].kernel, NcclKernel::ll);
  EXPECT_EQ(offers.kernels[0].total, 1e6);
  EXPECT_EQ(offers.kernels[1].kernel, NcclKernel::ll128);
  EXPECT_NEAR(offers.kernels[1].total, 16.5e-6 / (7.0 / 8 * (1 / 141e9 - 1 / 331.2e9)), 1.0);
  EXPECT_EQ(offers.kernels[2].kernel, NcclKernel::simple);
  EXPECT_NEAR(offers.kernels[2].total, 4.9e-6 / (7.0 / 8 * (1 / 331.2e9 - 1 / 360e9)), 1.0);
  EXPECT_TRUE(std::isinf(offers.until));

  const NcclOffers large = nccl_offers(h100_tuning, {.ranks = 8, .passes = 1, .total = 24e6});
  ASSERT_EQ(large.count, 1U);
  EXPECT_EQ(large.kernels[0].kernel, NcclKernel::simple);
  EXPECT_EQ(large.kernels[0].total, 24e6);
}

TEST(NcclOffers, BeginWithTheChoiceAtEverySize) {
  for (const NcclTuning& tuning : {h100_tuning, a100, pcie, two_nics}) {
    const int nodes = tuning.wire == NcclWire::network ? 2 : 1;
    for (const int passes : {1, 2}) {
      for (double total = 64.0; total < 1e10; total *= 1.1) {
        const NcclTask task{.ranks = 8, .passes = passes, .total = total, .nodes = nodes};
        const NcclOffers offers = nccl_offers(tuning, task);
        const auto* first = std::ranges::find(offers.kernels, total, &NcclOffer::total);
        ASSERT_NE(first, offers.kernels.end()) << total;
        EXPECT_EQ(first->kernel, nccl_choice(tuning, task)) << total;
      }
    }
  }
}

TEST(NcclOffers, EndWhereTheCorrectionOfATreeChanges) {
  const auto among_four = [](double mebibytes) {
    return nccl_offers(two_nics, {.ranks = 4, .passes = 2, .total = 1048576.0 * mebibytes, .nodes = 2});
  };
  EXPECT_EQ(among_four(7).until, 8.0 * 1048576);
  EXPECT_EQ(among_four(7).kernels[0].kernel, NcclKernel::simple);
  EXPECT_EQ(among_four(8).until, 16.0 * 1048576);
  EXPECT_EQ(among_four(9).until, 16.0 * 1048576);
  EXPECT_EQ(among_four(9).kernels[0].kernel, NcclKernel::tree_simple);
  EXPECT_EQ(among_four(511).until, 512.0 * 1048576);
  EXPECT_TRUE(std::isinf(among_four(512).until));
  EXPECT_EQ(nccl_offers(two_nics, {.ranks = 4, .passes = 2, .total = 1.0, .nodes = 2}).until, 128.0);
}

TEST(NcclTuning, ReadsTheNamesItWrites) {
  for (const NcclGeneration generation : all_nccl_generations) {
    EXPECT_EQ(nccl_generation_named(name_of(generation)), generation);
  }
  for (const NcclWire wire : all_nccl_wires) {
    EXPECT_EQ(nccl_wire_named(name_of(wire)), wire);
  }
  EXPECT_FALSE(nccl_generation_named("tesla").has_value());
}

}  // namespace
}  // namespace commfuse
