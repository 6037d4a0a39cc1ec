// SPDX-License-Identifier: Apache-2.0
#include "model/config/choices.h"

#include <gtest/gtest.h>

#include <map>
#include <string_view>

#include "model/config/settings.h"

namespace commfuse {
namespace {

RunChoices choices_with(const std::map<std::string_view, std::string>& texts) {
  Settings settings;
  for (const auto& [key, text] : texts) {
    const Field* field = find_field(key);
    EXPECT_NE(field, nullptr) << key;
    settings.put(*field, {text, {}});
  }
  return choices_of(settings);
}

TEST(ChoicesTest, UnsetSettingsHaveTheirDefaults) {
  const RunChoices run = choices_of(Settings());
  EXPECT_EQ(run.model, "llama-3.1-70b");
  EXPECT_EQ(run.machine, (MachineChoice{"h100-sxm", "x1", "x1"}));
  EXPECT_EQ(run.ranks, 8);
  EXPECT_EQ(run.seq, 4096);
  EXPECT_EQ(run.batch, 1);
  EXPECT_EQ(run.dtype, DType::bf16);
  EXPECT_EQ(name_of(run.scope), "mlp");
  EXPECT_TRUE(run.plan.sequence_parallel);
  EXPECT_EQ(run.plan.gpus(), 1);
  EXPECT_EQ(run.plan.zero, Zero::none);
  EXPECT_EQ(run.step.latent_decode, LatentDecode::absorb);
  EXPECT_EQ(run.gpu_hour_price, std::nullopt);
  EXPECT_TRUE(run.schedules.named.empty());
  EXPECT_FALSE(run.schedules.each_variant);
  EXPECT_EQ(run.schedules.fixed, OptionSet());
  EXPECT_EQ(run.schedules.options, StrategyOptions());
  EXPECT_EQ(run.price, PriceOptions());
  EXPECT_EQ(run.jitter, "none");
  EXPECT_EQ(run.faults, "none");
  EXPECT_EQ(run.samples, std::nullopt);
  EXPECT_EQ(run.seed, 1U);
  EXPECT_TRUE(run.uncertainty);
  EXPECT_EQ(run.verdict.difference, 0.02);
  EXPECT_EQ(run.verdict.probability, 0.80);
  EXPECT_EQ(run.simulation.evaluator, Evaluator::automatic);
  EXPECT_TRUE(run.simulation.symmetry);
  EXPECT_EQ(run.threads, 0);
}

TEST(ChoicesTest, SettingsOfALayerFillTheirOwnMembers) {
  const RunChoices run = choices_with({{"model", "m.yaml"},
                                       {"hardware", "h.yaml"},
                                       {"link_bandwidth", "x2"},
                                       {"network_bandwidth", "50GB/s"},
                                       {"ranks", "1K"},
                                       {"seq", "32K"},
                                       {"batch", "3"},
                                       {"dtype", "fp8"},
                                       {"scope", "attention"},
                                       {"interference", "none"},
                                       {"launch", "graph"},
                                       {"attention_kernel", "unfused"},
                                       {"jitter", "default"},
                                       {"faults", "slow-rank"},
                                       {"samples", "10K"},
                                       {"seed", "0"},
                                       {"uncertainty", "off"},
                                       {"verdict.difference", "5%"},
                                       {"verdict.probability", "95%"},
                                       {"evaluator", "engine"},
                                       {"symmetry", "off"},
                                       {"threads", "4"}});
  EXPECT_EQ(run.model, "m.yaml");
  EXPECT_EQ(run.machine, (MachineChoice{"h.yaml", "x2", "50GB/s"}));
  EXPECT_EQ(run.ranks, 1024);
  EXPECT_EQ(run.seq, 32768);
  EXPECT_EQ(run.batch, 3);
  EXPECT_EQ(run.dtype, DType::fp8);
  EXPECT_EQ(run.scope.work, Use::layer);
  EXPECT_EQ(run.scope.layer, Scope::attention);
  EXPECT_EQ(run.price, (PriceOptions{Interference::none, Launch::graph, AttentionKernel::unfused}));
  EXPECT_EQ(run.jitter, "default");
  EXPECT_EQ(run.faults, "slow-rank");
  EXPECT_EQ(run.samples, 10240);
  EXPECT_EQ(run.seed, 0U);
  EXPECT_FALSE(run.uncertainty);
  EXPECT_EQ(run.verdict.difference, 0.05);
  EXPECT_EQ(run.verdict.probability, 0.95);
  EXPECT_EQ(run.simulation.evaluator, Evaluator::engine);
  EXPECT_FALSE(run.simulation.symmetry);
  EXPECT_EQ(run.threads, 4);
}

TEST(ChoicesTest, SettingsOfWholeModelsFillTheirOwnMembers) {
  const RunChoices run = choices_with({{"scope", "decode"},
                                       {"parallel.sequence_parallel", "off"},
                                       {"parallel.pipeline", "2"},
                                       {"parallel.interleave", "3"},
                                       {"parallel.schedule", "zero_bubble"},
                                       {"parallel.data", "5"},
                                       {"parallel.context", "7"},
                                       {"parallel.ulysses", "11"},
                                       {"parallel.experts", "13"},
                                       {"parallel.zero", "2"},
                                       {"step.micro_batch", "17"},
                                       {"step.recompute", "full"},
                                       {"step.optimizer", "sgd"},
                                       {"step.latent_decode", "naive"},
                                       {"price", "$2.80"}});
  EXPECT_EQ(run.scope.work, Use::decode);
  EXPECT_TRUE(run.scope.is_whole_model());
  EXPECT_TRUE(run.scope.is_inference());
  EXPECT_EQ(name_of(run.scope), "decode");
  EXPECT_FALSE(run.plan.sequence_parallel);
  EXPECT_EQ(run.plan.pipeline, 2);
  EXPECT_EQ(run.plan.interleave, 3);
  EXPECT_EQ(run.plan.schedule, PipelineSchedule::zero_bubble);
  EXPECT_EQ(run.plan.data, 5);
  EXPECT_EQ(run.plan.context, 7);
  EXPECT_EQ(run.plan.ulysses, 11);
  EXPECT_EQ(run.plan.expert, 13);
  EXPECT_EQ(run.plan.zero, Zero::gradients);
  EXPECT_EQ(run.plan.micro_batch, 17);
  EXPECT_EQ(run.plan.recompute, Recompute::full);
  EXPECT_EQ(run.plan.optimizer, Optimizer::sgd);
  EXPECT_EQ(run.step.latent_decode, LatentDecode::naive);
  EXPECT_EQ(run.gpu_hour_price, 2.8);
}

TEST(ChoicesTest, OptionsOfStrategiesAreFixedWhereTheyAreGiven) {
  const RunChoices run = choices_with({{"strategy.name", "sliced,commfuse"},
                                       {"strategy.variants", "all"},
                                       {"strategy.slices", "1K"},
                                       {"strategy.form", "direct"}});
  ASSERT_EQ(run.schedules.named.size(), 2U);
  EXPECT_EQ(run.schedules.named[0]->name, "sliced");
  EXPECT_EQ(run.schedules.named[1]->name, "commfuse");
  EXPECT_TRUE(run.schedules.each_variant);
  EXPECT_EQ(run.schedules.fixed, (OptionSet{Option::slices, Option::form}));
  EXPECT_EQ(run.schedules.options, (StrategyOptions{.slices = 1024, .form = Form::direct}));
}

TEST(ChoicesTest, EveryWordOfEverySettingHasItsValue) {
  for (const Field& field : run_fields()) {
    for (const std::string_view word : field.choices == nullptr ? std::vector<std::string_view>() : field.choices()) {
      RunChoices run;
      field.put(word, run);  // put() aborts if the word has no value.
    }
  }
}

}  // namespace
}  // namespace commfuse
