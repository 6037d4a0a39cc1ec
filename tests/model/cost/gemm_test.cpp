// SPDX-License-Identifier: Apache-2.0
#include "model/cost/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::by_formula_alone;
using test::h100_accelerator;

using namespace std::chrono_literals;

/// Returns SMs of 1 TFLOP/s each and an HBM so fast that only the loops matter.
Accelerator gpu_with(int sms) {
  Accelerator accelerator;
  accelerator.name = "a few SMs";
  accelerator.sms = sms;
  accelerator.hbm_bandwidth.value = BytesPerSecond{1e21};
  accelerator.sm_bandwidth.value = BytesPerSecond{1e21};
  MatrixUnit unit;
  unit.dense_peak.value = FlopsPerSecond{1e12 * sms};
  unit.gemm.loop_efficiency.value = 1.0;
  unit.gemm.hbm_efficiency.value = 1.0;
  unit.gemm.cached_input_cost.value = 1.0;
  unit.gemm.output_cost.value = 1.0;
  unit.gemm.split_overhead.value = 1s;  // Splitting never pays off here, unless a test changes this.
  accelerator.matrix_units[index_of(DType::bf16)] = unit;
  return accelerator;
}

Accelerator ten_sms() { return gpu_with(10); }

GemmParameters& bf16_of(Accelerator& accelerator) { return accelerator.matrix_units[index_of(DType::bf16)]->gemm; }

TEST(EstimateGemm, OneFullWaveTakesTheTimeOfOneTile) {
  // 1280 x 256 is ten tiles of 128 x 256, one per SM, and k = 1000 is rounded up to 16 steps of 64: 2 x 128 x 256 x
  // 1024 / 1e12 = 67.108864 us.
  const GemmEstimate estimate = estimate_gemm(ten_sms(), {.m = 1280, .n = 256, .k = 1000}, 10);
  EXPECT_EQ(estimate.time, Duration{67'108'864});
  EXPECT_EQ(estimate.waves, 1);
  EXPECT_EQ(estimate.last_wave_fill, 1.0);
  EXPECT_EQ(estimate.splits, 1);
  EXPECT_FALSE(estimate.memory_bound);
}

TEST(EstimateGemm, AGpuWithOneSmLessUsesSmallerTiles) {
  // On nine SMs, ten tiles of 128 x 256 need two waves (134.2 us); 80 tiles of 64 x 64 need ceil(80 / 9) = 9 waves of
  // 2 x 64 x 64 x 1024 / 1e12 = 8.388608 us, the shortest time.
  const GemmEstimate estimate = estimate_gemm(gpu_with(9), {.m = 1280, .n = 256, .k = 1000}, 9);
  EXPECT_EQ(estimate.time, Duration{75'497'472});
  EXPECT_EQ(estimate.tile_m, 64);
  EXPECT_EQ(estimate.tile_n, 64);
  EXPECT_EQ(estimate.waves, 9);
  EXPECT_DOUBLE_EQ(estimate.last_wave_fill, 8.0 / 9.0);
}

TEST(EstimateGemm, AKernelThatLosesAnSmKeepsItsTile) {
  // The library chooses ten tiles of 256 x 128 for ten SMs. With one SM taken they need two waves of 67.108864 us.
  const GemmEstimate estimate = estimate_gemm(ten_sms(), {.m = 1280, .n = 256, .k = 1000}, 9);
  EXPECT_EQ(estimate.time, Duration{2 * 67'108'864});
  EXPECT_EQ(estimate.tile_m, 256);
  EXPECT_EQ(estimate.tile_n, 128);
  EXPECT_EQ(estimate.waves, 2);
  EXPECT_DOUBLE_EQ(estimate.last_wave_fill, 1.0 / 9.0);
}

TEST(EstimateGemm, AnSmIsNeverFasterThanItsShareOfThePeak) {
  // Power limits the GPU to half of its peak, and the fit lets loops run at twice the peak. The ten tiles take just
  // over twice 67.108864 us on all SMs. Four SMs have the same power, but need three waves of 67.108864 us at the peak.
  Accelerator accelerator = ten_sms();
  bf16_of(accelerator).loop_efficiency.value = 2.0;
  bf16_of(accelerator).burst_efficiency.value = 0.5;
  bf16_of(accelerator).sustained_share.value = 1.0;
  bf16_of(accelerator).burst_time.value = 1us;
  const GemmSize size{.m = 1280, .n = 256, .k = 1000};
  EXPECT_LT(to_microseconds(estimate_gemm(accelerator, size, 10).time), 1.02 * 2 * 67.108864);
  EXPECT_EQ(estimate_gemm(accelerator, size, 4).waves, 3);
  EXPECT_EQ(estimate_gemm(accelerator, size, 4).time, Duration{3 * 67'108'864});
}

