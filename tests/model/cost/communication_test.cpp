// SPDX-License-Identifier: Apache-2.0
#include "model/cost/communication.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "model/config/catalogue.h"
#include "model/config_error.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

/// Returns a link without a ramp and without the cost of copying a rank's own share, so that times can be computed by
/// hand.
Link plain_link() {
  Link link;
  link.peer.latency.value = 5us;
  link.peer.rate.value = BytesPerSecond{100e9};
  link.collective.base_latency.value = 10us;
  link.collective.step_latency.value = 1us;
  link.collective.rate.value = BytesPerSecond{100e9};
  link.collective.own_copy_rate.value = BytesPerSecond{1e30};
  return link;
}

TEST(P2pTime, IsLatencyAndBytesOverRate) {
  EXPECT_EQ(p2p_time(plain_link(), Bytes{1'000'000}), Duration{15us});
  EXPECT_EQ(p2p_time(plain_link(), Bytes{0}), Duration{5us});
}

TEST(P2pTime, UsesOnlyTheRateThatOtherTransfersLeave) {
  // 1 MB at 100 GB/s takes 10 us.
  const PeerParameters peer = plain_link().peer;
  const Bytes size{1'000'000};
  EXPECT_EQ(p2p_time(peer, size, BytesPerSecond{300e9}), p2p_time(peer, size));
  EXPECT_EQ(p2p_time(peer, size, BytesPerSecond{50e9}), Duration{25us});
}

TEST(P2pTime, UsesTheProtocolOfSmallMessages) {
  PeerParameters peer = plain_link().peer;
  peer.aggregate_rate = peer.rate;
  peer.small = SmallMessages{
      .up_to = {.value = Bytes{1'000'000}}, .latency = {.value = 2us}, .rate = {.value = BytesPerSecond{50e9}}};
  EXPECT_EQ(p2p_time(peer, Bytes{1'000'000}), Duration{22us});
  // The message does not use all of the remaining rate.
  EXPECT_EQ(p2p_time(peer, Bytes{1'000'000}, BytesPerSecond{80e9}), Duration{22us});
  EXPECT_EQ(p2p_time(peer, Bytes{1'000'000}, BytesPerSecond{25e9}), Duration{42us});
  EXPECT_EQ(p2p_time(peer, Bytes{2'000'000}), Duration{25us});
  // Small messages have twice the rate of large ones, so when half of the rate remains, they get 100 GB/s.
  peer.small->rate.value = BytesPerSecond{200e9};
  EXPECT_EQ(p2p_time(peer, Bytes{1'000'000}, BytesPerSecond{50e9}), Duration{12us});
}

