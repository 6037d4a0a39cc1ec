// SPDX-License-Identifier: Apache-2.0
// Tests the content of valid jitter files; tests/config/bad has invalid ones.
#include <gtest/gtest.h>

#include <chrono>

#include "model/config/catalogue.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

TEST(LoadJitterTest, EveryFileLoadsUnderItsOwnName) {
  EXPECT_EQ(known_names(Catalogue::jitter), (std::vector<std::string>{"default", "none"}));
  for (const std::string& name : known_names(Catalogue::jitter)) {
    EXPECT_EQ(load_jitter(name).name, name);
  }
}

TEST(LoadJitterTest, NoneDrawsNothing) {
  const JitterTables tables(load_jitter("none"));
  EXPECT_EQ(tables.stalls(), 0U);
  EXPECT_EQ(tables.kernel(false), nullptr);
  EXPECT_EQ(tables.kernel(true), nullptr);
  EXPECT_EQ(tables.rank(), nullptr);
}

TEST(LoadJitterTest, TheDefaultHasValuesAndTheirSources) {
  const Jitter jitter = load_jitter("default");
  EXPECT_EQ(jitter.compute_sigma.value, 0.01);
  EXPECT_EQ(jitter.compute_sigma.standard_error, 0.5);
  EXPECT_EQ(jitter.compute_sigma.provenance, Provenance::prior);
  EXPECT_EQ(jitter.communication_sigma.value, 0.02);
  EXPECT_EQ(jitter.rank_sigma.value, 0.02);
  EXPECT_EQ(jitter.stall_probability.value, 0.001);
  EXPECT_EQ(jitter.stall_scale.value, Duration{5us});
  EXPECT_EQ(jitter.stall_shape.value, 2.5);
  EXPECT_TRUE(jitter.compute_ratios.empty());
}

TEST(LoadJitterTest, ASampleFileBelowTheFolderIsReadAndSorted) {
  const Jitter jitter = load_jitter(COMMFUSE_SOURCE_DIR "/tests/model/config/jitter/measured.yaml");
  EXPECT_EQ(jitter.compute_ratios, (std::vector<double>{0.99, 1.0, 1.02, 1.3}));
  EXPECT_EQ(jitter.compute_sigma.provenance, Provenance::measured);
  EXPECT_EQ(jitter.compute_sigma.source, "four GEMMs");
  EXPECT_TRUE(jitter.communication_ratios.empty());
  EXPECT_EQ(jitter.stall_probability.value, 0.0);
}

}  // namespace
}  // namespace commfuse
