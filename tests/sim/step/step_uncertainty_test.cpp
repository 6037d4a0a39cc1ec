// SPDX-License-Identifier: Apache-2.0
// Tests that the errors of a framework's parameters count in the error of a whole model's time.
#include "sim/step/step_uncertainty.h"

#include <gtest/gtest.h>

#include <cmath>

#include <chrono>
#include <optional>
#include <variant>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/framework.h"
#include "model/math/functions.h"
#include "model/strategies/strategies.h"
#include "model/workload/sites.h"
#include "sim/step/step.h"
#include "tests/sim/small_transformer.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

constexpr StepTime decoding{[](const StepPoint& point, SiteTimes& times) { return predict_decode(point, times).time; },
                            false};

constexpr StepTime prefilling{
    [](const StepPoint& point, SiteTimes& times) { return predict_prefill(point, times).time; }, false};

/// A decoding step of one token on one GPU.
struct DecodedToken {
  Transformer model{.name = "two layers",
                    .layers = 2,
                    .hidden = 1024,
                    .ffn = 4096,
                    .heads = 8,
                    .kv_heads = 8,
                    .head_dim = 128,
                    .vocab = 32000};
  Machine machine = load_machine("h100-sxm");
  StructureCache structures;
  SiteTimes times{structures, machine};
  StepPoint point{
      .model = &model, .machine = &machine, .plan = {.micro_batch = 1, .seq = 1}, .framework = {}, .cached = 1023};
};

// The host issues every kernel in 1 s, which is far longer than any kernel: the step takes 1.5 times as long if the
// host does.
TEST(StepUncertainty, CountsTheErrorOfTheHostThatLimitsTheStep) {
  DecodedToken token;
  token.point.framework.issue = {1s, 0.5, Provenance::prior, "assumed"};
  const Duration nominal = predict_decode(token.point, token.times).time;
  StepPoint slower = token.point;
  slower.framework.issue.value = 1500ms;
  const double effect = math::log(to_seconds(predict_decode(slower, token.times).time) / to_seconds(nominal));
  EXPECT_NEAR(effect, math::log(1.5), 1e-4);
  const Uncertainty uncertainty = step_uncertainty(token.point, token.times, decoding, {});
  ASSERT_EQ(uncertainty.doubts.size(), 2U);
  EXPECT_EQ(std::get<FrameworkDoubt>(uncertainty.doubts.front().of), (FrameworkDoubt{"", "host.issue"}));
  EXPECT_EQ(uncertainty.doubts.front().effect, effect);
  EXPECT_EQ(std::get<StepDoubt>(uncertainty.doubts.back().of), StepDoubt{});
  EXPECT_EQ(uncertainty.doubts.back().effect, 0.20);
  EXPECT_DOUBLE_EQ(error_of(uncertainty), std::hypot(effect, 0.20));
}

TEST(StepUncertainty, IgnoresAHostThatIssuesInNoTime) {
  DecodedToken token;
  token.point.framework.issue.value = Duration::zero();
  const Uncertainty uncertainty = step_uncertainty(token.point, token.times, decoding, {});
  ASSERT_EQ(uncertainty.doubts.size(), 1U);
  EXPECT_EQ(std::get<StepDoubt>(uncertainty.doubts.front().of), StepDoubt{});
}

TEST(StepUncertainty, PassesHaveTheErrorsOfPublishedPasses) {
  Transformer model = test::small_transformer;
  StepPoint point{.model = &model};
  EXPECT_EQ(pass_residual(point).of_machine, 0.06);
  point.cached = 1024;
  EXPECT_EQ(pass_residual(point).of_machine, 0.20);
  EXPECT_EQ(pass_residual(point).of_layout, 0.0);
  model.experts = Experts{};
  EXPECT_EQ(pass_residual(point).of_machine, step_residual(model).of_machine);
}

TEST(StepUncertainty, CountsTheErrorOfMisalignedGemms) {
  DecodedToken token;
  token.point.framework.issue.value = Duration::zero();
  token.model.ffn = 4097;
  const Uncertainty uncertainty = step_uncertainty(token.point, token.times, decoding, {});
  ASSERT_EQ(uncertainty.doubts.size(), 2U);
  EXPECT_EQ(std::get<FrameworkDoubt>(uncertainty.doubts.front().of), (FrameworkDoubt{"", "kernels.misaligned_power"}));
  EXPECT_GT(uncertainty.doubts.front().effect, 0.0);
}

// Served sites have the weights of the checkpoint: attention in 16 bits, MLPs in 8. Eight ranks copy four kv heads.
TEST(StepUncertainty, KeepsTheSchedulesOfServedSites) {
  Transformer model = test::small_transformer;
  model.kv_heads = 4;
  model.weights = WeightFormat{.name = "fp8", .bits = 8.0, .narrow_products = true, .attention = 0.0};
  const Machine machine = load_machine("h100-sxm");
  StructureCache structures;
  SiteTimes times(structures, machine);
  SiteTimes raised_times(structures, machine);
  const TrainingPlan plan{.tensor = 8, .sequence_parallel = true, .micro_batch = 1, .seq = 8192, .dtype = DType::fp8};
  StepPoint point{.model = &model, .machine = &machine, .plan = plan, .strategies = {&commfuse_strategy}};
  point.serves = true;
  const RaisedStep raised{.parameter = 0, .machine = &machine, .times = &raised_times};
  (void)step_uncertainty(point, times, prefilling, {raised});
  const std::optional<Transformer> copied = with_copied_heads(model, 8);
  ASSERT_TRUE(copied);
  const std::vector<const Strategy*> others{&serial_strategy};
  for (const SiteName name : all_sites) {
    const bool is_attention = name == SiteName::qkv || name == SiteName::out_proj;
    SitePoint site = site_point(plan, *copied, scope_of(name, false));
    site.dtype = is_attention ? DType::bf16 : DType::fp8;
    site.weight_bits = is_attention ? 16.0 : 8.0;
    EXPECT_EQ(raised_times.fastest(site, others).strategy, &commfuse_strategy) << name_of(name);
  }
}

// The error of the framework's own kernels counts even where they are compared with no others.
TEST(StepUncertainty, CountsTheResidualOfTheKernelsOfTheFramework) {
  const Transformer model = load_model("llama-3.1-8b");
  const Machine machine = load_machine("h100-sxm");
  StructureCache structures;
  SiteTimes times(structures, machine);
  StepPoint point{.model = &model, .machine = &machine, .framework = load_framework("megatron-core-2024")};
  point.plan.tensor = 8;
  point.plan.sequence_parallel = true;
  point.plan.global_batch = 1;
  point.plan.seq = 8192;
  point.framework.issue.value = Duration::zero();  // no step waits for its host
  const Duration nominal = predict_step(point, times).time;
  point.implemented.slowdown = 2.0;
  EXPECT_GT(predict_step(point, times).time, nominal);
}

}  // namespace
}  // namespace commfuse
