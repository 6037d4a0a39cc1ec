// SPDX-License-Identifier: Apache-2.0
// Tests the rows of implementations in whole models: where they run, what they are compared with, and how sure the
// comparison is.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/implementation.h"
#include "model/config_error.h"
#include "model/strategies/strategies.h"
#include "sim/point/grid.h"
#include "sim/step/predict_steps.h"
#include "sim/step/site_times.h"
#include "tests/own_folder.h"
#include "tests/sim/grid_of.h"
#include "tests/sim/message_of.h"

namespace commfuse {
namespace {

/// Returns the rows of a 70B model on eight H100, with these additional settings.
std::vector<StepRow> implemented_rows(std::vector<std::string> more) {
  std::vector<std::string> settings{"model=llama-3.1-70b", "scope=step", "ranks=8", "seq=8K"};
  settings.insert(settings.end(), more.begin(), more.end());
  const Grid grid = test::grid_of(settings);
  const Library library = library_of(grid);
  return StepPoints(library).rows(grid.settings);
}

std::vector<std::string> names_of(const std::vector<StepRow>& rows) {
  std::vector<std::string> names;
  for (const StepRow& row : rows) {
    names.push_back(row.text("strategy"));
  }
  return names;
}

const StepRow& row_named(const std::vector<StepRow>& rows, std::string_view name) {
  const auto row = std::ranges::find_if(rows, [&](const StepRow& each) { return each.text("strategy") == name; });
  EXPECT_NE(row, rows.end()) << name;
  return row == rows.end() ? rows.front() : *row;
}

/// Writes an implementation with the schedule of a ring exchange and these costs at both kinds of sites.
void write_implementation(const std::string& costs) {
  std::ofstream("mine.yaml") << fmt::format(
      "schema: commfuse.implementation/1\nname: mine\nsummary: mine\nuse: mine\nstrategy: ring_exchange\n"
      "transport: rdma\nsupports: {{sites: [ag_gemm, gemm_rs], dtypes: [bf16], ranks: 8, generations: [hopper]}}\n"
      "measured_on: {{hopper: {{}}}}\ncosts:\n  residual: {{value: 0.1, provenance: \"prior: a\"}}\n"
      "  ag_gemm: {{{0}}}\n  gemm_rs: {{{0}}}\n",
      costs);
}

/// Writes a framework that differs from megatron-core-2024, whose implementation is te, in these lines.
void write_framework(const std::string& name, const std::string& lines) {
  std::ofstream(name + ".yaml") << fmt::format(
      "schema: commfuse.framework/1\nname: {}\nextends: megatron-core-2024\n{}\n", name, lines);
}

constexpr const char* without_costs = "product_time: {value: 1, provenance: \"prior: a\"}";
constexpr const char* long_calls = "per_call: {value: 10 ms, provenance: \"prior: a\"}";

TEST(ImplementedRows, FollowTheStrategiesUnderTheirOwnNames) {
  const std::vector<StepRow> rows =
      implemented_rows({"as=te,flux", "strategy.name=serial,commfuse", "uncertainty=off"});
  EXPECT_EQ(names_of(rows), (std::vector<std::string>{"serial", "commfuse", "te", "flux"}));
  EXPECT_EQ(rows[2].text("implements"), "ring_exchange");
  EXPECT_EQ(rows[3].text("implements"), "fused_kernel");
  EXPECT_FALSE(rows[0].has("implements"));
  EXPECT_FALSE(rows[1].has("implements"));
  EXPECT_EQ(rows[1].text("bound"), "yes");
  for (const std::size_t available : {0U, 2U, 3U}) {
    EXPECT_FALSE(rows[available].has("bound")) << rows[available].text("strategy");
  }
  for (const StepRow& row : implemented_rows({"strategy.name=serial,commfuse", "uncertainty=off"})) {
    EXPECT_FALSE(row.has("bound")) << row.text("strategy");
  }
}

TEST(ImplementedRows, RunWhereTheySaveTimeAndSerialElsewhere) {
  for (const char* scope : {"scope=step", "scope=prefill"}) {
    const std::vector<StepRow> rows =
        implemented_rows({"as=te,flux", "strategy.name=serial", "uncertainty=off", scope});
    for (const char* name : {"te", "flux"}) {
      const StepRow& row = row_named(rows, name);
      ASSERT_TRUE(row.has("implemented_sites")) << name << " " << scope;
      EXPECT_LT(row.number("time_ms"), rows.front().number("time_ms")) << name << " " << scope;
    }
    // Flux's reduce-scatter over eight ranks is slow: a site that scatters stays serial (docs/implementations.md).
    EXPECT_EQ(row_named(rows, "flux").text("implemented_sites").find("down"), std::string::npos);
    EXPECT_NE(row_named(rows, "flux").text("implemented_sites").find("gate_up"), std::string::npos);
  }
}

TEST(ImplementedRows, WithoutCostsTakeAsLongAsTheirSchedule) {
  const OwnFolder folder;
  write_implementation(without_costs);
  const std::vector<StepRow> rows =
      implemented_rows({"as=./mine.yaml", "strategy.name=serial,ring_exchange", "uncertainty=off", "scope=prefill"});
  const StepRow& mine = row_named(rows, "mine");
  EXPECT_EQ(mine.text("implemented_sites"), "qkv, out_proj, gate_up, down");
  EXPECT_EQ(mine.number("time_ms"), row_named(rows, "ring_exchange").number("time_ms"));
}

/// The transfers of a fused kernel and the parts of its GEMM are ops of the schedule, but the host launches them
/// together.
TEST(ImplementedRows, AFusedKernelIsIssuedOnce) {
  const Machine machine = load_machine("h100-sxm");
  const Transformer model = load_model("llama-3.1-8b");
  StructureCache structures;
  SiteTimes times(structures, machine);
  for (const Scope scope : {Scope::gate_up, Scope::down}) {
    SitePoint point{.model = &model, .scope = scope, .ranks = 8, .tokens = 8192, .strategy = &fused_kernel_strategy};
    EXPECT_EQ(times.of(point).kernels, 1) << name_of(scope);
    point.strategy = &serial_strategy;  // a GEMM and a collective
    EXPECT_EQ(times.of(point).kernels, 2) << name_of(scope);
  }
}

TEST(ImplementedRows, WithoutASiteWhereTheySaveTimeEqualTheirBaseline) {
  const OwnFolder folder;
  write_implementation(long_calls);
  for (const char* framework : {"framework=none", "framework=torchtitan"}) {
    const std::vector<StepRow> rows = implemented_rows({"as=./mine.yaml", "strategy.name=serial", framework});
    const StepRow& mine = row_named(rows, "mine");
    EXPECT_FALSE(mine.has("implemented_sites"));
    EXPECT_EQ(mine.number("time_ms"), rows.front().number("time_ms")) << framework;
    EXPECT_EQ(mine.number("time_error"), rows.front().number("time_error")) << framework;
    EXPECT_EQ(mine.number("beats_serial"), 0.5) << framework;
    EXPECT_EQ(mine.number("saving_error"), 0.0) << framework;
  }
}

TEST(ImplementedRows, AreComparedWithTheFrameworkThatIsNamed) {
  const std::vector<StepRow> rows =
      implemented_rows({"as=te", "framework=megatron-lm", "strategy.name=serial,commfuse", "uncertainty=off"});
  EXPECT_EQ(names_of(rows), (std::vector<std::string>{"megatron-lm", "serial", "commfuse", "te"}));
  EXPECT_FALSE(rows.front().has("bound"));
  EXPECT_LT(rows.back().number("time_ms"), rows.front().number("time_ms"));
  EXPECT_EQ(rows.back().text("framework"), "megatron-lm");
}

TEST(ImplementedRows, KernelsThatTheFrameworkRunsHaveNoRow) {
  const std::vector<StepRow> rows =
      implemented_rows({"as=te,flux", "framework=megatron-core-2024", "strategy.name=serial", "uncertainty=off"});
  EXPECT_EQ(row_named(rows, "te").text("reason"),
            "megatron-core-2024 runs te itself, so its row has this step; choose another implementation or framework");
  EXPECT_FALSE(row_named(rows, "te").has("implemented_sites"));
  EXPECT_TRUE(row_named(rows, "flux").feasible());
  const std::vector<StepRow> chosen =
      implemented_rows({"as=all", "framework=megatron-core-2024", "strategy.name=serial", "uncertainty=off"});
  EXPECT_EQ(std::ranges::count(names_of(chosen), "te"), 0);
}

/// Everything that the row's kernels do not run is as in the framework's row, backward passes too.
TEST(ImplementedRows, ChangeOnlyTheGemmsThatTheySave) {
  const OwnFolder folder;
  write_framework("mine", "tensor_parallel: {implementation_sites: [qkv, gate_up, down_backward]}");
  const std::vector<StepRow> rows =
      implemented_rows({"as=te,flux", "framework=./mine.yaml", "strategy.name=serial", "uncertainty=off"});
  for (const char* name : {"te", "flux"}) {
    const StepRow& row = row_named(rows, name);
    EXPECT_LE(row.number("time_ms"), rows.front().number("time_ms")) << name;
    EXPECT_NE(row.text("schedules").find("down_dgrad"), std::string::npos) << row.text("schedules");
  }
}

/// Kernels that save nothing beyond the framework's own leave its step unchanged, so the comparison has no error.
TEST(ImplementedRows, EqualAFrameworkWithTheSameKernelsWithoutError) {
  const OwnFolder folder;
  write_framework("mine", "tensor_parallel: {implementation_sites: [qkv, out_proj, gate_up, down]}");
  const std::vector<StepRow> rows = implemented_rows({"as=te,flux", "framework=./mine.yaml", "strategy.name=serial"});
  const StepRow& te = row_named(rows, "te");
  EXPECT_FALSE(te.has("implemented_sites"));
  EXPECT_EQ(te.number("time_ms"), rows.front().number("time_ms"));
  EXPECT_EQ(te.number("beats_serial"), 0.5);
  EXPECT_EQ(te.number("saving_error"), 0.0);
  EXPECT_GT(row_named(rows, "flux").number("saving_error"), 0.02);
}

TEST(ImplementedRows, LeaveTheErrorOfTheFrameworkAsItIs) {
  const auto error_with = [](const char* kernels) {
    return implemented_rows({kernels, "framework=megatron-core-2024", "strategy.name=serial"})
        .front()
        .number("time_error");
  };
  EXPECT_EQ(error_with("as=te"), error_with("as=none"));
}

/// The host needs 900 us for each of the ring's kernels, longer than the device needs for the whole GEMM.
TEST(ImplementedRows, ARingThatWaitsForTheHostSavesNothing) {
  const OwnFolder folder;
  write_implementation(without_costs);
  write_framework("plain", "host: {issue: {value: 900 us, provenance: \"prior: a\"}}");
  const std::vector<StepRow> rows =
      implemented_rows({"as=./mine.yaml", "framework=./plain.yaml", "strategy.name=serial", "uncertainty=off"});
  EXPECT_FALSE(row_named(rows, "mine").has("implemented_sites"));
  write_framework("ring",
                  "host: {issue: {value: 900 us, provenance: \"prior: a\"}}\n"
                  "tensor_parallel: {implementation: ./mine.yaml}");
  write_framework("exposed",
                  "host: {issue: {value: 900 us, provenance: \"prior: a\"}}\n"
                  "tensor_parallel: {implementation_sites: []}");
  const auto time_of = [](const std::string& framework) {
    return implemented_rows({"framework=" + framework, "strategy.name=serial", "uncertainty=off"})
        .front()
        .number("time_ms");
  };
  EXPECT_EQ(time_of("./ring.yaml"), time_of("./exposed.yaml"));
}

TEST(ImplementedRows, StateTheChanceOfBeatingTheBaseline) {
  const std::vector<StepRow> rows = implemented_rows({"as=te", "strategy.name=serial,commfuse"});
  const StepRow& te = row_named(rows, "te");
  EXPECT_GT(te.number("beats_serial"), 0.5);
  EXPECT_LT(te.number("beats_serial"), 1.0);
  EXPECT_EQ(te.number("win_probability"), te.number("beats_serial"));  // serial is the only other row that can win
  EXPECT_GT(te.number("saving_error"), 0.0);
  EXPECT_FALSE(row_named(rows, "commfuse").has("win_probability"));
  EXPECT_FALSE(row_named(rows, "serial").has("beats_serial"));
  EXPECT_GT(te.number("time_error"), row_named(rows, "serial").number("time_error"));
}

// All GEMMs of the implementation take 10% longer with its residual; nothing else is uncertain about it.
TEST(ImplementedRows, TheirResidualMakesTheSavingUncertain) {
  const OwnFolder folder;
  write_implementation(without_costs);
  const std::vector<StepRow> rows = implemented_rows({"as=./mine.yaml", "strategy.name=serial", "scope=prefill"});
  const double saving_error = row_named(rows, "mine").number("saving_error");
  EXPECT_GT(saving_error, 0.03);  // The GEMMs of a layer take most of its time.
  EXPECT_LT(saving_error, 0.15);
}

TEST(ImplementedRows, WarnWhereNobodyMeasured) {
  const auto warnings = [](const StepRow& row) { return row.has("warnings") ? row.text("warnings") : std::string{}; };
  const std::string warning = "te was not measured on GPUs such as B200";
  const std::vector<StepRow> blackwell =
      implemented_rows({"as=te", "hardware=b200-sxm", "strategy.name=serial", "uncertainty=off"});
  EXPECT_NE(warnings(blackwell.back()).find(warning), std::string::npos) << warnings(blackwell.back());
  EXPECT_EQ(warnings(blackwell.front()).find(warning), std::string::npos);
  EXPECT_TRUE(warnings(blackwell.back()).ends_with("GPUs such as " + blackwell.back().text("unmeasured_on")));
  EXPECT_FALSE(blackwell.front().has("unmeasured_on"));
  const std::vector<StepRow> hopper = implemented_rows({"as=te", "strategy.name=serial", "uncertainty=off"});
  EXPECT_EQ(warnings(hopper.back()).find("not measured"), std::string::npos);
  EXPECT_FALSE(hopper.back().has("unmeasured_on"));
}

TEST(ImplementedRows, WarnAboutKernelsOfTheFrameworkThatCannotRun) {
  const OwnFolder folder;
  write_implementation(without_costs);  // for Hopper
  write_framework("on-hopper", "tensor_parallel: {implementation: ./mine.yaml, implementation_sites: [qkv]}");
  const std::vector<StepRow> rows = implemented_rows(
      {"as=flux", "hardware=a100-sxm-80", "framework=./on-hopper.yaml", "strategy.name=serial", "uncertainty=off"});
  for (const StepRow* row : {&rows.front(), &row_named(rows, "flux")}) {
    EXPECT_NE(row->text("warnings").find("are exposed"), std::string::npos) << row->text("strategy");
  }
}

TEST(ImplementedRows, AFrameworkWarnsWhereNobodyMeasuredItsKernels) {
  const StepRow row =
      implemented_rows({"framework=megatron-bridge", "hardware=b200-sxm", "strategy.name=serial", "uncertainty=off"})
          .front();
  ASSERT_NE(row.text("schedules").find("te "), std::string::npos);
  EXPECT_EQ(row.text("unmeasured_on"), "B200 SXM");
}

TEST(ImplementedRows, ANamedImplementationThatCannotRunHasAReason) {
  const auto reason_with = [](std::vector<std::string> more) {
    more.insert(more.end(), {"as=flux", "strategy.name=serial", "uncertainty=off"});
    const std::vector<StepRow> rows = implemented_rows(more);
    EXPECT_EQ(names_of(rows), (std::vector<std::string>{"serial", "flux"}));
    EXPECT_EQ(rows.back().text("implements"), "fused_kernel");
    EXPECT_FALSE(rows.back().has("implemented_sites"));
    return rows.back().has("reason") ? rows.back().text("reason") : std::string{};
  };
  EXPECT_EQ(reason_with({"hardware=b200-sxm"}), "flux does not run on b200-sxm; it is for ampere, hopper");
  EXPECT_EQ(reason_with({"ranks=1", "parallel.data=8", "batch=8"}),
            "flux runs GEMMs that meet an all-gather or a reduce-scatter of tensor ranks, and this plan has none; "
            "choose more --ranks");
  EXPECT_EQ(reason_with({"parallel.sequence_parallel=off"}),
            "flux runs GEMMs that meet an all-gather or a reduce-scatter of tensor ranks, and this plan has none; "
            "choose --sequence-parallel on");
}

TEST(ImplementedRows, WithoutSharedTokensRowParallelGemmsMeetAnAllReduce) {
  const std::vector<std::string> settings{"scope=prefill", "hardware=b200-sxm", "as=vllm_gemm_ar", "uncertainty=off"};
  std::vector<std::string> without_sharing = settings;
  without_sharing.emplace_back("parallel.sequence_parallel=off");
  const std::vector<StepRow> rows = implemented_rows(without_sharing);
  ASSERT_EQ(names_of(rows), (std::vector<std::string>{"serial", "vllm_gemm_ar"}));
  EXPECT_EQ(rows.back().text("implemented_sites"), "out_proj, down");
  EXPECT_LT(rows.back().number("time_ms"), rows.front().number("time_ms"));
  EXPECT_EQ(row_named(implemented_rows(settings), "vllm_gemm_ar").text("reason"),
            "vllm_gemm_ar runs GEMMs that meet an all-reduce of tensor ranks, and this plan has none; choose "
            "--sequence-parallel off");
}

TEST(ImplementedRows, KernelsOfAnAllReduceRunForAnyNumberOfTokens) {
  for (const char* seq : {"seq=8K", "seq=8194", "seq=8195", "seq=8200"}) {
    const std::vector<StepRow> rows = implemented_rows({"scope=prefill", "hardware=b200-sxm", "as=vllm_gemm_ar",
                                                        "parallel.sequence_parallel=off", "uncertainty=off", seq});
    EXPECT_EQ(row_named(rows, "vllm_gemm_ar").text("implemented_sites"), "out_proj, down") << seq;
  }
}

TEST(ImplementedRows, AllSelectsImplementationsThatRunThere) {
  const std::vector<StepRow> rows = implemented_rows({"as=all", "strategy.name=serial", "uncertainty=off"});
  const std::vector<std::string> names = names_of(rows);
  const auto has = [&](std::string_view name) { return std::ranges::find(names, name) != names.end(); };
  EXPECT_TRUE(has("te"));
  EXPECT_TRUE(has("flux"));
  EXPECT_FALSE(has("typical"));  // It stands in for kernels without a description.
  EXPECT_TRUE(std::ranges::all_of(rows, &StepRow::feasible));
  const std::vector<StepRow> alone =
      implemented_rows({"as=all", "ranks=1", "parallel.data=8", "batch=8", "uncertainty=off"});
  EXPECT_EQ(names_of(alone), (std::vector<std::string>{"serial"}));
  EXPECT_FALSE(alone.front().has("bound"));
}

TEST(ImplementedRows, DecodingStepsRefuseThem) {
  EXPECT_EQ(test::message_of([] {
              implemented_rows({"scope=decode", "batch=64", "as=te"});
            }),
            "--set as=te: scope decode does not support 'as'; remove it, or choose a layer's scope");
}

}  // namespace
}  // namespace commfuse
