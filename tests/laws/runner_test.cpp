// SPDX-License-Identifier: Apache-2.0
// Tests the tools that try the laws: generators, minimizing, and the list of known violations.
#include "tests/laws/runner.h"

#include <gtest/gtest.h>

#include <set>

#include "model/config/field.h"

namespace commfuse::laws {
namespace {

Setting setting_of(std::initializer_list<std::pair<const char*, const char*>> choices) {
  Setting setting;
  for (const auto& [key, text] : choices) {
    setting = setting.with(key, text);
  }
  return setting;
}

TEST(LawRunner, DrawsAreReproducible) {
  Draws draws({.seed = 1, .index = 2, .attempt = 3, .purpose = 4});
  std::vector<std::size_t> drawn;
  for (int i = 0; i < 8; ++i) {
    drawn.push_back(draws.below(1000));
  }
  const PhiloxWords first = philox({2, 3, 4, 0}, 1);
  EXPECT_EQ(drawn[0], (std::uint64_t{first[0]} * 1000) >> 32U);
  EXPECT_EQ(drawn[4], (std::uint64_t{philox({2, 3, 4, 1}, 1)[0]} * 1000) >> 32U);
}

TEST(LawRunner, GeneratorsMakeValidReproducibleSettings) {
  const Axes axes = shipped_axes();
  for (const Generator* generator : {&independent_draws, &low_discrepancy}) {
    for (std::uint32_t index = 0; index < 200; ++index) {
      const Setting setting = generator->make(axes, 5, index, 0);
      EXPECT_EQ(setting, generator->make(axes, 5, index, 0));
      for (const auto& [key, text] : setting.choices) {
        EXPECT_EQ(mistake_in(*find_field(key), text), std::nullopt) << key << " " << text;
      }
    }
  }
}

TEST(LawRunner, TheGeneratorVisitsEveryPlace) {
  const Axes axes = shipped_axes();
  std::set<std::string> places;
  for (std::uint32_t index = 0; index < axes.places.size(); ++index) {
    const Setting setting = independent_draws.make(axes, 9, index, 0);
    places.insert(setting.text("hardware") + " " + setting.text("scope") + " " + setting.text("strategy.name"));
  }
  EXPECT_EQ(places.size(), axes.places.size());
}

TEST(LawRunner, ACommandShowsASettingAndTheChangesToTheMachine) {
  const Setting setting = setting_of({{"scope", "down"}, {"strategy.form", "ring"}}).with("ranks", std::int64_t{4});
  EXPECT_EQ(command_of(setting), "commfuse-sim run --ranks 4 --scope down --form ring");
  EXPECT_EQ(command_of(setting.with({"link.*latency", 0.5}).with({"accelerator.kernel_floor", 2.0})),
            "commfuse-sim run --ranks 4 --scope down --form ring  # link.*latency x0.5, accelerator.kernel_floor x2");
  EXPECT_EQ(setting.with("ranks", std::int64_t{8}).with("scope", "mlp").with("strategy.form", "").choices.size(), 0U);
}

/// A law that more than two ranks in a CUDA graph violate, with any other settings.
std::optional<double> planted(const Outcome& outcome, const Outcome&) {
  return outcome.point->ranks > 2 && outcome.point->price.launch == Launch::graph ? 2.0 : 1.0;
}

TEST(LawRunner, MinimizingLeavesOnlyTheCauseOfTheViolation) {
  const Law law{"planted", "Planted", nullptr, planted};
  Simulator simulator;
  const Setting setting = setting_of({{"hardware", "mi300x"},
                                      {"model", "llama-3.1-8b"},
                                      {"launch", "graph"},
                                      {"strategy.name", "sliced"},
                                      {"strategy.slices", "2"},
                                      {"ranks", "4"},
                                      {"seq", "2048"}});
  const std::optional<Violation> violation = violation_of(law, setting, {}, simulator);
  ASSERT_TRUE(violation);
  EXPECT_EQ(command_of(minimized(*violation, simulator).before), "commfuse-sim run --launch graph --strategy sliced");
}

TEST(LawRunner, ASlowerLinkViolatesALaw) {
  const Law law{"slower-links", "Half the links never make a result slower",
                [](const Setting& setting, Draws&) { return std::optional(setting.with("link_bandwidth", "x0.5")); },
                must_not_grow<time_of>};
  Simulator simulator;
  const std::optional<Violation> violation =
      violation_of(law, setting_of({{"strategy.name", "serial"}}), {}, simulator);
  ASSERT_TRUE(violation);
  EXPECT_GT(violation->factor, 1.1);
  EXPECT_EQ(command_of(violation->after), "commfuse-sim run --link-bandwidth x0.5 --strategy serial");
}

TEST(LawRunner, AnEntryCoversSettingsOfItsConditionsUpToItsFactor) {
  const Law& law = *find_law("wire-bound");
  const KnownViolation known{
      .law = &law, .factor = 2.0, .where = {{"hardware", {"l20-pcie", "l40s-pcie"}}, {"scope", {"mlp"}}}};
  const Setting setting = setting_of({{"hardware", "l40s-pcie"}, {"ranks", "4"}});
  EXPECT_TRUE(is_known({known}, law, setting, 2.0));
  EXPECT_FALSE(is_known({known}, law, setting, 2.1));
  EXPECT_FALSE(is_known({known}, law, setting.with("scope", "down"), 1.5));
  EXPECT_FALSE(is_known({known}, law, setting.with("hardware", "h100-sxm"), 1.5));
  EXPECT_FALSE(is_known({known}, *find_law("link-bound"), setting, 1.5));
}

TEST(LawRunner, LawsHaveUniqueNames) {
  std::set<std::string_view> names;
  for (const Law& law : all_laws()) {
    EXPECT_TRUE(names.insert(law.name).second) << law.name;
    EXPECT_EQ(find_law(law.name), &law);
  }
  EXPECT_GE(names.size(), 20U);
}

}  // namespace
}  // namespace commfuse::laws
