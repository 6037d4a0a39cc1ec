// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/host_link.h"

#include <gtest/gtest.h>

namespace commfuse {
namespace {

TEST(HostLinkTest, GenerationAndLanesDetermineTheRateOfTheDataSheet) {
  const std::optional<HostLink> link = host_link_named("PCIe 5 x16");
  ASSERT_TRUE(link);
  EXPECT_EQ(rate_of(*link).value, 63e9);
  EXPECT_EQ(gigatransfers_of(*link), 32.0);
  EXPECT_EQ(name_of(*link), "PCIe 5 x16");
  EXPECT_EQ(rate_of(*host_link_named("PCIe 4 x16")).value, 31.5e9);
  EXPECT_EQ(rate_of(*host_link_named("PCIe 3 x8")).value, 7.875e9);
}

TEST(HostLinkTest, AMissingLinkHasNoRate) {
  EXPECT_EQ(rate_of({}).value, 0.0);
  EXPECT_EQ(gigatransfers_of({}), 0.0);
  EXPECT_EQ(name_of(HostLink{}), "");
}

TEST(HostLinkTest, OtherTextsAreNotALink) {
  for (const char* const text :
       {"", "PCIe", "PCIe 5", "PCIe 5 x", "PCIe 0 x16", "PCIe 8 x16", "PCIe 5 x3", "PCIe 5 x64", "PCIe -5 x16",
        "NVLink-C2C", "PCIe 99999999999999999999 x16", "pcie 5 x16", " x16"}) {
    EXPECT_FALSE(host_link_named(text)) << text;
  }
}

}  // namespace
}  // namespace commfuse
