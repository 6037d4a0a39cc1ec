// SPDX-License-Identifier: Apache-2.0
// Tests files of configs/frameworks: their content, their mistakes, and the settings that they fill.
#include "model/config/framework.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/field.h"
#include "model/config/implementation.h"
#include "model/config/resolver.h"
#include "model/config_error.h"
#include "tests/known.h"
#include "tests/own_folder.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view loom_framework = R"(schema: commfuse.framework/1
name: loom
summary: "weaves layers"
host:
  issue: {value: 21 us, error: 0.2, provenance: "measured: a"}
  runs_ahead: false
kernels:
  misaligned_power: {value: 0.75, error: 0.1, provenance: "prior: b"}
  attention_time:
    ampere: {value: 1.25, provenance: "published: c"}
    hopper: {value: 1.5, error: 0.15, provenance: "published: d"}
  fused_accumulation: false
  loss_bytes: 14
tensor_parallel:
  overlap: none
  implementation: flux
  backward_beside_products: false
settings: {parallel.zero: 3, step.recompute: selective, step.micro_batch: 2}
)";

/// Loads texts as loom.yaml, in a separate folder.
class FrameworkTest : public ::testing::Test {
 protected:
  static Framework loaded(std::string_view text) {
    std::ofstream("loom.yaml", std::ios::binary) << text;
    return load_framework("./loom.yaml");
  }
  /// Returns the example with one string in place of another.
  static std::string with(std::string_view from, std::string_view to) {
    std::string text(loom_framework);
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
  }
  /// Returns the message about the changed example.
  static std::string refusal(std::string_view from, std::string_view to) {
    try {
      loaded(with(from, to));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }

  OwnFolder folder_;
};

const Parameter<double>& attention_on(const Framework& framework, NcclGeneration generation) {
  return framework.attention_time[static_cast<std::size_t>(generation)];
}

TEST_F(FrameworkTest, EveryFileOfTheCatalogueLoadsUnderItsOwnName) {
  const std::vector<std::string> names = known_names(Catalogue::frameworks);
  EXPECT_GE(names.size(), 8U);
  for (const std::string& name : names) {
    const Framework framework = load_framework(name);
    EXPECT_EQ(framework.name, name);
    EXPECT_FALSE(framework.summary.empty()) << name;
  }
}

TEST_F(FrameworkTest, APathOfAnImplementationStartsAtTheFolder) {
  std::filesystem::create_directory("sub");
  std::filesystem::copy_file(COMMFUSE_SOURCE_DIR "/configs/implementations/flux.yaml", "sub/mine.yaml");
  std::ofstream("sub/loom.yaml") << with("implementation: flux", "implementation: ./mine.yaml");
  const Framework loom = load_framework("sub/loom.yaml");
  ASSERT_NE(loom.implementation, nullptr);
  EXPECT_EQ(loom.implementation->name, "flux");
}

TEST_F(FrameworkTest, LoadsEveryKeyOfTheExample) {
  const Framework loom = loaded(loom_framework);
  EXPECT_EQ(loom.name, "loom");
  EXPECT_EQ(loom.summary, "weaves layers");
  EXPECT_EQ(loom.issue.value, Duration{21us});
  EXPECT_EQ(loom.issue.standard_error, 0.2);
  EXPECT_EQ(loom.issue.provenance, Provenance::measured);
  EXPECT_EQ(loom.issue.source, "a");
  EXPECT_FALSE(loom.host_runs_ahead);
  EXPECT_EQ(loom.misaligned_power.value, 0.75);
  EXPECT_EQ(loom.misaligned_power.standard_error, 0.1);
  EXPECT_EQ(attention_on(loom, NcclGeneration::volta).value, 1.0);
  EXPECT_EQ(attention_on(loom, NcclGeneration::ampere).value, 1.25);
  EXPECT_EQ(attention_on(loom, NcclGeneration::ampere).standard_error, 0.0);
  EXPECT_EQ(attention_on(loom, NcclGeneration::hopper).value, 1.5);
  EXPECT_EQ(attention_on(loom, NcclGeneration::hopper).standard_error, 0.15);
  EXPECT_EQ(attention_on(loom, NcclGeneration::hopper).source, "d");
  EXPECT_EQ(attention_on(loom, NcclGeneration::blackwell).value, 1.0);
  EXPECT_FALSE(loom.fuses_accumulation);
  EXPECT_EQ(loom.loss_bytes, 14.0);
  EXPECT_EQ(loom.tensor_overlap, nullptr);
  ASSERT_NE(loom.implementation, nullptr);
  EXPECT_EQ(loom.implementation->name, "flux");
  EXPECT_FALSE(loom.overlaps_backward);
  const std::vector<std::pair<std::string, std::string>> settings{
      {"parallel.zero", "3"}, {"step.recompute", "selective"}, {"step.micro_batch", "2"}};
  EXPECT_EQ(loom.settings, settings);
}

TEST_F(FrameworkTest, AStrategyMayReplaceAnImplementation) {
  const Framework loom = loaded(with("none\n  implementation: flux", "sliced"));
  EXPECT_EQ(loom.tensor_overlap, &sliced_strategy);
  EXPECT_EQ(loom.implementation, nullptr);
}

TEST_F(FrameworkTest, MayListTheGemmsOfItsImplementation) {
  EXPECT_EQ(loaded(loom_framework).implementation_sites, std::nullopt);
  const Framework loom =
      loaded(with("implementation: flux", "implementation: flux\n  implementation_sites: [qkv, down_backward]"));
  EXPECT_EQ(loom.implementation_sites, (std::vector{Scope::qkv, Scope::down_backward}));
  EXPECT_EQ(
      loaded(with("implementation: flux", "implementation: flux\n  implementation_sites: []")).implementation_sites,
      std::vector<Scope>{});
  EXPECT_EQ(refusal("implementation: flux", "implementation: flux\n  implementation_sites: [qkv, layer]"),
            "./loom.yaml:17:25: unknown site 'layer'; known sites: qkv, out_proj, gate_up, down, out_proj_backward, "
            "down_backward");
  EXPECT_EQ(refusal("implementation: flux", "implementation: flux\n  implementation_sites: qkv"),
            "./loom.yaml:17:25: implementation_sites must be a list, as in implementation_sites: [qkv, gate_up]");
  EXPECT_EQ(refusal("implementation: flux", "implementation_sites: [qkv]"),
            "./loom.yaml:16:25: no implementation runs these GEMMs; add one, as in implementation: te, or remove this "
            "line");
  EXPECT_EQ(refusal("implementation: flux",
                    "implementation: flash_overlap\n  implementation_sites: [out_proj, out_proj_backward]"),
            "./loom.yaml:17:25: flash_overlap has no kernels for out_proj_backward; remove the site, or name another "
            "implementation");
}

TEST_F(FrameworkTest, ExtendsAFrameworkOfTheCatalogue) {
  const Framework base = load_framework("megatron-core-2024");
  const Framework mine = loaded(
      "schema: commfuse.framework/1\nname: mine\nextends: megatron-core-2024\nkernels: {loss_bytes: 20}\n"
      "tensor_parallel: {implementation_sites: [qkv]}\nsettings: {step.recompute: full}\n");
  EXPECT_EQ(mine.name, "mine");
  EXPECT_EQ(mine.summary, base.summary);
  EXPECT_EQ(mine.loss_bytes, 20.0);
  EXPECT_EQ(mine.fuses_accumulation, base.fuses_accumulation);
  EXPECT_EQ(attention_on(mine, NcclGeneration::hopper).value, attention_on(base, NcclGeneration::hopper).value);
  ASSERT_NE(mine.implementation, nullptr);
  EXPECT_EQ(mine.implementation->name, base.implementation->name);
  EXPECT_EQ(mine.implementation_sites, std::vector{Scope::qkv});
  EXPECT_EQ(mine.settings.size(), base.settings.size() + 1);
  EXPECT_EQ(refusal("name: loom", "name: loom\nextends: megatron"),
            "./loom.yaml:3:10: unknown framework 'megatron'; did you mean 'megatron-lm'?");
  EXPECT_NE(refusal("name: loom", "name: loom\nextends: ./loom.yaml").find("unknown framework './loom.yaml'; known "),
            std::string::npos);
}

TEST_F(FrameworkTest, AStrategyReplacesTheImplementationOfTheBase) {
  const std::string head = "schema: commfuse.framework/1\nname: mine\nextends: megatron-core-2024\n";
  const Framework mine = loaded(head + "tensor_parallel: {overlap: sliced}\n");
  ASSERT_NE(mine.tensor_overlap, nullptr);
  EXPECT_EQ(mine.tensor_overlap->name, "sliced");
  EXPECT_EQ(mine.implementation, nullptr);
  EXPECT_NE(loaded(head + "tensor_parallel: {overlap: none}\n").implementation, nullptr);
}

TEST_F(FrameworkTest, OmittedKeysHaveTheValuesOfFrameworkNone) {
  const Framework none = load_framework("none");
  EXPECT_EQ(none.name, "");
  EXPECT_EQ(none.issue.value, Duration{12us});
  const Framework without_issue =
      loaded(with("  issue: {value: 21 us, error: 0.2, provenance: \"measured: a\"}\n", ""));
  EXPECT_EQ(without_issue.issue.value, none.issue.value);
  EXPECT_EQ(without_issue.issue.standard_error, none.issue.standard_error);
  EXPECT_EQ(loaded(with("  misaligned_power: {value: 0.75, error: 0.1, provenance: \"prior: b\"}\n", ""))
                .misaligned_power.value,
            none.misaligned_power.value);
  EXPECT_EQ(loaded(with("  implementation: flux\n", "")).implementation, nullptr);
  EXPECT_TRUE(loaded(with("settings: {parallel.zero: 3, step.recompute: selective, step.micro_batch: 2}\n", ""))
                  .settings.empty());
}

TEST_F(FrameworkTest, FillsPresetsAndKeepsTheUsersChoices) {
  const Framework loom = loaded(loom_framework);
  const Settings untouched = with_defaults_of(loom, Resolver().finish());
  EXPECT_EQ(untouched.text("parallel.zero"), "3");
  EXPECT_EQ(untouched.text("step.recompute"), "selective");
  EXPECT_EQ(untouched.text("step.micro_batch"), "2");
  EXPECT_EQ(untouched.at(*find_field("parallel.zero")).origin.source, Source::preset);
  EXPECT_EQ(untouched.at(*find_field("parallel.zero")).origin.where, "loom");

  std::ofstream("mine.yaml") << "parallel:\n  zero: 0\n";  // 0 is the preset of the setting.
  Resolver resolver;
  resolver.read_file("./mine.yaml");
  const Settings mine = with_defaults_of(loom, resolver.finish());
  EXPECT_EQ(mine.text("parallel.zero"), "0");
  EXPECT_EQ(mine.at(*find_field("parallel.zero")).origin.source, Source::file);
  EXPECT_EQ(mine.text("step.recompute"), "selective");

  const Settings without_framework = with_defaults_of(load_framework("none"), Resolver().finish());
  EXPECT_EQ(without_framework.text("parallel.zero"), find_field("parallel.zero")->preset);
}

TEST_F(FrameworkTest, UnknownKeysAndWordsAreNamedWithTheirPlace) {
  EXPECT_EQ(refusal("overlap: none", "overlap: slicd"),
            "./loom.yaml:15:12: unknown strategy 'slicd'; did you mean 'sliced'?");
  EXPECT_EQ(refusal("overlap: none", "overlap: megakernel"),
            "./loom.yaml:15:12: unknown strategy 'megakernel'; known strategies: none, " + test::known_strategies());
  EXPECT_EQ(refusal("implementation: flux", "implementation: flx"),
            "./loom.yaml:16:19: unknown implementation 'flx'; did you mean 'flux'? known: " +
                fmt::format("{}", fmt::join(known_names(Catalogue::implementations), ", ")) +
                "; a path contains '/' or ends in .yaml");
  EXPECT_EQ(
      refusal("overlap: none", "overlap: sliced"),
      "./loom.yaml:16:19: overlap already determines how GEMMs overlap collectives; write overlap: none, or remove "
      "this line");
  EXPECT_EQ(refusal("implementation: flux", "implementation: [flux]"),
            "./loom.yaml:16:19: 'implementation' is a list; write one value, as in \"implementation: te\"");
  EXPECT_EQ(refusal("summary:", "sumary: x\nsummary:"),
            "./loom.yaml:3:1: unknown key 'sumary'; did you mean 'summary'?");
  EXPECT_EQ(refusal("    ampere:", "    rubin:"),
            "./loom.yaml:10:5: unknown key 'rubin'; known keys: volta, ampere, hopper, blackwell");
}

TEST_F(FrameworkTest, RefusesNamesThatRowsAlreadyUse) {
  EXPECT_EQ(refusal("name: loom", "name: serial"),
            "./loom.yaml:2:7: the name 'serial' has another meaning in results; choose another name");
  EXPECT_EQ(refusal("name: loom", "name: none"),
            "./loom.yaml:2:7: the name 'none' has another meaning in results; choose another name");
}

TEST_F(FrameworkTest, GradientsAreSummedUpInSixteenBitsOrMore) {
  EXPECT_EQ(refusal("step.micro_batch: 2", "step.gradient_dtype: fp8"),
            "./loom.yaml:18:78: unknown dtype of gradients 'fp8'; known dtypes of gradients: fp32, bf16, fp16");
}

TEST_F(FrameworkTest, APlanTakesTheSettingsOfTheFramework) {
  const Framework loom = loaded(
      with("step.micro_batch: 2",
           "attention_kernel: unfused, step.dropout: on, step.gradient_dtype: bf16, step.overlap_gradients: off"));
  const TrainingPlan plan = with_defaults_of(loom, {.tensor = 4, .zero = Zero::none, .micro_batch = 3});
  EXPECT_EQ(plan.tensor, 4);
  EXPECT_EQ(plan.micro_batch, 3);
  EXPECT_EQ(plan.zero, Zero::weights);
  EXPECT_EQ(plan.recompute, Recompute::selective);
  EXPECT_FALSE(plan.fused_attention);
  EXPECT_TRUE(plan.dropout);
  EXPECT_EQ(plan.gradient_dtype, DType::bf16);
  EXPECT_FALSE(plan.overlap_gradients);
}

TEST_F(FrameworkTest, AcceptsOnlySettingsOfTrainingSteps) {
  const std::string known =
      "parallel.sequence_parallel, parallel.pipeline, parallel.interleave, parallel.schedule, parallel.data, "
      "parallel.context, parallel.context_exchange, parallel.ulysses, parallel.experts, parallel.zero, "
      "step.micro_batch, step.recompute, "
      "step.optimizer, step.dropout, step.gradient_dtype, step.overlap_gradients, attention_kernel";
  EXPECT_EQ(refusal("parallel.zero: 3", "seq: 4K"),
            "./loom.yaml:18:17: frameworks cannot choose 'seq'; known settings: " + known);
  EXPECT_EQ(refusal("parallel.zero: 3", "framework: fsdp"),
            "./loom.yaml:18:23: frameworks cannot choose 'framework'; known settings: " + known);
  EXPECT_EQ(refusal("parallel.zero: 3", "paralel.zero: 3"),
            "./loom.yaml:18:26: frameworks cannot choose 'paralel.zero'; did you mean 'parallel.zero'?");
  EXPECT_EQ(refusal("parallel.zero: 3", "parallel.zero: 7"), "./loom.yaml:18:27: '7' is out of range; choose 0 to 3");
  EXPECT_EQ(refusal("step.recompute: selective", "step.recompute: some"),
            "./loom.yaml:18:46: unknown recomputation 'some'; known choices: none, selective, full");
  EXPECT_EQ(refusal("parallel.zero: 3", "parallel: {zero: 3}"),
            "./loom.yaml:18:22: frameworks cannot choose 'parallel'; known settings: " + known);
  EXPECT_EQ(refusal("parallel.zero: 3", "parallel.zero: [3]"),
            "./loom.yaml:18:27: 'parallel.zero' is a list; write one value, as in \"parallel.zero: text\"");
}

TEST_F(FrameworkTest, MissingKeysAreNamed) {
  EXPECT_EQ(refusal("name: loom\n", ""), "./loom.yaml:1:1: missing key 'name'; add it, as in \"name: text\"");
  EXPECT_EQ(refusal("  runs_ahead: false\n", ""),
            "./loom.yaml:5:3: missing key 'runs_ahead' in 'host'; add it, as in \"runs_ahead: true\"");
  EXPECT_EQ(refusal("  loss_bytes: 14\n", ""),
            "./loom.yaml:8:3: missing key 'loss_bytes' in 'kernels'; add it, as in \"loss_bytes: 0.8\"");
  EXPECT_EQ(refusal("  overlap: none\n", ""),
            "./loom.yaml:15:3: missing key 'overlap' in 'tensor_parallel'; add it, as in \"overlap: none\"");
}

TEST_F(FrameworkTest, WeightsAreWideUnlessAFileNarrowsThem) {
  constexpr std::string_view last_kernel = "  loss_bytes: 14\n";
  EXPECT_FALSE(loaded(loom_framework).narrows_weights);
  EXPECT_TRUE(loaded(with(last_kernel, "  loss_bytes: 14\n  narrow_weights: true\n")).narrows_weights);
  EXPECT_EQ(refusal(last_kernel, "  loss_bytes: 14\n  narrow_weights: 8\n"),
            "./loom.yaml:14:19: '8' is neither true nor false; write true or false");
}

TEST_F(FrameworkTest, SelectiveRecomputationCoversTheCoreUnlessAFileListsParts) {
  constexpr std::string_view settings = "settings: {";
  const auto selective_of = [&](const std::string& parts) {
    return loaded(with(settings, "selective_recompute: " + parts + "\nsettings: {")).selective;
  };
  EXPECT_TRUE(loaded(loom_framework).selective.attention_core);
  EXPECT_FALSE(loaded(loom_framework).selective.exceeds_core());
  for (const RecomputedPart& part : recomputed_parts) {
    const SelectiveRecompute selective = selective_of("[" + std::string(part.name) + "]");
    for (const RecomputedPart& other : recomputed_parts) {
      EXPECT_EQ(selective.*other.member, part.name == other.name) << part.name << " " << other.name;
    }
  }
  const SelectiveRecompute both = selective_of("[norms, attention_core]");
  EXPECT_TRUE(both.norms && both.attention_core);
  EXPECT_EQ(refusal(settings, "selective_recompute: [norm]\nsettings: {"),
            "./loom.yaml:18:22: unknown part 'norm'; did you mean 'norms'?");
  EXPECT_EQ(refusal(settings, "selective_recompute: [scores]\nsettings: {"),
            "./loom.yaml:18:22: unknown part 'scores'; known parts: attention_core, norms, rotation, activation, "
            "every_second_gemm, every_second_gemm_eager");
  const std::string list =
      "./loom.yaml:18:22: selective_recompute must be a list of parts, as in selective_recompute: [attention_core]";
  EXPECT_EQ(refusal(settings, "selective_recompute: norms\nsettings: {"), list);
  EXPECT_EQ(refusal(settings, "selective_recompute: []\nsettings: {"), list);
}

TEST_F(FrameworkTest, TheLossHoldsFourBytesPerLogitUnlessAFileStatesMore) {
  EXPECT_EQ(loaded(loom_framework).loss_memory.value, 4.0);
  constexpr std::string_view last_kernel = "  loss_bytes: 14\n";
  const Framework loom = loaded(
      with(last_kernel, "  loss_bytes: 14\n  loss_memory: {value: 14, error: 0.25, provenance: \"prior: e\"}\n"));
  EXPECT_EQ(loom.loss_memory.value, 14.0);
  EXPECT_EQ(loom.loss_memory.standard_error, 0.25);
  EXPECT_EQ(loom.loss_memory.provenance, Provenance::prior);
  EXPECT_EQ(loom.loss_memory.source, "e");
  EXPECT_EQ(refusal(last_kernel, "  loss_bytes: 14\n  loss_memory: {value: 200, provenance: \"prior: e\"}\n"),
            "./loom.yaml:14:24: 'value' is 200; choose 0 to 100");
}

// PyTorch's backward pass of log-softmax holds the output, its gradient and the gradient of the input, in 32 bits each.
// A compiled loss holds the logits and their gradient, in 16 bits each.
TEST_F(FrameworkTest, ShippedFrameworksStateWhatTheirLossHolds) {
  for (const char* name : {"torchtitan", "fsdp", "deepspeed"}) {
    EXPECT_EQ(load_framework(name).loss_memory.value, 4 + 4 + 4) << name;
  }
  EXPECT_EQ(load_framework("torchtitan-async-tp").loss_memory.value, 2 + 2);
  for (const char* name : {"megatron-lm", "megatron-core-2024", "megatron-bridge", "mindspeed", "none"}) {
    EXPECT_EQ(load_framework(name).loss_memory.value, 4.0) << name;
  }
}

TEST_F(FrameworkTest, ShippedFrameworksListWhatTheyRecompute) {
  const SelectiveRecompute titan = load_framework("torchtitan").selective;
  EXPECT_TRUE(titan.norms && titan.rotation && titan.activation && titan.every_second_gemm_eager);
  EXPECT_FALSE(titan.attention_core || titan.every_second_gemm);
  const SelectiveRecompute overlapped = load_framework("torchtitan-async-tp").selective;
  EXPECT_TRUE(overlapped.every_second_gemm);
  EXPECT_FALSE(overlapped.every_second_gemm_eager);
  for (const char* name : {"megatron-lm", "megatron-core-2024", "megatron-bridge", "mindspeed", "none"}) {
    const SelectiveRecompute core = load_framework(name).selective;
    EXPECT_TRUE(core.attention_core) << name;
    EXPECT_FALSE(core.exceeds_core()) << name;
  }
}

TEST_F(FrameworkTest, NumbersHaveTheirRanges) {
  EXPECT_EQ(refusal("value: 21 us", "value: 21"),
            "./loom.yaml:5:18: '21' is not a time; write a number and a unit, as in \"5 us\"");
  EXPECT_EQ(refusal("value: 0.75", "value: 3"), "./loom.yaml:8:29: 'value' is 3; choose 0 to 2");
  EXPECT_EQ(refusal("value: 1.25", "value: 0"), "./loom.yaml:10:21: 'value' is 0; choose 0.1 to 10");
  EXPECT_EQ(refusal("loss_bytes: 14", "loss_bytes: 2"), "./loom.yaml:13:15: 'loss_bytes' is 2; choose 4 to 1000");
  EXPECT_EQ(refusal("fused_accumulation: false", "fused_accumulation: yes"),
            "./loom.yaml:12:23: 'yes' is neither true nor false; write true or false");
}

TEST_F(FrameworkTest, AnotherSchemaIsRefused) {
  EXPECT_EQ(refusal("commfuse.framework/1", "commfuse.framework/2"),
            "./loom.yaml:1:9: schema is 'commfuse.framework/2', but 'commfuse.framework/1' is required here; give a "
            "file of that kind");
  EXPECT_EQ(refusal("commfuse.framework/1", "commfuse.implementation/1"),
            "./loom.yaml:1:9: schema is 'commfuse.implementation/1', but 'commfuse.framework/1' is required here; give "
            "a file of that kind");
}

}  // namespace
}  // namespace commfuse
