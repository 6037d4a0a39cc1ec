// SPDX-License-Identifier: Apache-2.0
// Tests training steps with a baseline framework: its row comes first, and its choices are defaults.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "model/config_error.h"
#include "sim/point/grid.h"
#include "sim/step/predict_steps.h"
#include "tests/own_folder.h"
#include "tests/sim/grid_of.h"

namespace commfuse {
namespace {

/// Returns rows of an 8B model on 4 GPUs, with these additional settings.
std::vector<StepRow> rows_with(std::vector<std::string> more) {
  std::vector<std::string> settings{"model=llama-3.1-8b", "scope=step", "ranks=4", "uncertainty=off"};
  settings.insert(settings.end(), more.begin(), more.end());
  Grid grid;
  grid.settings = test::settings_of(settings);
  const Library library = library_of(grid);
  return StepPoints(library).rows(grid.settings);
}

std::vector<std::string> strategies_of(const std::vector<StepRow>& rows) {
  std::vector<std::string> names;
  std::transform(rows.begin(), rows.end(), std::back_inserter(names),
                 [](const StepRow& row) { return row.text("strategy"); });
  return names;
}

TEST(FrameworkRows, TheFrameworkComesFirstAndFillsUnsetSettings) {
  const std::vector<StepRow> rows = rows_with({"framework=torchtitan", "strategy.name=serial,commfuse"});
  EXPECT_EQ(strategies_of(rows), (std::vector<std::string>{"torchtitan", "serial", "commfuse"}));
  for (const StepRow& row : rows) {
    EXPECT_EQ(row.text("framework"), "torchtitan");
    EXPECT_EQ(row.count("zero"), 3);
    EXPECT_EQ(row.text("recompute"), "selective");
  }
}

TEST(FrameworkRows, KeepsTheChoicesOfTheUser) {
  const std::vector<StepRow> rows =
      rows_with({"framework=torchtitan", "strategy.name=serial", "parallel.zero=0", "step.recompute=none"});
  ASSERT_EQ(rows.size(), 2U);
  for (const StepRow& row : rows) {
    EXPECT_EQ(row.count("zero"), 0);
    EXPECT_EQ(row.text("recompute"), "none");
  }
}

TEST(FrameworkRows, WithoutAFrameworkRowsStayTheSame) {
  const std::vector<StepRow> unset = rows_with({});
  const std::vector<StepRow> none = rows_with({"framework=none"});
  ASSERT_EQ(none.size(), unset.size());
  for (std::size_t i = 0; i < none.size(); ++i) {
    EXPECT_EQ(none[i].cells, unset[i].cells);
    EXPECT_FALSE(none[i].has("framework"));
    EXPECT_EQ(none[i].count("zero"), 0);
    EXPECT_EQ(none[i].text("recompute"), "none");
  }
  EXPECT_EQ(strategies_of(none).front(), "serial");
}

TEST(FrameworkRows, AttentionDropoutAndGradientsAreSettingsWithAColumnEach) {
  const auto row_with = [](std::vector<std::string> more) {
    more.insert(more.end(), {"strategy.name=serial", "parallel.data=2", "batch=2"});
    return rows_with(std::move(more)).front();
  };
  const StepRow usual = row_with({});
  EXPECT_EQ(usual.text("attention_kernel"), "fused");
  EXPECT_FALSE(usual.holds("dropout"));
  EXPECT_EQ(usual.text("gradient_dtype"), "fp32");
  EXPECT_TRUE(usual.holds("overlap_gradients"));
  const StepRow unfused = row_with({"attention_kernel=unfused"});
  EXPECT_EQ(unfused.text("attention_kernel"), "unfused");
  EXPECT_GT(unfused.number("time_ms"), usual.number("time_ms"));
  EXPECT_GT(unfused.number("activations_gb"), usual.number("activations_gb"));
  const StepRow drops = row_with({"step.dropout=on"});
  EXPECT_TRUE(drops.holds("dropout"));
  EXPECT_GT(drops.number("time_ms"), usual.number("time_ms"));
  const StepRow narrow = row_with({"step.gradient_dtype=bf16"});
  EXPECT_EQ(narrow.text("gradient_dtype"), "bf16");
  EXPECT_EQ(narrow.number("gradients_gb"), usual.number("gradients_gb") / 2.0);
  const StepRow late = row_with({"step.overlap_gradients=off"});
  EXPECT_FALSE(late.holds("overlap_gradients"));
  EXPECT_GT(late.number("gradients_ms"), usual.number("gradients_ms"));
}

TEST(FrameworkRows, AFrameworkChoosesAttentionDropoutAndGradients) {
  const std::vector<StepRow> rows = rows_with({"framework=megatron-deepspeed-2023", "strategy.name=serial"});
  ASSERT_EQ(rows.size(), 2U);
  for (const StepRow& row : rows) {
    EXPECT_EQ(row.text("attention_kernel"), "unfused");
    EXPECT_TRUE(row.holds("dropout"));
    EXPECT_EQ(row.text("gradient_dtype"), "fp16");
    EXPECT_FALSE(row.holds("overlap_gradients"));
  }
  const std::vector<StepRow> mine =
      rows_with({"framework=megatron-deepspeed-2023", "strategy.name=serial", "attention_kernel=fused"});
  EXPECT_EQ(mine.front().text("attention_kernel"), "fused");
}

/// Each changed value of the profile changes the time of the step in the expected direction.
TEST(FrameworkRows, TheProfileOfAUserChangesTheTimeOfItsRow) {
  const OwnFolder folder;
  const auto time_of = [](const std::string& host, const std::string& loss_bytes, const std::string& overlap) {
    std::ofstream("mine.yaml") << "schema: commfuse.framework/1\nname: mine\nsummary: mine\nhost: {issue: {value: "
                               << host << ", provenance: \"prior: a\"}, runs_ahead: true}\n"
                               << "kernels: {fused_accumulation: true, loss_bytes: " << loss_bytes
                               << "}\ntensor_parallel: {overlap: " << overlap << ", backward_beside_products: false}\n";
    const std::vector<StepRow> rows = rows_with({"framework=./mine.yaml", "strategy.name=serial"});
    EXPECT_EQ(rows.front().text("framework"), "mine");
    EXPECT_EQ(rows.front().text("strategy"), "mine");
    return rows.front().number("time_ms");
  };
  const double plain = time_of("12 us", "52", "serial");
  EXPECT_LT(time_of("12 us", "14", "serial"), plain);
  EXPECT_GT(time_of("900 us", "52", "serial"), plain);
  EXPECT_LT(time_of("12 us", "52", "commfuse"), plain);
}

}  // namespace
}  // namespace commfuse