TEST(EstimateGemm, AKernelThatLosesSmsKeepsTheSplitOfItsLoop) {
  Accelerator accelerator = ten_sms();
  accelerator.matrix_units[index_of(DType::bf16)]->gemm.split_overhead.value = {};
  // One tile, its k loop of 32 steps split over eight SMs: 2 x 64 x 64 x 256 / 1e12 = 2.097152 us. On four SMs these
  // parts need two waves.
  const GemmSize size{.m = 64, .n = 64, .k = 2048};
  EXPECT_EQ(estimate_gemm(accelerator, size, 10).splits, 8);
  EXPECT_EQ(estimate_gemm(accelerator, size, 8).time, Duration{2'097'152});
  EXPECT_EQ(estimate_gemm(accelerator, size, 4).splits, 8);
  EXPECT_EQ(estimate_gemm(accelerator, size, 4).time, Duration{2 * 2'097'152});
}

TEST(EstimateGemm, BusySmsShareTheRateOfOperands) {
  Accelerator accelerator = gpu_with(9);
  bf16_of(accelerator).operand_feed.value = 1.0;
  // A tile of 64 x 64 needs 8 / 3 as many operands per FLOP as one of 256 x 128. A single tile has the rate of all nine
  // SMs.
  const GemmEstimate alone = estimate_gemm(accelerator, {.m = 64, .n = 64, .k = 1024}, 9);
  EXPECT_NEAR(to_microseconds(alone.time), 8.388608 * std::hypot(1.0, 8.0 / 3.0 / 9.0), 1e-6);
  // 80 tiles would take 8.388608 us x hypot(9 waves, 80 x 8 / 3 / 9) = 212.7 us. Fourteen tiles of 192 x 128 are the
  // fastest: each needs 10 / 9 as many operands per FLOP as a tile of 256 x 128.
  const GemmEstimate shared = estimate_gemm(accelerator, {.m = 1280, .n = 256, .k = 1000}, 9);
  EXPECT_EQ(shared.tile_m * shared.tile_n, 192 * 128);
  EXPECT_NEAR(to_microseconds(shared.time), 50.331648 * std::hypot(2.0, 14.0 * 10.0 / 9.0 / 9.0), 1e-6);
}

TEST(EstimateGemm, AWaveOverheadGrowsWithTheTile) {
  Accelerator accelerator = gpu_with(9);
  bf16_of(accelerator).wave_overhead.value = 10us;
  // 64 x 64 is a quarter of 128 x 128: 9 x (8.388608 + 2.5) = 97.997472 us; 128 x 256: 2 x (67.108864 + 20) = 174.2.
  const GemmEstimate estimate = estimate_gemm(accelerator, {.m = 1280, .n = 256, .k = 1000}, 9);
  EXPECT_EQ(estimate.time, Duration{97'997'472});
  EXPECT_EQ(estimate.tile_m * estimate.tile_n, 64 * 64);
}

TEST(EstimateGemm, GroupsFillWavesTogether) {
  // Ten GEMMs of one tile each are one wave of tiles of 128 x 256, as in OneFullWaveTakesTheTimeOfOneTile. A tile never
  // covers rows of two groups, so 100 rows take as long as 128.
  EXPECT_EQ(estimate_gemm(ten_sms(), {.m = 128, .n = 256, .k = 1000, .groups = 10}, 10).time, Duration{67'108'864});
  EXPECT_EQ(estimate_gemm(ten_sms(), {.m = 100, .n = 256, .k = 1000, .groups = 10}, 10).time, Duration{67'108'864});
  // The eleventh adds a wave of tiles of 128 x 256. 88 tiles of 64 x 64 take less time: 9 x 8.388608 us.
  EXPECT_EQ(estimate_gemm(ten_sms(), {.m = 128, .n = 256, .k = 1000, .groups = 11}, 10).time, Duration{75'497'472});
}

