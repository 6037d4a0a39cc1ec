// SPDX-License-Identifier: Apache-2.0
// Tests reports of NVIDIA's management library in words; its absence is not an error.
#include "validate/cuda/nvml.h"

#include <gtest/gtest.h>

namespace commfuse::validate {
namespace {

TEST(Nvml, ReasonsAreNamedByTheirBits) {
  EXPECT_EQ(reasons_in_words(0), "nothing");
  EXPECT_EQ(reasons_in_words(0x4), "the power cap");
  EXPECT_EQ(reasons_in_words(0x1 | 0x20), "idling, heat");
  EXPECT_EQ(reasons_in_words(0x4 | 0x1000), "the power cap, reasons 0x1000");
}

TEST(Nvml, AStateIsReportedAsFarAsItIsKnown) {
  EXPECT_EQ(in_words({.clock_mhz = 1980,
                      .memory_clock_mhz = 3201,
                      .watts = 111.6,
                      .celsius = 41,
                      .nvlinks = 18,
                      .throttled_by = 0}),
            "1980 MHz, memory 3201 MHz, 112 W, 41 C, 18 NVLinks up, not throttled");
  EXPECT_EQ(in_words({.celsius = 35}), "35 C");
}

TEST(Nvml, AnUnknownDeviceHasNoState) { EXPECT_EQ(device_state("GPU-no-such-device").has_value(), false); }

}  // namespace
}  // namespace commfuse::validate
