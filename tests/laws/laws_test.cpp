// SPDX-License-Identifier: Apache-2.0
// Tries the laws on drawn settings.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/laws/runner.h"
#include "tests/slow_build.h"

namespace commfuse::laws {
namespace {

std::uint32_t number_from(const char* variable, std::uint32_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<std::uint32_t>(std::stoul(text));
}

Trial trial_of(const Generator& generator, std::uint32_t usual) {
  return {.generator = &generator,
          .seed = number_from("COMMFUSE_LAWS_SEED", 1),
          .first = number_from("COMMFUSE_LAWS_FIRST", 0),
          .count = number_from("COMMFUSE_LAWS_SETTINGS", slow_build ? usual / 50 : usual)};
}

class Laws : public ::testing::Test {
 protected:
  static Report expect_no_violation(const Trial& trial, const Axes& axes) {
    Simulator simulator;
    Report report = try_laws(trial, axes, known(), simulator);
    std::cout << to_text(report, axes);
    EXPECT_TRUE(report.violations.empty());
    return report;
  }

  static std::vector<KnownViolation> known() {
    return read_known_violations(COMMFUSE_SOURCE_DIR "/tests/laws/known_violations.yaml");
  }
};

TEST_F(Laws, HoldOnIndependentDraws) {
  const Axes axes = shipped_axes();
  const Trial trial = trial_of(independent_draws, 6000);
  const Report report = expect_no_violation(trial, axes);
  if (trial.count >= axes.places.size()) {
    EXPECT_EQ(report.coverage.places.size(), axes.places.size()) << "every machine, scope and strategy is tried";
    for (const LawTally& tally : report.tallies) {
      EXPECT_GT(tally.tried, 0U) << tally.law->name << " applies to no setting";
    }
  }
}

// Skipped by default, so that nobody corrects its findings one by one. README.md explains why.
TEST_F(Laws, HoldOnSettingsThatAreHeldBack) {
  if (std::getenv("COMMFUSE_LAWS_HELD_BACK") == nullptr) {
    GTEST_SKIP() << "held back; set COMMFUSE_LAWS_HELD_BACK to run it";
  }
  Trial trial = trial_of(low_discrepancy, 6000);
  trial.seed += 1'000'000;
  expect_no_violation(trial, shipped_axes());
}

TEST_F(Laws, ListedViolationsStillOccur) {
  Simulator simulator;
  for (const KnownViolation& violation : known()) {
    const Outcome before = simulator.run(violation.before);
    const Outcome after = simulator.run(violation.after);
    ASSERT_TRUE(before.runs() && after.runs()) << command_of(violation.before) << "\n" << before.reason << after.reason;
    const std::optional<double> factor = violation.law->factor(before, after);
    EXPECT_GT(factor.value_or(0.0), 1.0) << violation.law->name << " holds now; remove it from the list ("
                                         << violation.cause << ")\n"
                                         << command_of(violation.before);
    EXPECT_TRUE(is_known({violation}, *violation.law, violation.before, factor.value_or(0.0)))
        << "an entry covers its own example: " << command_of(violation.before) << ", x" << factor.value_or(0.0);
  }
}

}  // namespace
}  // namespace commfuse::laws