TEST(EstimateGemm, EveryGroupHasItsOwnOperands) {
  const GemmSize size{.m = 2, .n = 3, .k = 4, .groups = 5};
  EXPECT_EQ(compulsory_traffic(size).count, 5 * 2 * (2 * 4 + 4 * 3 + 2 * 3));
  EXPECT_EQ(flops_of(size).count, 5.0 * 2.0 * 2.0 * 3.0 * 4.0);
  EXPECT_EQ(tiles_of_128({.m = 129, .n = 256, .k = 8, .groups = 3}), 12);
  // With a slow HBM, the time is that of the traffic of all groups.
  Accelerator accelerator = ten_sms();
  accelerator.hbm_bandwidth.value = BytesPerSecond{1e9};
  const Duration single = estimate_gemm(accelerator, {.m = 64, .n = 4096, .k = 4096}, 10).time;
  const Duration four = estimate_gemm(accelerator, {.m = 64, .n = 4096, .k = 4096, .groups = 4}, 10).time;
  EXPECT_NEAR(to_seconds(four) / to_seconds(single), 4.0, 1e-3);
}

TEST(EstimateGemm, AvoidsSlowSmallTiles) {
  Accelerator accelerator = gpu_with(9);
  bf16_of(accelerator).tile_64x64.value = 0.5;
  bf16_of(accelerator).tile_128x64.value = 0.7;
  // On nine SMs, tiles of 64 x 64 now take 9 x 16.777216 = 151.0 us, and tiles of 128 x 64 take 5 x 16.777216 / 0.7 =
  // 119.8 us. The best are 128 x 128 in 3 x 33.554432 = 100.663296 us, and 192 x 128 in 2 x 50.331648, which take as
  // long but are larger.
  const GemmEstimate estimate = estimate_gemm(accelerator, {.m = 1280, .n = 256, .k = 1000}, 9);
  EXPECT_EQ(estimate.time, Duration{100'663'296});
  EXPECT_EQ(estimate.tile_m * estimate.tile_n, 192 * 128);
}

TEST(EstimateGemm, APartlyFullWaveCostsItsQuantum) {
  // 2560 x 256 is twenty tiles of 256 x 128, each of which takes 33.554432 us: two waves on ten SMs, and 2.5 waves on
  // eight, which count as 2.5 + 0.5 x wave_quantum.
  const auto time_on = [](int sms, double wave_quantum) {
    Accelerator accelerator = gpu_with(sms);
    for (Parameter<double> GemmParameters::*tile :
         {&GemmParameters::tile_64x256, &GemmParameters::tile_128x64, &GemmParameters::tile_64x64}) {
      (bf16_of(accelerator).*tile).value = 0.1;
    }
    bf16_of(accelerator).tile_256x128.value = 2.0;
    bf16_of(accelerator).wave_quantum.value = wave_quantum;
    return estimate_gemm(accelerator, {.m = 2560, .n = 256, .k = 1024}, sms).time;
  };
  EXPECT_EQ(time_on(10, 1.0), Duration{67'108'864});
  EXPECT_EQ(time_on(8, 1.0), Duration{100'663'296});
  EXPECT_EQ(time_on(10, 0.5), Duration{67'108'864});
  EXPECT_EQ(time_on(8, 0.5), Duration{92'274'688});
}

TEST(EstimateGemm, PowerJoinsTheLoopsAsTheRootOfFourthPowers) {
  Accelerator accelerator = ten_sms();
  const GemmSize size{.m = 1280, .n = 256, .k = 1024};  // The loops take 67.108864 us, at the peak rate.
  bf16_of(accelerator).burst_efficiency.value = 0.5;
  bf16_of(accelerator).sustained_share.value = 1.0;
  // (1 + 2^4)^(1/4) x 67.108864 us.
  const GemmEstimate estimate = estimate_gemm(accelerator, size, 10);
  EXPECT_NEAR(to_microseconds(estimate.time), std::pow(17.0, 0.25) * 67.108864, 1e-6);
  EXPECT_TRUE(estimate.power_bound);
  // The time equals the burst time, so the rate is halfway from 1 to the sustained share: 0.75, hence 2 / 0.75.
  bf16_of(accelerator).burst_time.value = Duration{67'108'864};
  bf16_of(accelerator).sustained_share.value = 0.5;
  EXPECT_NEAR(to_microseconds(estimate_gemm(accelerator, size, 10).time),
              std::pow(1.0 + std::pow(2.0 / 0.75, 4), 0.25) * 67.108864, 1e-6);
}

