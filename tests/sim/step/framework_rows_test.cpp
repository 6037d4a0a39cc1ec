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

TEST(FrameworkRows, ARowWithAReasonHasTheFrameworksChoicesAndName) {
  const OwnFolder folder;
  std::ofstream("mine.yaml") << "schema: commfuse.framework/1\nname: mine\nextends: torchtitan\n";
  Grid grid;
  grid.settings = test::settings_of(
      {"model=llama-3.1-8b", "scope=step", "ranks=1", "parallel.pipeline=3", "framework=./mine.yaml"});
  const Library library = library_of(grid);
  const std::vector<StepRow> rows = StepPoints(library).rows_or_reason(grid.settings);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(
      rows[0].text("reason"),
      "32 layers of llama-3.1-8b do not split into pipeline 3 x interleave 1 chunks; choose a number of chunks that "
      "divides 32 or 34");
  EXPECT_EQ(rows[0].text("framework"), "mine");
  EXPECT_EQ(rows[0].count("zero"), 3);
  EXPECT_EQ(rows[0].text("recompute"), "selective");
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
  EXPECT_FALSE(usual.flag("dropout"));
  EXPECT_EQ(usual.text("gradient_dtype"), "fp32");
  EXPECT_TRUE(usual.flag("overlap_gradients"));
  const StepRow unfused = row_with({"attention_kernel=unfused"});
  EXPECT_EQ(unfused.text("attention_kernel"), "unfused");
  EXPECT_GT(unfused.number("time_ms"), usual.number("time_ms"));
  EXPECT_GT(unfused.number("activations_gb"), usual.number("activations_gb"));
  const StepRow drops = row_with({"step.dropout=on"});
  EXPECT_TRUE(drops.flag("dropout"));
  EXPECT_GT(drops.number("time_ms"), usual.number("time_ms"));
  const StepRow narrow = row_with({"step.gradient_dtype=bf16"});
  EXPECT_EQ(narrow.text("gradient_dtype"), "bf16");
  EXPECT_EQ(narrow.number("gradients_gb"), usual.number("gradients_gb") / 2.0);
  const StepRow late = row_with({"step.overlap_gradients=off"});
  EXPECT_FALSE(late.flag("overlap_gradients"));
  EXPECT_GT(late.number("gradients_ms"), usual.number("gradients_ms"));
}

// Without these columns, rows that differ only in launch or jitter would be taken for one plan.
TEST(FrameworkRows, LaunchAndJitterHaveColumnsWhereTheyAreChosen) {
  const StepRow usual = rows_with({"strategy.name=serial"}).front();
  EXPECT_FALSE(usual.has("launch") || usual.has("jitter"));
  const StepRow chosen = rows_with({"strategy.name=serial", "launch=graph", "jitter=default"}).front();
  EXPECT_EQ(chosen.text("launch"), "graph");
  EXPECT_EQ(chosen.text("jitter"), "default");
}

TEST(FrameworkRows, AFrameworkChoosesAttentionDropoutAndGradients) {
  const std::vector<StepRow> rows = rows_with({"framework=megatron-deepspeed-2023", "strategy.name=serial"});
  ASSERT_EQ(rows.size(), 2U);
  for (const StepRow& row : rows) {
    EXPECT_EQ(row.text("attention_kernel"), "unfused");
    EXPECT_TRUE(row.flag("dropout"));
    EXPECT_EQ(row.text("gradient_dtype"), "fp16");
    EXPECT_FALSE(row.flag("overlap_gradients"));
  }
  const std::vector<StepRow> mine =
      rows_with({"framework=megatron-deepspeed-2023", "strategy.name=serial", "attention_kernel=fused"});
  EXPECT_EQ(mine.front().text("attention_kernel"), "fused");
}

/// Returns the row of a framework that extends megatron-core-2024 with these GEMMs of its implementation.
StepRow row_with_sites(const std::string& sites, std::vector<std::string> more = {}) {
  std::ofstream("mine.yaml") << "schema: commfuse.framework/1\nname: mine\nextends: megatron-core-2024\n"
                             << "tensor_parallel: {implementation_sites: [" << sites << "]}\n";
  more.insert(more.end(), {"framework=./mine.yaml", "strategy.name=serial"});
  return rows_with(std::move(more)).front();
}