TEST(P2pTime, ASmallMessageTakesAtMostTheTimeOfALargeOne) {
  PeerParameters peer = plain_link().peer;
  peer.small = SmallMessages{
      .up_to = {.value = Bytes{1'000'000}}, .latency = {.value = 8us}, .rate = {.value = BytesPerSecond{125e9}}};
  EXPECT_EQ(p2p_time(peer, Bytes{500'000}), Duration{12us});
  EXPECT_EQ(p2p_time(peer, Bytes{1'000'000}), Duration{15us});  // the time of 1,000,001 bytes, not 16 us
}

TEST(CollectiveTime, AllGatherAndReduceScatterGoRoundTheRingOnce) {
  // 4 ranks, 4 MB in total: 3 MB on the wire at 100 GB/s = 30 us; 10 us base; 3 steps of 1 us.
  EXPECT_EQ(all_gather_time(plain_link(), 4, Bytes{4'000'000}), Duration{43us});
  EXPECT_EQ(reduce_scatter_time(plain_link(), 4, Bytes{4'000'000}), Duration{43us});
  EXPECT_EQ(all_to_all_time(plain_link(), 4, Bytes{4'000'000}), Duration{43us});
}

TEST(CollectiveTime, AllReduceGoesRoundTwiceInOneLaunch) {
  EXPECT_EQ(all_reduce_time(plain_link(), 4, Bytes{4'000'000}), Duration{76us});
}

TEST(CollectiveTime, RampAndOwnCopyAddToTheWire) {
  Link link = plain_link();
  link.collective.ramp_size.value = Bytes{3'000'000};  // For 3 MB it adds half of itself, 1.5 MB: 15 us.
  EXPECT_EQ(all_gather_time(link, 4, Bytes{4'000'000}), Duration{58us});
  link.collective.own_copy_rate.value = BytesPerSecond{200e9};  // 1 MB of the rank's own share: 5 us.
  EXPECT_EQ(all_gather_time(link, 4, Bytes{4'000'000}), Duration{63us});
}

RingParameters protocol_parameters(Duration base, Duration step, double gigabytes) {
  return {{.base_latency = {.value = base},
           .step_latency = {.value = step},
           .rate = {.value = {1e9 * gigabytes}},
           .own_copy_rate = {.value = {1e30}},
           .ramp_size = {}}};
}

TEST(CollectiveTime, OnlyGathersForwardFinishedBlocks) {
  Link link = plain_link();
  link.collective.forward_latency = {.value = 4us};
  // A rank passes on a block in two of the three steps of four ranks. An all-reduce forwards in its second round.
  EXPECT_EQ(all_gather_time(link, 4, Bytes{4'000'000}), Duration{51us});
  EXPECT_EQ(reduce_scatter_time(link, 4, Bytes{4'000'000}), Duration{43us});
  EXPECT_EQ(all_reduce_time(link, 4, Bytes{4'000'000}), Duration{84us});
  EXPECT_EQ(all_to_all_time(link, 4, Bytes{4'000'000}), Duration{43us});
  // Between two ranks nothing is passed on.
  EXPECT_EQ(all_gather_time(link, 2, Bytes{4'000'000}), reduce_scatter_time(link, 2, Bytes{4'000'000}));
}

TEST(CollectiveTime, SumsOfTheOwnShareHaveTheirOwnRate) {
  Link link = plain_link();
  link.collective.own_copy_rate.value = BytesPerSecond{200e9};       // 1 MB of the rank's share: 5 us.
  link.collective.own_sum_rate = {.value = BytesPerSecond{1000e9}};  // 1 us.
  EXPECT_EQ(all_gather_time(link, 4, Bytes{4'000'000}), Duration{48us});
  EXPECT_EQ(reduce_scatter_time(link, 4, Bytes{4'000'000}), Duration{44us});
  EXPECT_EQ(all_reduce_time(link, 4, Bytes{4'000'000}), Duration{77us});
}

TEST(CollectiveTime, AnAllToAllCopiesItsOwnShare) {
  Link link = plain_link();
  link.collective.own_copy_rate.value = BytesPerSecond{200e9};
  const Duration copied = all_to_all_time(link, 4, Bytes{4'000'000});
  link.collective.own_sum_rate = {.value = BytesPerSecond{1000e9}};
  EXPECT_EQ(all_to_all_time(link, 4, Bytes{4'000'000}), copied);
}

/// Returns eight H100 as NCCL sees them, with kernels whose parameters are round numbers.
CollectiveParameters nccl_on_h100() {
  NcclKernels kernels;
  kernels.tuning = {
      .generation = NcclGeneration::hopper, .wire = NcclWire::nvlink, .channels = 12, .channel_rate = {30e9}};
  kernels.ll = protocol_parameters(1us, 0us, 100.0);
  kernels.ll.fill_size = {.value = Bytes{40'000}};
  kernels.ll128 = protocol_parameters(2us, 0us, 200.0);
  kernels.nvls = SwitchParameters{{.value = 4us}, {.value = {1e12}}, {.value = Bytes{0}}};
  CollectiveParameters collective{protocol_parameters(3us, 0us, 400.0)};
  collective.ctas.value = 20;
  collective.nccl = std::make_shared<const NcclKernels>(kernels);
  return collective;
}

TEST(CollectiveTime, UsesTheKernelThatNcclWouldChoose) {
  const CollectiveParameters collective = nccl_on_h100();
  EXPECT_EQ(all_gather_time(collective, 8, Bytes{800'000}), Duration{8us});         // LL: 700 kB at 100 GB/s
  EXPECT_EQ(all_gather_time(collective, 8, Bytes{8'000'000}), Duration{37us});      // LL128: 7 MB at 200 GB/s
  EXPECT_EQ(all_gather_time(collective, 8, Bytes{320'000'000}), Duration{703us});   // Simple: 280 MB at 400 GB/s
  EXPECT_EQ(all_reduce_time(collective, 8, Bytes{320'000'000}), Duration{324us});   // The switch sums.
  EXPECT_EQ(all_reduce_time(collective, 4, Bytes{320'000'000}), Duration{1203us});  // Simple: 480 MB
}

TEST(CollectiveTime, EachKernelOfNcclHasItsOwnForwardLatency) {
  CollectiveParameters collective = nccl_on_h100();
  NcclKernels kernels = *collective.nccl;
  kernels.ll.forward_latency = {.value = 1us};
  kernels.ll128->forward_latency = {.value = 2us};
  collective.forward_latency = {.value = 3us};
  collective.nccl = std::make_shared<const NcclKernels>(kernels);
  EXPECT_EQ(all_gather_time(collective, 8, Bytes{800'000}), Duration{8us + 6us});
  EXPECT_EQ(all_gather_time(collective, 8, Bytes{8'000'000}), Duration{37us + 12us});
  EXPECT_EQ(all_gather_time(collective, 8, Bytes{320'000'000}), Duration{703us + 18us});
  EXPECT_EQ(reduce_scatter_time(collective, 8, Bytes{8'000'000}), Duration{37us});
}

TEST(CollectiveTime, TheRampOfSumsInTheSwitchGrowsWithTheRanks) {
  CollectiveParameters collective = nccl_on_h100();
  NcclKernels kernels = *collective.nccl;
  kernels.nvls->ramp_size_per_rank.value = Bytes{40'000'000};
  collective.nccl = std::make_shared<const NcclKernels>(kernels);
  // Eight ranks have a ramp of 320 MB, which adds 160 MB to 320 MB: 160 us. A switch of 24 ranks has a ramp of 960 MB,
  // which adds three quarters of 320 MB.
  EXPECT_EQ(all_reduce_time(collective, 8, Bytes{320'000'000}), Duration{484us});
  EXPECT_EQ(all_reduce_time(collective, 24, Bytes{320'000'000}), Duration{564us});
}

TEST(CollectiveTime, TheRampOfTreesGrowsWithTheRanksOfANode) {
  CollectiveParameters collective = plain_link().collective;
  TreeParameters tree{{{.value = 10us}, {.value = 5us}, {.value = {100e9}}}};
  tree.ramp_size_per_rank.value = Bytes{1'000'000};
  collective.tree = std::make_shared<const TreeParameters>(tree);
  EXPECT_EQ(all_reduce_time(collective, 8, Bytes{4'000'000}, 2), Duration{75us});   // 2 MB more
  EXPECT_EQ(all_reduce_time(collective, 16, Bytes{4'000'000}, 4), Duration{80us});  // 2 MB more, two levels
  EXPECT_EQ(all_reduce_time(collective, 2, Bytes{1'000'000}, 2), Duration{30us});   // 0.5 MB more
}

TEST(CollectiveTime, StaysConstantWhileMoreChannelsShareMoreBytes) {
  const CollectiveParameters collective = nccl_on_h100();
  const Duration full = Duration{3'800ns};  // A share counts as the fill size, 40 kB, so 280 kB at 100 GB/s.
  EXPECT_EQ(all_gather_time(collective, 8, Bytes{320'000}), full);
  EXPECT_EQ(all_gather_time(collective, 8, Bytes{16'000}), full);
  EXPECT_EQ(all_gather_time(collective, 8, Bytes{8'000}),
            Duration{2'400ns});  // 20 channels x 1 kB, half of the fill size
}

TEST(CollectiveTime, EachChannelBeyondTheFirstAddsLatency) {
  CollectiveParameters collective = nccl_on_h100();
  NcclKernels kernels = *collective.nccl;
  kernels.ll.channel_latency = {.value = 1us};
  collective.nccl = std::make_shared<const NcclKernels>(kernels);
  EXPECT_EQ(all_gather_time(collective, 8, Bytes{320'000}), Duration{4'750ns});  // 20 channels: 19 twentieths of 1 us
  EXPECT_EQ(all_gather_time(collective, 8, Bytes{32'000}), Duration{4'300ns});   // 2 channels
  EXPECT_EQ(all_gather_time(collective, 8, Bytes{16'000}), Duration{3'800ns});   // 1 channel
  EXPECT_EQ(all_gather_time(collective, 8, Bytes{8'000}), Duration{2'400ns});    // 1 channel, half full
  EXPECT_EQ(all_gather_time(collective, 8, Bytes{640'000}), Duration{7'550ns});  // 560 kB at 100 GB/s, 20 channels
}

TEST(CollectiveTime, ChannelLatencyNeedsAFillSize) {
  CollectiveParameters collective = nccl_on_h100();
  collective.channel_latency = {.value = 1us};
  EXPECT_EQ(all_gather_time(collective, 8, Bytes{320'000'000}), Duration{703us});
}

TEST(CollectiveTime, TheFillSizeOfSimpleHasASmoothEdge) {
  CollectiveParameters collective = nccl_on_h100();
  collective.fill_size = {.value = Bytes{8'000'000}};
  const auto us = [&](std::int64_t bytes) { return to_microseconds(all_gather_time(collective, 8, Bytes{bytes})); };
  // Shares of 4, 8 and 16 MB count as 8.12, 9.51 and 16.25 MB: seven of them at 400 GB/s, after 3 us.
  EXPECT_NEAR(us(32'000'000), 3.0 + 8e6 * std::pow(17.0 / 16.0, 0.25) * 7.0 / 400e3, 1e-3);
  EXPECT_NEAR(us(64'000'000), 3.0 + 8e6 * std::pow(2.0, 0.25) * 7.0 / 400e3, 1e-3);
  EXPECT_NEAR(us(128'000'000), 3.0 + 16e6 * std::pow(17.0 / 16.0, 0.25) * 7.0 / 400e3, 1e-3);
}

TEST(CollectiveTime, CopyEnginesHaveNoChannelsToFill) {
  Link link = plain_link();
  link.collective.ctas.value = 0;
  const Duration time = all_gather_time(link, 4, Bytes{4'000'000});
  link.collective.fill_size = {.value = Bytes{100'000'000}};
  link.collective.channel_latency = {.value = 1us};
  EXPECT_EQ(all_gather_time(link, 4, Bytes{4'000'000}), time);
}

TEST(CollectiveTime, AllToAllFollowsTheBytesPerPeer) {
  CollectiveParameters collective = nccl_on_h100();
  collective.all_to_all = std::make_shared<const AllToAllParameters>(AllToAllParameters{
      {.value = Bytes{10'000}}, protocol_parameters(2us, 1us, 100.0), protocol_parameters(5us, 0us, 200.0)});
  EXPECT_EQ(all_to_all_time(collective, 4, Bytes{16'000}), Duration{5'120ns});  // 12 kB at 100 GB/s
  // An all-to-all of this size takes the time of 40,001 bytes: 30 kB at 200 GB/s.
  EXPECT_EQ(all_to_all_time(collective, 4, Bytes{40'000}), Duration{5'150ns});
  EXPECT_EQ(all_to_all_time(collective, 4, Bytes{80'000}), Duration{5'300ns});  // 60 kB at 200 GB/s
  EXPECT_EQ(all_to_all_time(collective, 1, Bytes{80'000}), Duration{0});
}

TEST(CollectiveTime, AllReduceOnATreeOfNodesUsesTheFastestProtocol) {
  CollectiveParameters collective = nccl_on_h100();
  TreeParameters tree{{{.value = 50us}, {.value = 10us}, {.value = {100e9}}}};
  tree.two_nodes_rate.emplace().value = {200e9};
  tree.ll = TreeProtocol{{.value = 10us}, {.value = 5us}, {.value = {1e9}}};
  collective.tree = std::make_shared<const TreeParameters>(tree);
  EXPECT_EQ(all_reduce_time(collective, 16, Bytes{4'000'000}, 2), Duration{80us});   // 50 + 10 + 4 MB at 200 GB/s
  EXPECT_EQ(all_reduce_time(collective, 64, Bytes{4'000'000}, 8), Duration{120us});  // 50 + 30 + 4 MB at 100 GB/s
  EXPECT_EQ(all_reduce_time(collective, 16, Bytes{10'000}, 2), Duration{25us});      // 10 + 5 + 10 kB at 1 GB/s
  EXPECT_EQ(all_reduce_time(collective, 8, Bytes{320'000'000}), Duration{324us});    // in one node, as without a tree
}

/// Returns four ranks on two nodes, whose tree NCCL chooses only from 8 to 16 MiB (nccl_tuning_test.cpp).
CollectiveParameters nccl_among_nodes() {
  NcclKernels kernels;
  kernels.tuning = {.generation = NcclGeneration::ampere,
                    .wire = NcclWire::network,
                    .channels = 2,
                    .channel_rate = {12e9},
                    .tree_channels = 4,
                    .ll128_across = false,
                    .amd_hosts = true,
                    .tree_step = 28us,
                    .tree_node_step = 28us};
  kernels.ll = protocol_parameters(1us, 0us, 1.0);
  CollectiveParameters collective{protocol_parameters(3us, 0us, 6.0)};
  collective.nccl = std::make_shared<const NcclKernels>(kernels);
  TreeParameters tree{{{.value = 20us}, {.value = 30us}, {.value = {1e9}}}};
  tree.two_nodes_rate.emplace().value = {8e9};
  collective.tree = std::make_shared<const TreeParameters>(tree);
  return collective;
}

TEST(CollectiveTime, AmongNodesUsesRingOrTreeAsNcclWould) {
  const CollectiveParameters collective = nccl_among_nodes();
  EXPECT_EQ(all_reduce_time(collective, 4, Bytes{4'000'000}, 2), Duration{1003us});   // 6 MB at 6 GB/s
  EXPECT_EQ(all_reduce_time(collective, 4, Bytes{12'000'000}, 2), Duration{1550us});  // 12 MB at 8 GB/s
  EXPECT_EQ(all_reduce_time(collective, 4, Bytes{20'000'000}, 2), Duration{5003us});  // 30 MB at 6 GB/s
  EXPECT_EQ(all_gather_time(collective, 4, Bytes{12'000'000}, 2), Duration{1503us});  // 9 MB at 6 GB/s
  EXPECT_EQ(reduce_scatter_time(collective, 4, Bytes{40'000}, 2), Duration{31us});    // 30 kB at 1 GB/s
}

TEST(CollectiveTime, TakesNoLongerThanALargerMessageThatNcclGivesAFasterKernel) {
  // From 4.63 MB up, NCCL chooses LL128, which takes 2 us plus 4.05 MB at 200 GB/s; LL would take 36 us for 4 MB.
  EXPECT_NEAR(to_microseconds(all_gather_time(nccl_on_h100(), 8, Bytes{4'000'000})), 22.256, 0.001);
  EXPECT_EQ(all_gather_time(nccl_on_h100(), 8, Bytes{2'400'000}), Duration{22us});  // LL: 2.1 MB at 100 GB/s
  EXPECT_EQ(kernel_taken(nccl_on_h100(), {.ranks = 8, .total = 4'000'000}), NcclKernel::ll128);
  EXPECT_EQ(kernel_taken(nccl_on_h100(), {.ranks = 8, .total = 2'400'000}), NcclKernel::ll);
}

// NCCL's estimates for the ring and the tree are equal at 50.4 us / (1 / 16 - 1 / 17.664 ns per byte) = 8.56 MB, where
// the tree takes 50 us plus 8.56 MB at 8 GB/s: 1120.03 us.
constexpr double tree_at_crossover_us = 50.0 + 50.4 / (1 / 16.0 - 1 / 17.664) / 8.0;

TEST(CollectiveTime, AmongNodesTakesAtMostTwiceAsLongAsALargerMessage) {
  CollectiveParameters collective = nccl_among_nodes();
  EXPECT_EQ(all_reduce_time(collective, 4, Bytes{8'800'000}, 2), Duration{1150us});  // the tree
  EXPECT_EQ(all_reduce_time(collective, 4, Bytes{8'000'000}, 2), Duration{2003us});  // the ring: 12 MB at 6 GB/s
  collective.rate.value = {4e9};                                                     // The ring would take 3003 us.
  EXPECT_NEAR(to_microseconds(all_reduce_time(collective, 4, Bytes{8'000'000}, 2)), 2 * tree_at_crossover_us, 1e-3);
}

TEST(CollectiveTime, KeepsTheStepsOfMeasuredLinksOnOtherLinks) {
  const auto time_on_links = [](double times) {
    return all_reduce_time(with_rates(nccl_among_nodes(), times, RateChange::supposed_wires), 4, Bytes{8'000'000}, 2);
  };
  // The ring would take 4003 us; the bytes of the tree take twice as long as on the real links.
  EXPECT_NEAR(to_microseconds(time_on_links(0.5)), 2 * tree_at_crossover_us - 50.0, 1e-3);
  EXPECT_EQ(time_on_links(1.0), Duration{2003us});
  // The tree would take less, but links twice as fast make an all-reduce at most twice as fast.
  EXPECT_EQ(time_on_links(2.0), Duration{1'001'500ns});
}

TEST(CollectiveTime, TreesAreFasterBetweenTwoNodesWithEveryProtocol) {
  CollectiveParameters collective = plain_link().collective;
  TreeParameters tree{{{.value = 50us}, {.value = 10us}, {.value = {1e9}}}};
  tree.ll128 = TreeProtocol{{.value = 10us}, {.value = 5us}, {.value = {50e9}}};
  tree.ll128->two_nodes_rate.emplace().value = {100e9};
  collective.tree = std::make_shared<const TreeParameters>(tree);
  EXPECT_EQ(all_reduce_time(collective, 16, Bytes{1'000'000}, 2), Duration{25us});
  EXPECT_EQ(all_reduce_time(collective, 32, Bytes{1'000'000}, 4), Duration{40us});
}

/// Returns kernels with round numbers for tensors of up to 8 MB. One shot: 4 us, 1 us per peer, 100 GB/s. Two shots:
/// 8 us, 1 us per peer, 200 GB/s.
CustomAllReduce plain_kernels() {
  CustomAllReduce kernels;
  kernels.up_to.value = Bytes{8'000'000};
  kernels.one_shot_latency.value = 4us;
  kernels.one_shot_step.value = 1us;
  kernels.one_shot_rate.value = BytesPerSecond{100e9};
  kernels.two_shot_latency.value = 8us;
  kernels.two_shot_step.value = 1us;
  kernels.two_shot_rate.value = BytesPerSecond{200e9};
  return kernels;
}

TEST(CollectiveTime, FrameworkKernelsReadWholeTensorsOrSharesAndSums) {
  Link link = plain_link();
  link.collective.base_latency.value = 100us;
  link.collective.custom_all_reduce =
      std::make_shared<const CustomAllReduces>(CustomAllReduces{.vllm = plain_kernels()});
  const auto time = [&](int ranks, std::int64_t bytes, int nodes = 1) {
    return all_reduce_time(link.collective, ranks, Bytes{bytes}, nodes);
  };
  const Duration by_nccl = time(4, 100'000);
  link.collective.all_reduce_kernel = AllReduceKernel::vllm;
  // Three tensors of 100 KB at 100 GB/s take 3 us; one and a half tensors at 200 GB/s take 0.75 us.
  EXPECT_EQ(time(4, 100'000), Duration{4us + 3us + 3us});
  EXPECT_EQ(time(4, 400'000), Duration{8us + 3us + 3us});
  EXPECT_EQ(time(4, 100'000, 2), by_nccl);                      // across nodes
  EXPECT_GT(time(4, 8'000'001), Duration{200us});               // larger than the framework's buffers
  link.collective.all_reduce_kernel = AllReduceKernel::sglang;  // The link has no times of SGLang's kernels.
  EXPECT_EQ(time(4, 100'000), by_nccl);
  EXPECT_EQ(time(1, 100'000), Duration{});
}

TEST(CollectiveTime, FrameworkKernelsAreOneShotBetweenTwoRanks) {
  Link link = plain_link();
  link.collective.base_latency.value = 100us;
  CustomAllReduce kernels = plain_kernels();
  kernels.two_shot_rate.value = BytesPerSecond{400e9};
  link.collective.custom_all_reduce = std::make_shared<const CustomAllReduces>(CustomAllReduces{.vllm = kernels});
  link.collective.all_reduce_kernel = AllReduceKernel::vllm;
  // Two shots would take 8 + 1 + 10 us, because two ranks read the tensor once in either kernel.
  EXPECT_EQ(all_reduce_time(link.collective, 2, Bytes{4'000'000}), Duration{4us + 1us + 40us});
  EXPECT_EQ(all_reduce_time(link.collective, 4, Bytes{4'000'000}), Duration{8us + 3us + 15us});
}

TEST(CollectiveTime, FrameworksUseNcclWhereItIsFaster) {
  Link link = plain_link();
  link.collective.base_latency.value = 1us;
  const Duration by_nccl = all_reduce_time(link.collective, 2, Bytes{1000});
  link.collective.custom_all_reduce =
      std::make_shared<const CustomAllReduces>(CustomAllReduces{.vllm = plain_kernels()});
  link.collective.all_reduce_kernel = AllReduceKernel::vllm;
  EXPECT_EQ(all_reduce_time(link.collective, 2, Bytes{1000}), by_nccl);
}

TEST(CollectiveTime, IsZeroForOneRank) {
  EXPECT_EQ(all_gather_time(plain_link(), 1, Bytes{1'000}), Duration{0});
  EXPECT_EQ(reduce_scatter_time(plain_link(), 1, Bytes{1'000}), Duration{0});
  EXPECT_EQ(all_reduce_time(plain_link(), 1, Bytes{1'000}), Duration{0});
  EXPECT_EQ(all_to_all_time(plain_link(), 1, Bytes{1'000}), Duration{0});
}

TEST(CollectiveTime, UnreasonableSizesAreUserErrors) {
  try {
    p2p_time(plain_link(), Bytes{std::int64_t{1} << 60});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(
        error.what(),
        "an exchange with one peer would take 1.15e+07 s, over the limit of 1e+05 s; choose a smaller batch or "
        "sequence, or check the rates of the hardware file");
  }
}

struct MeasuredReduceScatter {
  int ranks;
  std::int64_t bytes;
  double time_us;
};

// The rows are copied from the public table nccl_h100sxm_1node_aic_v2.csv: NCCL 2.29.2, out of place.
TEST(CollectiveTime, IsCloseToReduceScattersMeasuredOnAnH100Node) {
  const Link link = load_machine("h100-sxm").link;
  for (const MeasuredReduceScatter& row : {MeasuredReduceScatter{8, 65'536, 11.71},
                                           {8, 8'388'608, 43.82},
                                           {8, 67'108'864, 200.75},
                                           {8, 134'217'728, 382.18},
                                           {8, 536'870'912, 1399.36},
                                           {4, 134'217'728, 355.17},
                                           {4, 536'870'912, 1299.82},
                                           {2, 134'217'728, 311.52},
                                           {2, 536'870'912, 1077.9}}) {
    const double predicted = to_microseconds(reduce_scatter_time(link, row.ranks, Bytes{row.bytes}));
    EXPECT_NEAR(predicted / row.time_us, 1.0, 0.08) << row.ranks << " ranks, " << row.bytes << " bytes";
  }
}

}  // namespace
}  // namespace commfuse