TEST(EstimateGemm, CuttingAGemmDoesNotCoolTheChip) {
  const Accelerator accelerator = by_formula_alone(h100_accelerator());
  for (const std::int64_t rows : {8192, 32768, 262144}) {
    const GemmSize whole{.m = rows, .n = 8192, .k = 8192};
    GemmSize part{.m = rows / 8, .n = 8192, .k = 8192};
    const Duration cold = estimate_gemm(accelerator, part, 132).time;
    part.run = flops_of(whole);
    const Duration hot = estimate_gemm(accelerator, part, 132).time;
    EXPECT_GT(hot, cold);
    EXPECT_GE(8 * hot, estimate_gemm(accelerator, whole, 132).time) << rows;
  }
}

constexpr GemmSize converted{.m = 1280, .n = 256, .k = 1024};
constexpr std::int64_t converted_bytes = 2 * 1280 * 1024;

/// Returns the time that conversion adds to `converted`, at one byte per picosecond. L2 holds `l2` bytes.
Duration conversion_time(double passes, double cached_cost, std::int64_t l2) {
  Accelerator accelerator = ten_sms();
  accelerator.hbm_bandwidth.value = BytesPerSecond{1e12};
  accelerator.l2_capacity = Bytes{l2};
  const Duration without_conversion = estimate_gemm(accelerator, converted, 10).time;
  bf16_of(accelerator).conversion_passes.value = passes;
  bf16_of(accelerator).cached_conversion_cost.value = cached_cost;
  return estimate_gemm(accelerator, converted, 10).time - without_conversion;
}

TEST(EstimateGemm, ConversionOfTheActivationsAddsItsPasses) {
  EXPECT_EQ(conversion_time(3.0, 1.0, 0), Duration{3 * converted_bytes});
}

TEST(EstimateGemm, ActivationsInL2AreConvertedFaster) {
  // The copies before and after conversion together have 2 x converted_bytes. An L2 that is too small keeps the square
  // of the share that it can hold. Here 0.6 of the L2 holds all of these bytes, half (a quarter stays), or none.
  EXPECT_EQ(conversion_time(4.0, 0.25, 4 * converted_bytes), Duration{converted_bytes});
  EXPECT_NEAR(to_microseconds(conversion_time(4.0, 0.25, converted_bytes / 3 * 5)),
              static_cast<double>(4 * converted_bytes) * (0.25 * 0.25 + 0.75) * 1e-6, 1e-4);
  EXPECT_EQ(conversion_time(4.0, 0.25, 0), Duration{4 * converted_bytes});
}

TEST(EstimateGemm, InputsInFp8NeedNoConversionAndNoneOfItsCalls) {
  Accelerator accelerator = ten_sms();
  bf16_of(accelerator).ramp.value = 2us;
  accelerator.matrix_units[index_of(DType::fp8)] = accelerator.matrix_units[index_of(DType::bf16)];
  GemmParameters& fp8 = accelerator.matrix_units[index_of(DType::fp8)]->gemm;
  fp8.ramp.value = 12us;
  fp8.conversion_passes.value = 3.0;
  GemmSize size{.m = 1280, .n = 256, .k = 1024, .dtype = DType::fp8};
  const Duration converting = estimate_gemm(accelerator, size, 10).time;
  size.converts = false;
  EXPECT_EQ(estimate_gemm(accelerator, size, 10).time, Duration{2'000'000 + 67'108'864});
  EXPECT_GE(converting, Duration{12'000'000 + 67'108'864});
  // A ramp below that of bf16 contains no calls for conversion.
  fp8.ramp.value = 1us;
  EXPECT_EQ(estimate_gemm(accelerator, size, 10).time, Duration{1'000'000 + 67'108'864});
  fp8.ramp.value = 12us;
  accelerator.matrix_units[index_of(DType::bf16)].reset();
  EXPECT_EQ(estimate_gemm(accelerator, size, 10).time, Duration{12'000'000 + 67'108'864});
}