TEST(FrameworkRows, AnImplementationRunsExactlyTheListedGemms) {
  const OwnFolder folder;
  const StepRow none = row_with_sites("");
  EXPECT_EQ(none.text("schedules"), "serial (qkv, out_proj, gate_up, down)");
  // megatron-lm differs from megatron-core-2024 only in its implementation and its ZeRO stage.
  const StepRow exposed = rows_with({"framework=megatron-lm", "parallel.zero=1", "strategy.name=serial"}).front();
  EXPECT_EQ(none.number("time_ms"), exposed.number("time_ms"));
  EXPECT_FALSE(exposed.has("schedules"));
  const StepRow partial = row_with_sites("qkv, down_backward");
  EXPECT_NE(partial.number("time_ms"), none.number("time_ms"));
  const std::string& schedules = partial.text("schedules");
  EXPECT_EQ(schedules.find("te group="), 0U) << schedules;
  EXPECT_NE(schedules.find("serial (out_proj, gate_up, down)"), std::string::npos) << schedules;
  EXPECT_NE(schedules.find("down_dgrad"), std::string::npos) << schedules;
  EXPECT_FALSE(partial.has("warnings"));
}

/// Writes a framework whose implementation of the same name has this cost per call at all-gather-GEMM sites, and runs
/// the GEMM of QKV.
void write_framework_and_kernels(const std::string& name, const std::string& per_call) {
  std::ofstream(name + "-kernels.yaml")
      << "schema: commfuse.implementation/1\nname: " << name << "\nsummary: mine\nuse: mine\nstrategy: ring_exchange\n"
      << "transport: rdma\nsupports: {sites: [ag_gemm], dtypes: [bf16], ranks: 8, generations: [hopper]}\n"
      << "measured_on: {hopper: {}}\ncosts:\n  residual: {value: 0.1, provenance: \"prior: a\"}\n"
      << "  ag_gemm: {per_call: {value: " << per_call << ", provenance: \"prior: a\"}}\n";
  std::ofstream(name + ".yaml") << "schema: commfuse.framework/1\nname: " << name << "\nextends: megatron-core-2024\n"
                                << "tensor_parallel: {implementation: ./" << name
                                << "-kernels.yaml, implementation_sites: [qkv]}\n";
}

/// Sites recognize kernels by their address, which must not pass to the kernels of another framework.
TEST(FrameworkRows, EachOfSeveralFrameworksKeepsItsOwnKernels) {
  const OwnFolder folder;
  write_framework_and_kernels("quick", "1 us");
  write_framework_and_kernels("slow", "10 ms");
  const Grid grid =
      test::grid_of({"model=llama-3.1-8b", "scope=step", "ranks=4", "uncertainty=off", "strategy.name=serial"});
  const Library library = library_of(grid);
  StepPoints points(library);
  for (int i = 0; i < 2; ++i) {
    for (const char* framework : {"framework=./quick.yaml", "framework=./slow.yaml"}) {
      const StepRow alone = rows_with({framework, "strategy.name=serial"}).front();
      const StepRow among_others = points
                                       .rows(test::settings_of({"model=llama-3.1-8b", "scope=step", "ranks=4",
                                                                "uncertainty=off", "strategy.name=serial", framework}))
                                       .front();
      EXPECT_EQ(among_others.number("time_ms"), alone.number("time_ms")) << framework;
    }
  }
}

/// A framework without a list of GEMMs uses its implementation only where the implementation saves time.
TEST(FrameworkRows, ListedGemmsAreNeverFasterThanTheFastest) {
  const OwnFolder folder;
  const double fastest = rows_with({"framework=megatron-core-2024", "strategy.name=serial"}).front().number("time_ms");
  EXPECT_GE(row_with_sites("qkv, out_proj, gate_up, down").number("time_ms"), fastest);
  EXPECT_GE(row_with_sites("").number("time_ms"), fastest);
}

TEST(FrameworkRows, WarnWhereTheListedGemmsCannotRun) {
  const OwnFolder folder;
  const StepRow row = row_with_sites("qkv", {"hardware=mi300x"});
  EXPECT_EQ(row.text("warnings"),
            "the collectives that te would overlap are exposed, because te does not run on mi300x");
  EXPECT_FALSE(row_with_sites("", {"hardware=mi300x"}).has("warnings"));
}

