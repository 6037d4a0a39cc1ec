// SPDX-License-Identifier: Apache-2.0
// Tests some costs of the H100 node to the picosecond, so that every change of its numbers or of a formula fails.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "model/config/catalogue.h"
#include "model/cost/communication.h"
#include "model/cost/gemm.h"
#include "model/cost/memory_bound.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::h100_machine;

TEST(H100Costs, HoldForGemmsAndCopies) {
  const Accelerator accelerator = h100_machine().accelerator;
  const auto gemm = [&](std::int64_t m, std::int64_t n, std::int64_t k, int sms) {
    return estimate_gemm(accelerator, {.m = m, .n = n, .k = k}, sms).time;
  };
  EXPECT_EQ(gemm(8192, 7168, 8192, 132), Duration{1'252'897'776});
  EXPECT_EQ(gemm(1024, 7168, 8192, 116), Duration{160'132'623});
  EXPECT_EQ(gemm(1024, 8192, 3584, 108), Duration{96'917'457});
  EXPECT_EQ(memory_bound_time(accelerator, Bytes{std::int64_t{1} << 28}, 132), Duration{93'556'803});
}

TEST(H100Costs, HoldForExchangesAndCollectives) {
  const Machine machine = h100_machine();
  const auto gathered = [&](std::int64_t total) {
    return all_gather_time(collective_over(machine, 0, 8), 8, Bytes{total});
  };
  // 7.66 us + 64 MiB / 361 GB/s.
  EXPECT_EQ(p2p_time(peer_between(machine, 0, 7), Bytes{64 << 20}), Duration{193'557'130});
  // By LL: 4.749 us + 7 x 682.2 ns + 6 x 205.3 ns + 896 KiB / 198.2 GB/s + 128 KiB / 195.3 GB/s, and 769.2 ns x
  // (1 - 1 / 24) for 24 channels.
  EXPECT_EQ(gathered(1 << 20), Duration{16'793'664});
  // A rank's share of smaller messages takes as long as 44.47 kB, which fill 24 channels. 32 KiB use 17.7 channels, 16
  // KiB half of them.
  EXPECT_EQ(gathered(1 << 18), gathered(1 << 17) + Duration{43'496});
  // By LL128: 15.74 us + 7 x 714.7 ns + 6 x 191.5 ns + 14 MiB / 347.4 GB/s + 2 MiB / 419.7 GB/s.
  EXPECT_EQ(gathered(16 << 20), Duration{69'145'637});
  // By Simple: 10.48 us + 7 x 238.1 ns + 6 x 1.61 us + (7 x 32 MiB + a ramp of 8.206 MB) / 375.2 GB/s
  // + 32 MiB / 744.6 GB/s.
  EXPECT_EQ(gathered(256 << 20), Duration{714'754'864});
  EXPECT_EQ(reduce_scatter_time(collective_over(machine, 0, 4), 4, Bytes{16 << 20}), Duration{64'047'716});
  // In the switch: 23.34 us + (256 MiB + a ramp of 21.76 MB) / 271.2 GB/s.
  EXPECT_EQ(all_reduce_time(collective_over(machine, 0, 8), 8, Bytes{256 << 20}), Duration{1'093'383'747});
}

// NVIDIA/nccl issue 1047: NCCL's ring reduce-scatter of eight H100.
struct SweepRow {
  std::int64_t mebibytes;
  double time_us;
};
constexpr std::array<SweepRow, 7> published_sweep{
    {{128, 377.2}, {256, 709.7}, {512, 1377.8}, {1024, 2689.3}, {2048, 5295.9}, {4096, 10505.0}, {8192, 20754.0}}};

TEST(H100Costs, MatchPublishedReduceScattersWithinAFewPercent) {
  const Machine machine = h100_machine();
  for (const SweepRow& row : published_sweep) {
    const Bytes total{row.mebibytes << 20};
    const double predicted = to_microseconds(reduce_scatter_time(collective_over(machine, 0, 8), 8, total));
    EXPECT_NEAR(predicted / row.time_us, 1.0, 0.05) << row.mebibytes << " MiB";
  }
}

TEST(H100Costs, ThePriorIsTheEstimateOfNccl) {
  // Model over measured time, from a reference evaluation of NCCL's formula.
  constexpr std::array<double, 7> reference_ratios{0.950, 0.965, 0.971, 0.982, 0.992, 0.997, 1.008};
  const NcclTuning tuning = h100_machine().link.collective.nccl->tuning;
  const NcclEstimate simple = nccl_estimate(tuning, NcclKernel::simple).value();
  CollectiveParameters prior;
  prior.base_latency.value = simple.base_latency;
  prior.step_latency.value = simple.step_latency;
  prior.rate.value = simple.rate;
  prior.own_copy_rate.value = BytesPerSecond{1e30};
  for (std::size_t i = 0; i < published_sweep.size(); ++i) {
    const Bytes total{published_sweep[i].mebibytes << 20};
    EXPECT_EQ(nccl_choice(tuning, {.ranks = 8, .passes = 1, .total = static_cast<double>(total.count)}),
              NcclKernel::simple);
    const double predicted = to_microseconds(reduce_scatter_time(prior, 8, total));
    EXPECT_NEAR(predicted / published_sweep[i].time_us, reference_ratios[i], 0.001)
        << published_sweep[i].mebibytes << " MiB";
  }
}

TEST(H100Costs, TheLinkHasTheRatesOfAPairAndAGroupOfTheNode) {
  const Machine machine = h100_machine();
  EXPECT_EQ(&peer_between(machine, 0, 1), &machine.link.peer);
  EXPECT_EQ(&collective_over(machine, 0, 8), &machine.link.collective);
  EXPECT_EQ(p2p_time(machine.link, Bytes{1 << 20}), p2p_time(machine.link.peer, Bytes{1 << 20}));
  EXPECT_EQ(all_to_all_time(machine.link, 4, Bytes{1 << 20}),
            all_to_all_time(machine.link.collective, 4, Bytes{1 << 20}));
}

}  // namespace
}  // namespace commfuse
