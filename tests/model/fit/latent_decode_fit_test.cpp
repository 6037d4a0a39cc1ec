// SPDX-License-Identifier: Apache-2.0
#include "model/fit/latent_decode_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/random/philox.h"
#include "tests/shipped.h"

namespace commfuse {
namespace {

using test::h100_accelerator;
using test::in_microseconds;
using test::shipped_machine;

std::vector<MeasuredLatentDecode> latent_decoding_measured_on(const Accelerator& accelerator, DType cache) {
  std::vector<MeasuredLatentDecode> rows;
  for (const std::int64_t heads : {1, 2, 4, 8, 16, 32, 64, 128}) {
    for (const std::int64_t seq : {2, 64, 512, 2048, 8192, 32768}) {
      for (const std::int64_t batch : {1, 4, 16, 32, 64, 128, 512}) {
        const LatentDecodeSize size{.batch = batch, .seq = seq, .heads = heads, .dtype = cache};
        const PhiloxWords words = philox({static_cast<std::uint32_t>(rows.size()), 0, 0, 0}, 9);
        const double factor = std::exp(0.02 * (2.0 * words[0] / 4294967296.0 - 1.0));
        rows.push_back({size, from_seconds(factor * to_seconds(latent_decode_time(accelerator, size)))});
      }
    }
  }
  return rows;
}

TEST(FitLatentDecode, FindsTheParametersThatMadeTheRows) {
  Accelerator machine = h100_accelerator();
  LatentDecodeKernel& kernel = machine.latent_decode.value();
  kernel.call.value = in_microseconds(4.0);
  kernel.block.value = in_microseconds(3.0);
  kernel.hbm_efficiency.value = 0.8;
  kernel.most_parts.value = 20.0;
  const std::vector<MeasuredLatentDecode> rows = latent_decoding_measured_on(machine, DType::bf16);
  Accelerator base = h100_accelerator();
  base.latent_decode.reset();
  ASSERT_TRUE(can_fit_latent_decode(base, rows, "mine"));
  const LatentDecodeFit fit = fit_latent_decode(base, rows, "mine", "mine.csv");
  EXPECT_GT(fit.held_out.rows, 30);
  EXPECT_LT(fit.held_out.median, 0.02);
  EXPECT_LT(fit.held_out.p90, 0.05);
  const LatentDecodeKernel& fitted = fit.accelerator.latent_decode.value();
  EXPECT_NEAR(to_microseconds(fitted.call.value), 4.0, 0.5);
  EXPECT_NEAR(to_microseconds(fitted.block.value), 3.0, 0.2);
  EXPECT_NEAR(fitted.hbm_efficiency.value, 0.8, 0.02);
  EXPECT_EQ(fitted.call.source, "mine.csv");
  const std::string yaml = latent_decode_yaml(fit, DType::bf16, 4);
  EXPECT_NE(yaml.find("    join_cost: {value: "), std::string::npos);
  EXPECT_EQ(yaml.find("reread"), std::string::npos);
}

TEST(FitLatentDecode, FitsRereadKeysIfTheBaseHasBlocksOf16Heads) {
  Accelerator machine = shipped_machine("hardware/b200-sxm.yaml").accelerator;
  const Accelerator base = machine;
  machine.latent_decode_fp8->reread.value = 0.8;
  const LatentDecodeFit fit =
      fit_latent_decode(base, latent_decoding_measured_on(machine, DType::fp8), "mine", "mine.csv");
  EXPECT_NEAR(fit.accelerator.latent_decode_fp8->reread.value, 0.8, 0.05);
  EXPECT_EQ(fit.accelerator.latent_decode->call.value, base.latent_decode->call.value);
  EXPECT_NE(latent_decode_yaml(fit, DType::fp8, 4).find("    reread: {value: "), std::string::npos);
}

TEST(FitLatentDecode, FewRowsMoveTheParametersOfTheBase) {
  Accelerator machine = h100_accelerator();
  machine.latent_decode->hbm_efficiency.value = 0.7;
  const LatentDecodeSize size{.batch = 64, .seq = 65536, .heads = 16};
  const std::vector<MeasuredLatentDecode> rows{{size, latent_decode_time(machine, size)}};
  Accelerator base = h100_accelerator();
  const LatentDecodeFit fit = fit_latent_decode(base, rows, "mine", "mine.csv");
  EXPECT_TRUE(fit.has_few);
  EXPECT_NEAR(fit.accelerator.latent_decode->hbm_efficiency.value, 0.7, 0.05);
  EXPECT_EQ(fit.accelerator.latent_decode->block.value, base.latent_decode->block.value);
  base.latent_decode.reset();
  EXPECT_FALSE(can_fit_latent_decode(base, rows, "mine"));
}

}  // namespace
}  // namespace commfuse