TEST(StepWarnings, SelectiveRecomputationOfAFusedCoreFreesNoMemory) {
  const auto warns = [](std::vector<std::string> settings) {
    settings.insert(settings.begin(), "strategy.name=serial");
    const StepRow row = rows_with(std::move(settings)).front();
    const std::string warnings = row.has("warnings") ? row.text("warnings") : "";
    return warnings ==
           "selective recomputation of fused attention takes time and frees no memory, so recompute none is better";
  };
  EXPECT_TRUE(warns({"step.recompute=selective"}));
  EXPECT_TRUE(warns({"framework=megatron-lm", "step.recompute=selective"}));
  EXPECT_FALSE(warns({"framework=torchtitan"}));
  EXPECT_FALSE(warns({"step.recompute=selective", "attention_kernel=unfused"}));
  EXPECT_FALSE(warns({"step.recompute=full"}));
  EXPECT_FALSE(warns({}));
}

TEST(StepWarnings, Fp8GemmsIncludeTheirConversion) {
  const auto warnings = [](std::vector<std::string> settings) {
    settings.insert(settings.begin(), {"strategy.name=serial", "parallel.sequence_parallel=off"});
    const StepRow row = rows_with(std::move(settings)).front();
    return row.has("warnings") ? row.text("warnings") : "";
  };
  const std::string warning =
      "fp8 GEMMs include kernels that convert activations, and frameworks that fuse the conversion take less time";
  for (const std::string hardware : {"hardware=b200-sxm", "hardware=h100-sxm"}) {
    for (const std::string scope : {"scope=step", "scope=prefill", "scope=decode"}) {
      EXPECT_EQ(warnings({scope, hardware, "dtype=fp8"}), warning) << hardware << " " << scope;
    }
    EXPECT_EQ(warnings({"scope=decode", hardware}), "") << hardware;
  }
  EXPECT_EQ(warnings({"scope=decode", "hardware=gaudi-3", "dtype=fp8"}), "") << "no conversion is known";
}

// The rows of a layer have the options of its schedule in columns; a whole model has one schedule for each site.
TEST(StepSchedules, NameTheOptionsOfEverySite) {
  const std::vector<StepRow> rows = rows_with({"strategy.name=serial,sliced,ring_exchange"});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_FALSE(rows[0].has("schedules"));  // serial has a single schedule
  const std::string& sliced = rows[1].text("schedules");
  for (const char* site : {"qkv", "out_proj", "gate_up", "down", "qkv_backward", "down_backward"}) {
    EXPECT_NE(sliced.find(site), std::string::npos) << sliced;
  }
  EXPECT_EQ(sliced.find("slices="), 0U) << sliced;
}

TEST(StepSchedules, ListEachSiteOnce) {
  for (const StepRow& row : rows_with({"strategy.name=sliced,commfuse"})) {
    std::string words = row.text("schedules");
    std::size_t sites = 0;
    for (std::size_t at = words.find('('); at != std::string::npos; at = words.find('(', at + 1)) {
      const std::size_t end = words.find(')', at);
      ASSERT_NE(end, std::string::npos) << words;
      sites += static_cast<std::size_t>(std::count(words.begin() + static_cast<std::ptrdiff_t>(at),
                                                   words.begin() + static_cast<std::ptrdiff_t>(end), ',')) +
               1;
    }
    EXPECT_EQ(sites, 8U) << words;  // four GEMMs, forward and backward
  }
}

// A micro-batch has 4,096 tokens with 128,256 logits each, shared by 4 tensor ranks; the second row has 8 bytes more
// per logit.
TEST(FrameworkRows, TheLossOfAFrameworkIsPartOfItsMemory) {
  const OwnFolder folder;
  const auto row_with = [](const std::string& loss_memory) {
    std::ofstream("mine.yaml") << "schema: commfuse.framework/1\nname: mine\nextends: megatron-lm\n"
                               << "kernels: {loss_memory: {value: " << loss_memory << ", provenance: \"prior: a\"}}\n";
    return rows_with({"framework=./mine.yaml", "strategy.name=serial", "seq=4K", "step.micro_batch=1"}).front();
  };
  const StepRow four = row_with("4");
  const StepRow twelve = row_with("12");
  const double gigabytes = 8.0 * 4096 * 128256 / 4 / 1e9;
  EXPECT_NEAR(twelve.number("activations_gb") - four.number("activations_gb"), gigabytes, 1e-9);
  EXPECT_NEAR(twelve.number("memory_gb") - four.number("memory_gb"), gigabytes, 1e-9);
  EXPECT_EQ(twelve.number("time_ms"), four.number("time_ms"));
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
