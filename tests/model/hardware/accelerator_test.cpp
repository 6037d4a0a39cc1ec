// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/accelerator.h"

#include <gtest/gtest.h>

#include <string>

#include "model/config_error.h"

namespace commfuse {
namespace {

Accelerator with_bf16_and_fp8() {
  Accelerator accelerator;
  accelerator.name = "H100 SXM";
  for (const DType dtype : {DType::bf16, DType::fp8}) {
    MatrixUnit unit;
    unit.dense_peak.value = FlopsPerSecond{dtype == DType::bf16 ? 989e12 : 1979e12};
    accelerator.matrix_units[index_of(dtype)] = unit;
  }
  return accelerator;
}

TEST(Accelerator, HasAPeakForEachDtypeItSupports) {
  const Accelerator accelerator = with_bf16_and_fp8();
  EXPECT_TRUE(accelerator.supports(DType::bf16));
  EXPECT_FALSE(accelerator.supports(DType::fp32));
  EXPECT_EQ(accelerator.dense_peak(DType::fp8), FlopsPerSecond{1979e12});
}

TEST(Accelerator, AnUnsupportedDtypeListsTheSupportedOnes) {
  const Accelerator accelerator = with_bf16_and_fp8();
  EXPECT_NO_THROW(require_supported(accelerator, DType::bf16));
  try {
    require_supported(accelerator, DType::fp32);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "H100 SXM does not support GEMMs in fp32; choose one of bf16, fp8");
  }
}

TEST(AcceleratorDeathTest, AskingForAnUnsupportedDtypeIsAProgrammingError) {
  EXPECT_DEATH((void)with_bf16_and_fp8().dense_peak(DType::fp32), "the accelerator multiplies matrices of this dtype");
}

}  // namespace
}  // namespace commfuse
