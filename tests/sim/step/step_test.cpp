// SPDX-License-Identifier: Apache-2.0
// Training steps: what they are composed of, what parallelism changes, and the iterations that Korthikanti et al. 2022
// published.
#include "sim/step/step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/analysis/percentiles.h"
#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/cost/jitter_sampler.h"
#include "model/schedule/scope.h"
#include "model/schedule/strategies.h"
#include "model/workload/parameters.h"
#include "sim/engine/engine.h"
#include "sim/step/group_link.h"

namespace commfuse {
namespace {

class StepTest : public ::testing::Test {
 protected:
  void SetUp() override { setenv("COMMFUSE_CONFIG_DIR", COMMFUSE_SOURCE_DIR "/configs", 1); }
  void TearDown() override { unsetenv("COMMFUSE_CONFIG_DIR"); }

  StepPrediction predict(const Transformer& model, const TrainingPlan& plan, double rank_sigma = 0.0) {
    machine_ = resized(load_machine("dgx-a100-x2"), plan);
    StepPoint point{.model = &model, .machine = &machine_, .plan = plan};
    point.rank_sigma = rank_sigma;
    require_possible(point);
    SiteTimes sites(structures_, machine_);
    return predict_step(point, sites);
  }

  StructureCache structures_;
  Machine machine_;
};

const Transformer small{.name = "small",
                        .layers = 8,
                        .hidden = 2048,
                        .ffn = 8192,
                        .heads = 16,
                        .kv_heads = 16,
                        .head_dim = 128,
                        .vocab = 32000};

TEST_F(StepTest, of_one_gpu_is_its_micro_batches_and_the_optimizer) {
  const TrainingPlan one{.global_batch = 1};
  TrainingPlan four = one;
  four.global_batch = 4;
  const StepPrediction a = predict(small, one);
  const StepPrediction b = predict(small, four);
  EXPECT_EQ(a.parts.optimizer, b.parts.optimizer);
  EXPECT_EQ(4 * a.parts.compute, b.parts.compute);
  EXPECT_EQ(a.time, a.parts.compute + a.parts.waiting + a.parts.gradients + a.parts.optimizer);
  EXPECT_EQ(a.parts.gradients, Duration::zero());
  EXPECT_GT(a.mfu, 0.3);
  EXPECT_EQ(a.hfu, a.mfu);
}

TEST_F(StepTest, zero_bubble_does_the_same_work_with_less_waiting) {
  TrainingPlan plan{.pipeline = 4, .global_batch = 8};
  const StepPrediction usual = predict(small, plan);
  plan.schedule = PipelineSchedule::zero_bubble;
  const StepPrediction split = predict(small, plan);
  EXPECT_LT(split.time, usual.time);
  EXPECT_LT(split.parts.waiting, usual.parts.waiting);
  // Without tensor ranks no collective loses what it ran beside: the kernels are the same.
  Duration usual_work{};
  Duration split_work{};
  for (const std::int64_t micro_batches : {8, 16}) {
    plan.global_batch = micro_batches;
    split_work = predict(small, plan).parts.compute - split_work;
    plan.schedule = PipelineSchedule::one_forward_one_backward;
    usual_work = predict(small, plan).parts.compute - usual_work;
    plan.schedule = PipelineSchedule::zero_bubble;
  }
  EXPECT_EQ(split_work, usual_work);
}

TEST_F(StepTest, zero_bubble_needs_the_memory_of_the_first_stage_on_all) {
  TrainingPlan plan{.pipeline = 4, .global_batch = 8};
  const Bytes first = step_memory(small, plan, 0).activations;
  const Bytes third = step_memory(small, plan, 2).activations;
  plan.schedule = PipelineSchedule::zero_bubble;
  EXPECT_EQ(step_memory(small, plan, 0).activations, first);
  EXPECT_EQ(step_memory(small, plan, 2).activations, first);
  EXPECT_LT(third, first);
}

TEST_F(StepTest, zero_bubble_under_tensor_parallelism_shows_collectives_that_ran_beside_weights) {
  TrainingPlan plan{.tensor = 4, .sequence_parallel = true, .pipeline = 2, .global_batch = 8};
  const StepPrediction usual = predict(small, plan);
  plan.schedule = PipelineSchedule::zero_bubble;
  EXPECT_GT(predict(small, plan).parts.compute, usual.parts.compute);
}

TEST_F(StepTest, computed_again_raises_hfu_and_lowers_mfu) {
  const StepPrediction kept = predict(small, {.global_batch = 2});
  const StepPrediction again = predict(small, {.global_batch = 2, .recompute = Recompute::full});
  EXPECT_LT(again.mfu, kept.mfu);
  EXPECT_GT(again.hfu, again.mfu * 1.25);
  EXPECT_LT(again.memory.activations, kept.memory.activations);
}

TEST_F(StepTest, hides_gradients_beside_the_last_backward_pass) {
  TrainingPlan plan{.data = 8, .global_batch = 32};
  const StepPrediction hidden = predict(small, plan);
  plan.overlap_gradients = false;
  const StepPrediction shown = predict(small, plan);
  EXPECT_EQ(hidden.parts.compute, shown.parts.compute);
  const Bytes gradients{2 * parameters_on_gpu(small, plan, 0)};
  EXPECT_EQ(shown.parts.gradients, group_of(machine_, 1, 8).all_reduce(gradients));
  EXPECT_LT(hidden.parts.gradients, shown.parts.gradients / 3);
  EXPECT_GT(hidden.parts.gradients, Duration::zero());  // those of the first layer come last
}

TEST_F(StepTest, shares_the_optimizer_among_replicas) {
  TrainingPlan plan{.data = 8, .global_batch = 32};
  const StepPrediction alone = predict(small, plan);
  plan.zero = Zero::optimizer;
  const StepPrediction shared = predict(small, plan);
  EXPECT_LT(shared.parts.optimizer, alone.parts.optimizer / 7);
  EXPECT_EQ(shared.memory.optimizer.count, (alone.memory.optimizer.count + 7) / 8);
}

TEST_F(StepTest, that_does_not_fit_the_memory_is_a_result) {
  const StepPrediction prediction = predict(load_model("megatron-22b"), {.global_batch = 1});
  EXPECT_FALSE(prediction.fits);
  EXPECT_GT(prediction.time, Duration::zero());
}

TEST_F(StepTest, waits_in_a_pipeline_for_its_bubble) {
  Transformer even = small;
  even.vocab = 128;  // so that no stage has more to do than the others
  const auto bubble = [&](std::int64_t micro_batches) {
    const StepPrediction step = predict(even, {.pipeline = 4, .global_batch = micro_batches});
    return to_seconds(step.parts.waiting) / to_seconds(step.parts.compute);
  };
  EXPECT_NEAR(bubble(4), 3.0 / 4.0, 0.05);  // (p - 1) / m, and sends
  EXPECT_NEAR(bubble(64), 3.0 / 64.0, 0.02);
}

TEST_F(StepTest, of_experts_sends_tokens_around) {
  Transformer model = small;
  model.experts = Experts{.count = 8, .active = 2, .ffn = 4096};
  const StepPrediction alone = predict(model, {.data = 8, .expert = 1, .global_batch = 8});
  const StepPrediction shared = predict(model, {.data = 8, .expert = 8, .global_batch = 8});
  EXPECT_GT(shared.parts.compute, alone.parts.compute);  // all-to-all, while a rank's products keep their rows
  EXPECT_LT(shared.memory.weights, alone.memory.weights);
}

TEST_F(StepTest, with_sharded_weights_is_bound_by_the_longer_of_gathering_and_computing) {
  TrainingPlan plan{.data = 8, .zero = Zero::weights, .global_batch = 8, .seq = 128};
  const StepPrediction gathering = predict(small, plan);
  plan.zero = Zero::none;
  const StepPrediction computing = predict(small, plan);
  EXPECT_GT(gathering.parts.compute, computing.parts.compute);
}

TEST_F(StepTest, refuses_what_it_cannot_price) {
  const auto refusal = [&](const Transformer& model, const TrainingPlan& plan) -> std::string {
    try {
      predict(model, plan);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  Transformer wide = load_model("deepseek-v3");
  EXPECT_EQ(refusal(wide, {.context = 2}),
            "context parallelism 2 of the latent attention of deepseek-v3 has no time yet; leave it at 1");
  wide.latent->value_dim = 256;
  EXPECT_EQ(refusal(wide, {}),
            "deepseek-v3 has values 256 wide and keys 128 wide without position, which has no time yet; choose another "
            "model");
  Transformer mamba = small;
  mamba.state_space = StateSpace{.layers = 2, .inner = 4096, .head_dim = 64, .state = 128};
  EXPECT_EQ(refusal(mamba, {}), "layers of small with a state space have no time yet; choose another model");
  EXPECT_EQ(refusal(small, {.context = 2, .fused_attention = false}),
            "context parallelism 2 needs fused attention; choose it, or context 1");
  TrainingPlan fp8;
  fp8.dtype = DType::fp8;
  EXPECT_NE(refusal(small, fp8), "accepted");
}

TEST_F(StepTest, latent_attention_takes_about_as_long_as_a_plain_one_of_as_many_flops) {
  // Three queries a key and value: the products of a layer of `plain` have as many weights as those of `latent`.
  Transformer latent = small;
  latent.latent = LatentAttention{.query_rank = 512, .key_value_rank = 448, .position_dim = 64, .value_dim = 128};
  const auto weights = [](const Transformer& model) { return parameters_of(model).layers; };
  Transformer plain = small;
  plain.head_dim = 160;  // as wide as the mean of its queries and values
  plain.ffn = (small.ffn + (weights(latent) - weights(plain)) / (2 * small.layers * small.hidden)) / 64 * 64;
  ASSERT_NEAR(static_cast<double>(weights(plain)) / static_cast<double>(weights(latent)), 1.0, 0.01);
  for (const std::int64_t tensor : {1, 4}) {
    TrainingPlan plan{.tensor = tensor, .sequence_parallel = tensor > 1, .global_batch = 8, .micro_batch = 4};
    plan.seq = 4096;
    const double ratio = to_seconds(predict(latent, plan).time) / to_seconds(predict(plain, plan).time);
    EXPECT_GT(ratio, 0.9) << tensor;
    EXPECT_LT(ratio, 1.25) << tensor;  // more and smaller kernels
  }
}

TEST(SlowestOf, grows_with_the_number_of_gpus) {
  EXPECT_EQ(slowest_of(1, 0.02), 1.0);
  EXPECT_EQ(slowest_of(8, 0.0), 1.0);
  // The mean of the largest of eight standard normal draws is 1.4236 (Harter 1961), of 1000 it is 3.2414.
  EXPECT_NEAR(slowest_of(8, 0.02), 1.0 + 0.02 * 1.4236, 0.001);
  EXPECT_NEAR(slowest_of(1000, 0.02), 1.067, 0.002);
}

TEST(SlowestOf, has_percentiles_that_follow_from_those_of_one_gpu) {
  // 97.5 % of one normal draw lie below 1.959964; all of n do with probability 0.975^n.
  EXPECT_NEAR(slowest_of(1, 0.02, 0.975), std::exp(0.02 * 1.959964), 1e-7);
  EXPECT_NEAR(slowest_of(20, 0.02, std::pow(0.975, 20)), std::exp(0.02 * 1.959964), 1e-7);
  EXPECT_EQ(slowest_of(1, 0.02, 0.5), 1.0);
  EXPECT_EQ(slowest_of(64, 0.0, 0.99), 1.0);
  EXPECT_LT(slowest_of(16'384, 0.02, 0.5), slowest_of(16'384, 0.02, 0.99));
}

/// Makespans of a schedule of equal products on eight ranks that differ in speed: first one where all are alike, the
/// others sorted.
std::vector<Duration> drawn_makespans(const char* strategy, double sigma, int samples) {
  const Plan plan = plan_of(lower(std::make_shared<const Program>(
      generate(operation_of(Scope::gate_up, true), mesh_of(8, {}), 0, *find_strategy(strategy), {}))));
  const Program& program = *plan.lowered.program;
  Jitter jitter;
  jitter.rank_sigma.value = sigma;
  const JitterDraws draws{std::make_shared<const JitterTables>(jitter), 1, draw_keys(program)};
  Costs costs;
  for (const Op& op : program.ops) {  // wires do not differ in speed
    costs.duration.push_back(op.purpose == Purpose::communication ? Duration{} : std::chrono::microseconds(100));
  }
  costs.issue.assign(program.ops.size(), Duration{});
  std::vector<Duration> makespans;
  for (int sample = -1; sample < samples; ++sample) {
    Recorder recorder(Recorder::Keep::ends);
    Engine().run(plan, sample < 0 ? costs : jittered(program, costs, draws, static_cast<std::uint64_t>(sample)),
                 recorder);
    makespans.push_back(recorder.makespan().time_since_epoch());
  }
  std::sort(makespans.begin() + 1, makespans.end());
  return makespans;
}

TEST(SlowestOf, is_what_simulated_ranks_of_different_speed_take) {
  constexpr double sigma = 0.05;
  constexpr int samples = 4000;
  for (const auto& [strategy, tolerance] : {std::pair{"serial", 0.0}, {"commfuse", 0.01}}) {
    const std::vector<Duration> all = drawn_makespans(strategy, sigma, samples);
    const std::span<const Duration> sorted = std::span(all).subspan(1);
    for (const int per_mille : {500, 950, 990}) {
      const Estimate simulated = percentile(sorted, per_mille);
      const double composed = to_seconds(all.front()) * slowest_of(8, sigma, per_mille / 1000.0);
      EXPECT_GE(composed, to_seconds(simulated.range->low) * (1.0 - tolerance)) << strategy << " " << per_mille;
      EXPECT_LE(composed, to_seconds(simulated.range->high) * (1.0 + tolerance)) << strategy << " " << per_mille;
    }
  }
}

TEST_F(StepTest, percentiles_are_the_parts_that_gpus_do_at_their_speed) {
  TrainingPlan plan{.tensor = 8, .global_batch = 8};
  plan.data = 4;
  EXPECT_FALSE(predict(small, plan).percentiles.has_value());
  const StepPrediction alike = predict(small, plan);
  const StepPrediction differ = predict(small, plan, 0.02);
  const auto at = [&](double probability) {
    const double factor = slowest_of(32, 0.02, probability);
    const StepBreakdown& parts = alike.parts;
    return from_seconds(factor * to_seconds(parts.compute)) + from_seconds(factor * to_seconds(parts.waiting)) +
           from_seconds(factor * to_seconds(parts.optimizer)) + parts.gradients;
  };
  EXPECT_EQ(differ.percentiles->p50, at(0.5));
  EXPECT_EQ(differ.percentiles->p95, at(0.95));
  EXPECT_EQ(differ.percentiles->p99, at(0.99));
}

// Table 5 of Korthikanti et al. 2022, seconds an iteration on DGX A100: nothing here is fitted to it. The speeds of
// GPUs are those of configs/jitter/default.yaml.
TEST_F(StepTest, meets_the_iterations_of_korthikanti_within_six_percent) {
  struct Published {
    const char* model;
    std::int64_t pipeline, interleave, global_batch, micro_batch;
    double full, selective;
  };
  for (const Published& row :
       {Published{"megatron-22b", 1, 1, 4, 4, 1.42, 1.10}, Published{"gpt-3-175b", 8, 3, 64, 1, 18.13, 13.75}}) {
    for (const bool selective : {false, true}) {
      const TrainingPlan plan{.tensor = 8,
                              .sequence_parallel = selective,
                              .pipeline = row.pipeline,
                              .interleave = row.interleave,
                              .global_batch = row.global_batch,
                              .micro_batch = row.micro_batch,
                              .recompute = selective ? Recompute::selective : Recompute::full,
                              .fused_attention = false,
                              .dropout = true,
                              .dtype = DType::fp16,
                              .gradient_dtype = DType::fp32};
      const double predicted = to_seconds(predict(load_model(row.model), plan, 0.02).time);
      EXPECT_NEAR(predicted / (selective ? row.selective : row.full), 1.0, 0.06) << row.model << selective;
    }
  }
}

}  // namespace
}  // namespace commfuse