TEST(EstimateGemm, TheRampIsAddedOnceAndTheFloorIsAMinimum) {
  Accelerator accelerator = ten_sms();
  accelerator.matrix_units[index_of(DType::bf16)]->gemm.ramp.value = 2us;
  EXPECT_EQ(estimate_gemm(accelerator, {.m = 1280, .n = 256, .k = 1000}, 10).time, Duration{69'108'864});
  accelerator.kernel_floor.value = 100us;
  EXPECT_EQ(estimate_gemm(accelerator, {.m = 1280, .n = 256, .k = 1000}, 10).time, 100us);
}

TEST(EstimateGemm, AShareOfTheShorterSideIsNotHidden) {
  Accelerator accelerator = ten_sms();
  bf16_of(accelerator).unhidden.value = 0.4;
  // Bytes: 2 x (1000 x 256 + 1280 x 1000 + 1280 x 256) = 3,727,360; at 3.727360e6 / 89.478485333 us the memory side
  // takes 4/3 of the loops' 67.108864 us, so both together take 4/3 + 0.4 x 3/4 = 49/30 of them: 109.611144533 us.
  accelerator.hbm_bandwidth.value = BytesPerSecond{3'727'360.0 / (67.108864e-6 * 4.0 / 3.0)};
  const GemmEstimate estimate = estimate_gemm(accelerator, {.m = 1280, .n = 256, .k = 1000}, 10);
  EXPECT_EQ(estimate.time, Duration{109'611'145});
  EXPECT_TRUE(estimate.memory_bound);
}

/// Returns the time of the memory side alone, at 1 TB/s: the loops take no time.
Duration traffic_time(const GemmSize& size, double output_cost = 1.0) {
  Accelerator accelerator = ten_sms();
  accelerator.hbm_bandwidth.value = BytesPerSecond{1e12};
  accelerator.matrix_units[index_of(DType::bf16)]->dense_peak.value = FlopsPerSecond{1e24};
  accelerator.matrix_units[index_of(DType::bf16)]->gemm.output_cost.value = output_cost;
  return estimate_gemm(accelerator, size, 10).time;
}

/// Returns traffic_time() of a benchmark that repeats the GEMM over copies of its weights. L2 holds 4,000,000 bytes,
/// of which the share `resident_share` keeps reused weights, which cost a quarter of the price.
Duration repeated_time(const GemmSize& size, double resident_share = 0.5) {
  Accelerator accelerator = ten_sms();
  accelerator.hbm_bandwidth.value = BytesPerSecond{1e12};
  accelerator.l2_capacity = Bytes{4'000'000};
  accelerator.matrix_units[index_of(DType::bf16)]->dense_peak.value = FlopsPerSecond{1e24};
  bf16_of(accelerator).resident_share.value = resident_share;
  bf16_of(accelerator).cached_weight_cost.value = 0.25;
  return estimate_gemm(accelerator, size, 10).time;
}

TEST(EstimateGemm, WeightsThatABenchmarkFindsInL2ComeFromThere) {
  // Weights 2 x 500 x 320 = 320,000 bytes, input and output 2 x 100 x (320 + 500) = 164,000. Five copies and the rest
  // are 1,764,000 bytes, less than 2,000,000, so all of the weights are still in L2.
  GemmSize size{.m = 100, .n = 500, .k = 320};
  EXPECT_EQ(repeated_time(size), Duration{320'000 + 164'000});
  size.weight_copies = 5;
  EXPECT_EQ(repeated_time(size), Duration{80'000 + 164'000});
  EXPECT_EQ(repeated_time(size, 0.0), Duration{320'000 + 164'000});
  // Six copies are 2,084,000 bytes, 4.2% above: 42% of the weights have left L2.
  size.weight_copies = 6;
  EXPECT_NEAR(to_microseconds(repeated_time(size)), 0.42 * 0.32 + 0.58 * 0.08 + 0.164, 1e-6);
  // Seven copies are 2,404,000 bytes: all weights have left.
  size.weight_copies = 7;
  EXPECT_EQ(repeated_time(size), Duration{320'000 + 164'000});
}

