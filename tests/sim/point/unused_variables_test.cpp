// SPDX-License-Identifier: Apache-2.0
// Tests that a run ignores exactly the environment variables that it cannot use, for every setting and scope.
#include "sim/point/unused_variables.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/config/choices.h"
#include "model/config_error.h"
#include "sim/point/request.h"
#include "tests/sim/grid_of.h"

namespace commfuse::test {
namespace {

/// Returns a value of the setting that is not its default.
std::string other_value_of(const Field& field) {
  for (const std::string_view word : field.choices != nullptr ? field.choices() : std::vector<std::string_view>{}) {
    if (word != field.preset && word != "all") {
      return std::string(word);
    }
  }
  if (field.example != field.preset) {
    return std::string(field.example);
  }
  if (field.type != FieldType::name && field.type != FieldType::names) {
    return "2";
  }
  for (const std::string& name : names_known_to(field)) {
    if (name != field.preset) {
      return name;
    }
  }
  return "";
}

/// Returns the grid of --set texts, variables and axes.
Grid grid_with(const std::vector<std::string>& variables, const std::vector<std::string>& sets,
               const std::vector<std::string>& axes = {}) {
  Resolver resolver;
  resolver.read_environment(variables);
  for (const std::string& set : sets) {
    resolver.read_set(set);
  }
  Grid grid = grid_of({}, axes);
  grid.settings = resolver.finish();
  return grid;
}

TEST(UnusedVariables, OfEverySettingAreIgnoredInEveryScope) {
  int ignored = 0;
  for (const std::string scope : {"mlp", "down_backward", "ulysses", "step", "prefill", "decode"}) {
    for (const Field& field : run_fields()) {
      if (field.key == "scope") {
        continue;
      }
      const std::string variable = variable_of(field);
      const std::string value = other_value_of(field);
      Grid grid = grid_with({variable + "=" + value}, {"scope=" + scope});
      const bool is_used = field.uses.has(choices_of(grid.settings).scope.work);
      const std::string notes = ignore_unused_variables(grid.settings);
      EXPECT_NO_THROW(require_used_by_scope(grid.settings)) << variable << " " << scope;
      EXPECT_EQ(notes, is_used ? ""
                               : fmt::format("note: {} is ignored; scope {} does not support '{}'\n", variable, scope,
                                             field.key));
      EXPECT_EQ(grid.settings.text(field.key), is_used ? value : field.preset) << variable << " " << scope;
      ignored += is_used ? 0 : 1;
    }
  }
  EXPECT_GT(ignored, 100);
}

TEST(UnusedVariables, OnlyVariablesAreIgnored) {
  Settings settings = settings_of({"scope=step", "price=3"});
  EXPECT_EQ(ignore_unused_variables(settings), "");
  EXPECT_THROW(require_used_by_scope(settings), ConfigError);
  Grid overridden = grid_with({"COMMFUSE_PRICE=2"}, {"scope=step", "price=3"});
  EXPECT_EQ(ignore_unused_variables(overridden), "");
  EXPECT_EQ(overridden.settings.text("price"), "3");
}

TEST(UnusedVariables, AreOptionsThatNoNamedStrategyHas) {
  const std::vector<std::string> variables{"COMMFUSE_STRATEGY_SLICES=4"};
  Settings serial = grid_with(variables, {"strategy.name=serial"}).settings;
  EXPECT_EQ(ignore_unused_variables(serial),
            "note: COMMFUSE_STRATEGY_SLICES is ignored; strategy serial does not use 'strategy.slices'\n");
  EXPECT_FALSE(serial.has("strategy.slices"));
  for (const std::string name : {"serial,sliced", "all"}) {
    Settings several = grid_with(variables, {"strategy.name=" + name}).settings;
    EXPECT_EQ(ignore_unused_variables(several), "") << name;
    EXPECT_EQ(several.text("strategy.slices"), "4") << name;
  }
}

TEST(UnusedVariables, OfAGridAreUsableAtNoPointOrOnlyAtSome) {
  Grid inference = grid_with({"COMMFUSE_PRICE=3"}, {}, {"scope=prefill,decode"});
  EXPECT_EQ(ignore_unused_variables(inference), "");
  EXPECT_EQ(inference.settings.text("price"), "3");
  Grid mixed = grid_with({"COMMFUSE_PRICE=3"}, {}, {"scope=prefill,step"});
  EXPECT_EQ(ignore_unused_variables(mixed), "note: COMMFUSE_PRICE is ignored; scope step does not support 'price'\n");
  EXPECT_FALSE(mixed.settings.has("price"));
  Grid strategies = grid_with({"COMMFUSE_STRATEGY_SLICES=4"}, {}, {"seq=1K..4K", "strategy.name=sliced,commfuse"});
  EXPECT_EQ(ignore_unused_variables(strategies),
            "note: COMMFUSE_STRATEGY_SLICES is ignored; strategy commfuse does not use 'strategy.slices'\n");
  Grid varied = grid_with({"COMMFUSE_PRICE=3"}, {"scope=step"}, {"price=1,2"});
  EXPECT_EQ(ignore_unused_variables(varied), "") << "the axis is refused, as a flag is";
}

TEST(UnusedVariables, OfWorkWithoutAScope) {
  Settings settings = grid_with({"COMMFUSE_PRICE=3", "COMMFUSE_PARALLEL_ZERO=1"}, {}).settings;
  EXPECT_EQ(ignore_unused_variables(settings, Use::tune, "tune"),
            "note: COMMFUSE_PRICE is ignored; tune does not use 'price'\n");
  EXPECT_EQ(settings.text("parallel.zero"), "1");
}

TEST(UnusedDraws, AreNotedWhereNoPointHasJitter) {
  const std::string remedy = " has no effect without jitter; add --jitter default, or remove this setting\n";
  for (const std::string scope : {"scope=mlp", "scope=step", "scope=decode"}) {
    EXPECT_EQ(notes_on_unused_draws(grid_with({"COMMFUSE_SEED=3"}, {scope, "samples=10"})),
              "note: --set samples=10" + remedy + "note: COMMFUSE_SEED" + remedy);
    EXPECT_EQ(notes_on_unused_draws(settings_of({scope, "seed=1"})), "") << "the default";
  }
  EXPECT_EQ(notes_on_unused_draws(grid_with({}, {"seed=4", "jitter=default"})), "");
  EXPECT_EQ(notes_on_unused_draws(grid_with({}, {}, {"seed=1,2"})), "note: --axis seed=1,2" + remedy);
  EXPECT_EQ(notes_on_unused_draws(grid_with({}, {"seed=4"}, {"jitter=none,default"})), "");
  EXPECT_EQ(notes_on_unused_draws(grid_with({}, {"seed=4", "jitter=default"}, {"jitter=none"})),
            "note: --set seed=4" + remedy);
}

TEST(UnusedDraws, AreNotedOnWholeModels) {
  const std::string why =
      " has no effect on whole models, whose percentiles follow from formulas; remove this setting\n";
  for (const std::string scope : {"scope=step", "scope=prefill", "scope=decode"}) {
    EXPECT_EQ(notes_on_unused_draws(grid_with({"COMMFUSE_SEED=3"}, {scope, "samples=10", "jitter=default"})),
              "note: --set samples=10" + why + "note: COMMFUSE_SEED" + why);
    EXPECT_EQ(notes_on_unused_draws(grid_with({}, {scope, "jitter=default"})), "");
  }
}

std::string notes_on_methods(const std::vector<std::string>& sets, const std::vector<std::string>& axes = {}) {
  const Grid grid = grid_of(sets, axes);
  return notes_on_unused_methods(grid, library_of(grid));
}

TEST(UnusedMethods, OfLatentAttentionNeedAModelWithIt) {
  const std::string why = " has no effect on models without latent attention; remove this setting\n";
  EXPECT_EQ(notes_on_methods({"scope=decode", "step.latent_decode=naive"}),
            "note: --set step.latent_decode=naive" + why);
  EXPECT_EQ(notes_on_methods({"scope=decode"}, {"step.latent_decode=absorb,naive"}),
            "note: --axis step.latent_decode=absorb,naive" + why);
  EXPECT_EQ(notes_on_methods({"scope=decode", "step.latent_decode=absorb"}), "") << "the default";
  EXPECT_EQ(notes_on_methods({"scope=decode", "step.latent_decode=naive", "model=deepseek-v3"}), "");
  EXPECT_EQ(notes_on_methods({"scope=decode", "step.latent_decode=naive"}, {"model=llama-3.1-8b,deepseek-v3"}), "");
}

TEST(UnusedMethods, OfAllReducesNeedRanks) {
  const std::string note =
      "note: --set all_reduce_kernel=vllm has no effect with one rank; choose more --ranks, or remove this setting\n";
  EXPECT_EQ(notes_on_methods({"ranks=1", "all_reduce_kernel=vllm"}), note);
  EXPECT_EQ(notes_on_methods({"scope=decode", "ranks=1", "all_reduce_kernel=vllm"}), note);
  EXPECT_EQ(notes_on_methods({"scope=decode", "all_reduce_kernel=vllm"}, {"ranks=1,8"}), "");
  EXPECT_EQ(notes_on_methods({"scope=step", "ranks=1", "all_reduce_kernel=vllm"}), note);
  EXPECT_EQ(notes_on_methods({"scope=step", "ranks=1", "parallel.data=8", "all_reduce_kernel=vllm"}), "");
  EXPECT_EQ(notes_on_methods({"ranks=1", "all_reduce_kernel=nccl"}), "") << "the default";
}

TEST(UnusedDraws, OfALabAreItsSamples) {
  const Settings settings = settings_of({"seed=4", "samples=9"});
  EXPECT_EQ(notes_on_unused_draws(settings, Use::lab),
            "note: --set samples=9 has no effect without jitter; add --jitter default, or remove this setting\n");
}

}  // namespace
}  // namespace commfuse::test