TEST(EstimateGemm, ABenchmarkUsesNoMoreCopiesThanFillTheL2) {
  // Weights have 2,000,000 bytes, so two of the five copies fill the L2: 4,000,000 bytes between two uses, and 2 x
  // (2500 + 400) bytes of input and output. They fit in 1.1 times the L2, but not in 0.9 times.
  const GemmSize size{.m = 1, .n = 2500, .k = 400, .weight_copies = 5};
  EXPECT_EQ(repeated_time(size, 1.1), Duration{500'000 + 5'800});
  EXPECT_EQ(repeated_time(size, 0.9), Duration{2'000'000 + 5'800});
}

TEST(EstimateGemm, AnOutputThatTheL2KeepsCostsItsOwnPrice) {
  Accelerator accelerator = ten_sms();
  accelerator.hbm_bandwidth.value = BytesPerSecond{1e12};
  accelerator.l2_capacity = Bytes{4'000'000};
  accelerator.matrix_units[index_of(DType::bf16)]->dense_peak.value = FlopsPerSecond{1e24};
  bf16_of(accelerator).output_cost.value = 1.5;
  bf16_of(accelerator).cached_output_cost.value = 0.5;
  // Inputs 2 x 100 x (m + n) bytes, output 2 x m n bytes, one byte per picosecond. 4,000,000 bytes x 0.5 can stay.
  const GemmSize fits{.m = 800, .n = 1000, .k = 100};
  EXPECT_EQ(estimate_gemm(accelerator, fits, 10).time, Duration{360'000 + 2'400'000})
      << "without resident_output_share no output stays";
  bf16_of(accelerator).resident_output_share.value = 0.5;
  EXPECT_EQ(estimate_gemm(accelerator, fits, 10).time, Duration{360'000 + 800'000});
  // 380,000 + 1,800,000 bytes are 9% above 2,000,000: nine tenths go to memory, at a price of 1.4 on average.
  const GemmSize spills{.m = 900, .n = 1000, .k = 100};
  EXPECT_NEAR(to_microseconds(estimate_gemm(accelerator, spills, 10).time), 0.38 + 1.4 * 1.8, 1e-6);
  // 400,000 + 2,000,000 bytes are 20% above: the whole output goes to memory.
  const GemmSize large{.m = 1000, .n = 1000, .k = 100};
  EXPECT_EQ(estimate_gemm(accelerator, large, 10).time, Duration{400'000 + 3'000'000});
}

TEST(EstimateGemm, WritesAnOutputInItsOwnDtype) {
  // Inputs 2 x (1024 x 512 + 512 x 2048) = 3,145,728 bytes, output 1024 x 2048 elements of 2 or 4 bytes, 1 byte per ps.
  EXPECT_EQ(traffic_time({.m = 1024, .n = 2048, .k = 512}), Duration{3'145'728 + 2 * 2'097'152});
  EXPECT_EQ(traffic_time({.m = 1024, .n = 2048, .k = 512, .out = DType::fp32}), Duration{3'145'728 + 4 * 2'097'152});
}

TEST(EstimateGemm, AddingToTheOutputReadsItAtFullPrice) {
  const GemmSize gradient{.m = 1024, .n = 2048, .k = 512, .out = DType::fp32, .accumulate = true};
  EXPECT_EQ(traffic_time(gradient), Duration{3'145'728 + 2 * 4 * 2'097'152});
  EXPECT_EQ(traffic_time(gradient, 0.5), Duration{3'145'728 + 4 * 2'097'152 + 2 * 2'097'152});
  EXPECT_EQ(traffic_time({.m = 1024, .n = 2048, .k = 512, .accumulate = true}),
            Duration{3'145'728 + 2 * 2 * 2'097'152});
}

TEST(EstimateGemm, AFewSmsCannotPullTheWholeHbmBandwidth) {
  Accelerator accelerator = ten_sms();
  accelerator.matrix_units[index_of(DType::bf16)]->dense_peak.value = FlopsPerSecond{1e21};
  accelerator.hbm_bandwidth.value = BytesPerSecond{1e12};
  accelerator.sm_bandwidth.value = BytesPerSecond{0.25e12};
  const Duration with_every_sm = estimate_gemm(accelerator, {.m = 64, .n = 4096, .k = 4096}, 10).time;
  EXPECT_EQ(estimate_gemm(accelerator, {.m = 64, .n = 4096, .k = 4096}, 4).time, with_every_sm);
  EXPECT_NEAR(to_seconds(estimate_gemm(accelerator, {.m = 64, .n = 4096, .k = 4096}, 2).time),
              2.0 * to_seconds(with_every_sm), 1e-9);
}

TEST(EstimateGemm, IdleSmsSplitALongLoopWhenJoiningIsCheap) {
  Accelerator accelerator = ten_sms();
  accelerator.matrix_units[index_of(DType::bf16)]->gemm.split_overhead.value = 1us;
  // One tile of 64 x 64; k = 8192 in eight parts of 1024: 8.388608 us + 1 us to join, and almost nothing for the
  // traffic.
  const GemmEstimate estimate = estimate_gemm(accelerator, {.m = 64, .n = 64, .k = 8192}, 10);
  EXPECT_EQ(estimate.splits, 8);
  EXPECT_EQ(estimate.time, Duration{9'388'608});
  EXPECT_DOUBLE_EQ(estimate.last_wave_fill, 0.8);
}

TEST(EstimateGemm, DeepLoopsAreSplitEvenWhereTilesFillTheSms) {
  Accelerator accelerator = ten_sms();
  accelerator.matrix_units[index_of(DType::bf16)]->gemm.split_overhead.value = 1us;
  for (Parameter<double> GemmParameters::*tile :
       {&GemmParameters::tile_64x256, &GemmParameters::tile_128x64, &GemmParameters::tile_64x64}) {
    (accelerator.matrix_units[index_of(DType::bf16)]->gemm.*tile).value = 0.1;
  }
  accelerator.matrix_units[index_of(DType::bf16)]->gemm.tile_256x128.value = 1.5;
  // Eleven tiles of 256 x 128, k = 8192: two waves of 2 x 256 x 128 x 8192 / 1.5e12 = 357.9 us, or in two parts 22 half
  // tiles in three waves of half that.
  const GemmEstimate estimate = estimate_gemm(accelerator, {.m = 2816, .n = 128, .k = 8192}, 10);
  EXPECT_EQ(estimate.splits, 2);
  EXPECT_EQ(estimate.waves, 3);
  EXPECT_EQ(estimate.time, Duration{536'870'912 + 1'000'000});
  // Parts of less than 2560 are not tried where tiles fill the SMs.
  EXPECT_EQ(estimate_gemm(accelerator, {.m = 2816, .n = 128, .k = 4096}, 10).splits, 1);
}

TEST(EstimateGemm, ActivationsThatL2StillHoldsAreCheaper) {
  Accelerator accelerator = ten_sms();
  accelerator.hbm_bandwidth.value = BytesPerSecond{1e12};
  accelerator.matrix_units[index_of(DType::bf16)]->gemm.cached_input_cost.value = 0.5;
  const Duration cold = estimate_gemm(accelerator, {.m = 16384, .n = 64, .k = 1024}, 10).time;
  accelerator.l2_capacity = Bytes{50 << 20};
  EXPECT_LT(estimate_gemm(accelerator, {.m = 16384, .n = 64, .k = 1024}, 10).time, cold);
}

TEST(EstimateGemm, MoreWorkAndFewerSmsNeverTakeLessTime) {
  const Accelerator accelerator = by_formula_alone(h100_accelerator());
  std::uint64_t state = 7;
  const auto draw = [&state](std::int64_t largest) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return 1 + static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(largest));
  };
  for (int i = 0; i < 2000; ++i) {
    const GemmSize size{.m = draw(20'000), .n = draw(20'000), .k = draw(20'000)};
    const Duration time = estimate_gemm(accelerator, size, 132).time;
    EXPECT_GE(time, accelerator.kernel_floor.value);
    EXPECT_GE(estimate_gemm(accelerator, {.m = size.m + draw(500), .n = size.n, .k = size.k}, 132).time, time);
    EXPECT_GE(estimate_gemm(accelerator, {.m = size.m, .n = size.n + draw(500), .k = size.k}, 132).time, time);
    const int sms = static_cast<int>(draw(132));
    const Duration slowed = estimate_gemm(accelerator, size, sms).time;
    EXPECT_LE(estimate_gemm(accelerator, size, std::min(132, sms + 1)).time, slowed);
    EXPECT_EQ(estimate_gemm(accelerator, size, sms).time, slowed);
  }
}

TEST(EstimateGemm, IsNoFasterThanThePeak) {
  const Accelerator accelerator = h100_accelerator();
  const GemmSize size{.m = 8192, .n = 8192, .k = 8192};
  const double flops = 2.0 * 8192 * 8192 * 8192 / to_seconds(estimate_gemm(accelerator, size, 132).time);
  EXPECT_LT(flops, 0.84 * 989e12);
  EXPECT_GT(flops, 0.70 * 989e12);
}

struct MeasuredTime {
  GemmSize size;
  double time_us;
};

// The rows are copied from the public table gemm_h100_bf16_aic.csv: cuBLAS in a CUDA graph, weights from HBM.
TEST(EstimateGemm, IsCloseToGemmsMeasuredOnAnH100) {
  const Accelerator accelerator = h100_accelerator();
  double sum = 0.0;
  for (const MeasuredTime& row : {MeasuredTime{{.m = 128, .n = 8192, .k = 7168}, 46.581},
                                  {{.m = 256, .n = 7168, .k = 8192}, 50.677},
                                  {{.m = 1024, .n = 7168, .k = 8192}, 167.573},
                                  {{.m = 1024, .n = 8192, .k = 7168}, 151.595},
                                  {{.m = 1024, .n = 16384, .k = 10240}, 431.307},
                                  {{.m = 4096, .n = 8192, .k = 8192}, 672.768},
                                  {{.m = 4096, .n = 16384, .k = 7168}, 1431.344},
                                  {{.m = 8192, .n = 7168, .k = 8192}, 1172.853},
                                  {{.m = 8192, .n = 12288, .k = 10240}, 2513.579},
                                  {{.m = 16384, .n = 7168, .k = 8192}, 2393.221}}) {
    const double predicted = to_microseconds(estimate_gemm(accelerator, row.size, 132).time);
    EXPECT_NEAR(predicted / row.time_us, 1.0, 0.25) << row.size.m << " x " << row.size.n << " x " << row.size.k;
    sum += std::abs(predicted / row.time_us - 1.0);
  }
  EXPECT_LT(sum / 10, 0.08);
}

double cutting_rows_by_eight(std::int64_t rows) {
  const Accelerator accelerator = h100_accelerator();
  const GemmSize whole{.m = rows, .n = 7168, .k = 8192};
  const GemmSize slice{.m = rows / 8, .n = 7168, .k = 8192};
  return 8.0 * to_seconds(estimate_gemm(accelerator, slice, 132).time) /
         to_seconds(estimate_gemm(accelerator, whole, 132).time);
}

TEST(EstimateGemm, CuttingRowsIntoEightCostsMoreIfThereAreFewerRows) {
  // Measured at 8192: 8 x 167.573 / 1172.853 = 1.143, but the slice with n and k exchanged takes 151.595 us, a tenth
  // less, because the library chose a better algorithm. At 1024 every slice streams the whole weight, so eight slices
  // take well over twice as long.
  EXPECT_NEAR(cutting_rows_by_eight(8192), 8 * 151.595 / 1172.853, 0.05);
  EXPECT_GT(cutting_rows_by_eight(1024), 2.0);
  EXPECT_LT(cutting_rows_by_eight(65'536), 1.05);
}

TEST(EstimateGemm, UnreasonableSizesAreUserErrors) {
  try {
    const std::int64_t huge = std::int64_t{1} << 26;
    estimate_gemm(ten_sms(), {.m = huge, .n = huge, .k = huge}, 10);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(
        error.what(),
        "a matrix product would take 6.04e+10 s, over the limit of 1e+05 s; choose a smaller batch or sequence, or "
        "check the rates of the hardware file");
  }
}

TEST(EstimateGemmDeathTest, RequiresSmsWithinTheAccelerator) {
  EXPECT_DEATH(estimate_gemm(ten_sms(), {.m = 1, .n = 1, .k = 1}, 0), "the SM budget lies between");
  EXPECT_DEATH(estimate_gemm(ten_sms(), {.m = 1, .n = 1, .k = 1}, 11), "the SM budget lies between");
  EXPECT_DEATH(estimate_gemm(ten_sms(), {.m = 0, .n = 1, .k = 1}, 1), "m, n, k and groups of at least 1");
}

TEST(CompulsoryTraffic, CountsBothInputsAndTheOutputOnce) {
  EXPECT_EQ(compulsory_traffic({.m = 10, .n = 20, .k = 30}), Bytes{2 * std::int64_t{300 + 600 + 200}});
  EXPECT_EQ(compulsory_traffic({.m = 10, .n = 20, .k = 30, .out = DType::fp32, .accumulate = true}),
            Bytes{2 * std::int64_t{300 + 600} + 4 * std::int64_t{2} * 200});
}

}  // namespace
}  // namespace commfuse
