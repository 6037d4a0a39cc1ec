// SPDX-License-Identifier: Apache-2.0
// Tests that a measured step corrects the predictions of other steps on the machine, and lowers their errors.
#include "sim/step/measured_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "model/config_error.h"
#include "sim/point/grid.h"
#include "sim/step/predict_steps.h"
#include "tests/sim/grid_of.h"
#include "tests/sim/message_of.h"

namespace commfuse {
namespace {

using namespace std::chrono_literals;

/// Returns the settings of a training step of an 8B model on H100s with torchtitan.
Settings step_with(const std::vector<std::string>& more) {
  std::vector<std::string> sets{"model=llama-3.1-8b",
                                "hardware=h100-sxm",
                                "scope=step",
                                "framework=torchtitan",
                                "strategy.name=serial,commfuse",
                                "batch=16"};
  sets.insert(sets.end(), more.begin(), more.end());
  return test::settings_of(sets);
}

const std::vector<std::string> two_by_four{"ranks=2", "parallel.data=4"};
const std::vector<std::string> four_by_two{"ranks=4", "parallel.data=2"};

Library library_of(const Settings& settings) {
  Library library;
  library.load(settings);
  return library;
}

StepRow first_row(const std::vector<std::string>& settings, const StepEvidence* evidence = nullptr) {
  const Settings resolved = step_with(settings);
  const Library library = library_of(resolved);
  StepPoints points(library);
  if (evidence != nullptr) {
    points.correct_by(*evidence);
  }
  return points.rows(resolved).front();
}

/// Returns evidence that the first plan's step took `factor` times its prediction.
StepEvidence measured_at(double factor) {
  const Settings settings = step_with(two_by_four);
  const Library library = library_of(settings);
  const double predicted = first_row(two_by_four).number("time_ms");
  return StepPoints(library).evidence_of({settings, from_seconds(1e-3 * predicted * factor)});
}

// The step has its own error e, and the measurement an error of 1%: the prediction is corrected by factor^(e^2 / (e^2
// + 0.01^2)), and an error of e times 0.01 / sqrt(e^2 + 0.01^2) remains.
TEST(MeasuredStep, CorrectsItsOwnPredictionAlmostCompletely) {
  const StepRow before = first_row(two_by_four);
  const double error = before.number("time_error");
  const StepEvidence evidence = measured_at(1.2);
  const StepRow after = first_row(two_by_four, &evidence);
  const double factor = std::pow(1.2, error * error / (error * error + 1e-4));
  EXPECT_NEAR(after.number("correction"), factor, 1e-9);
  EXPECT_NEAR(after.number("time_ms"), before.number("time_ms") * factor, 1e-6);
  EXPECT_NEAR(after.number("mfu"), before.number("mfu") / factor, 1e-12);
  EXPECT_NEAR(after.number("time_error"), error * 0.01 / std::sqrt(error * error + 1e-4), 1e-9);
  EXPECT_NEAR(after.number("compute_ms") + after.number("waiting_ms") + after.number("gradients_ms") +
                  after.number("optimizer_ms"),
              after.number("time_ms"), 1e-6);
  EXPECT_EQ(after.number("memory_gb"), before.number("memory_gb"));
}

TEST(MeasuredStep, CorrectsAnotherLayoutLess) {
  const StepEvidence evidence = measured_at(1.2);
  const StepRow same_layout = first_row(two_by_four, &evidence);
  const StepRow other = first_row(four_by_two, &evidence);
  EXPECT_GT(other.number("correction"), 1.05);
  EXPECT_LT(other.number("correction"), same_layout.number("correction"));
  EXPECT_GT(other.number("time_error"), same_layout.number("time_error"));
  EXPECT_LT(other.number("time_error"), first_row(four_by_two).number("time_error"));
}

TEST(MeasuredStep, ChangesNothingIfItMatchesThePrediction) {
  const StepEvidence evidence = measured_at(1.0);
  const StepRow row = first_row(four_by_two, &evidence);
  EXPECT_NEAR(row.number("correction"), 1.0, 1e-9);
}

TEST(MeasuredStep, ReportsHowSurprisingItIs) {
  const std::string near = in_words(measured_at(1.05));
  EXPECT_NE(near.find(": 5.0% longer. 25% of healthy steps take as long (0.7 standard errors). Times below"),
            std::string::npos)
      << near;
  const std::string far = in_words(measured_at(0.5));
  EXPECT_NE(far.find(": 50.0% shorter. Fewer than 1% of healthy steps are as short ("), std::string::npos) << far;
  EXPECT_NE(far.find("first look for a difference"), std::string::npos) << far;
}

std::string evidence_refusal(const std::vector<std::string>& settings) {
  const Settings resolved = step_with(settings);
  const Library library = library_of(resolved);
  return test::message_of([&] { (void)StepPoints(library).evidence_of({resolved, 1s}); });
}

TEST(MeasuredStep, NeedsTheFrameworkThatRanIt) {
  EXPECT_EQ(evidence_refusal({"framework=none"}),
            "--measured-step: the software that ran the step is unknown; name its --framework, such as megatron-lm, or "
            "one --strategy, such as serial");
  EXPECT_EQ(evidence_refusal({"framework=none", "strategy.name=serial"}), "");
  EXPECT_EQ(evidence_refusal({"framework=none", "scope=prefill"}),
            "--measured-step corrects training steps only; choose scope step");
}

TEST(MeasuredStep, RefusesRunsThatItCannotCorrectCompletely) {
  EXPECT_EQ(evidence_refusal({"uncertainty=off"}),
            "--measured-step requires --uncertainty on, which determines how far the measurement applies to other "
            "settings; add it, or remove --measured-step");
  const StepEvidence evidence = measured_at(1.1);
  EXPECT_THROW((void)first_row({"uncertainty=off"}, &evidence), ConfigError);
  EXPECT_THROW((void)first_row({"framework=none", "scope=prefill"}, &evidence), ConfigError);
}

TEST(MeasuredStep, RefusesATimeThatTheDensePeakRulesOut) {
  // At 100% of the peak, a step of 8 s with an MFU of 40% would take 3.2 s.
  StepPrediction predicted;
  predicted.time = 8s;
  predicted.mfu = 0.4;
  EXPECT_EQ(test::message_of([&] { require_within_peak(3s, predicted); }),
            "--measured-step: 3 s is impossible for this configuration, whose model FLOPs take 3.2 s at the dense peak "
            "of its GPUs; correct the time and its unit (s or ms), or give the configuration that ran");
  EXPECT_EQ(test::message_of([&] { require_within_peak(4s, predicted); }), "");
  // The check applies to the evidence itself, so to `run`, `tune` and `plan`.
  const double mfu = first_row(two_by_four).number("mfu");
  EXPECT_THROW((void)measured_at(0.99 * mfu), ConfigError);
  EXPECT_NO_THROW((void)measured_at(1.01 * mfu));
}

TEST(MeasuredStep, CorrectsNoTimeBelowItsFlopsAtTheDensePeak) {
  // commfuse takes less time than torchtitan, so the same correction would lift its MFU above 100%.
  const Settings settings = step_with(two_by_four);
  const Library library = library_of(settings);
  StepPoints points(library);
  const std::vector<StepRow> before = points.rows(settings);
  points.correct_by(measured_at(1.01 * before.front().number("mfu")));
  const std::vector<StepRow> after = points.rows(settings);
  ASSERT_EQ(after.size(), 3U);
  for (const StepRow& row : after) {
    EXPECT_LE(row.number("mfu"), 1.0) << row.text("strategy");
  }
  ASSERT_EQ(after[2].text("strategy"), "commfuse");
  EXPECT_EQ(after[2].number("mfu"), 1.0);
  EXPECT_EQ(after[2].number("correction"), before[2].number("mfu"));
  EXPECT_NEAR(after[2].number("time_ms"), before[2].number("time_ms") * before[2].number("mfu"), 1e-6);
}

TEST(MeasuredStep, LimitsCorrectedStepsToTheDensePeak) {
  StepPrediction predicted;
  predicted.parts.compute = 8s;
  predicted.time = 8s;
  predicted.mfu = 0.4;
  EXPECT_EQ(corrected(predicted, 0.5).time, 4s);
  EXPECT_EQ(corrected(predicted, 0.3).time, 3200ms);
  EXPECT_FALSE(is_at_peak(corrected(predicted, 0.5).mfu));
  EXPECT_TRUE(is_at_peak(corrected(predicted, 0.3).mfu));
  EXPECT_EQ(peak_note({}), "");
  EXPECT_EQ(peak_note({"sliced", "commfuse"}),
            "note: corrected by the measured step, sliced and commfuse would take less time than the model FLOPs at "
            "the dense peak of the GPUs, so this limit is stated instead; check the measured step and the settings\n");
}

TEST(MeasuredStep, KeepsItsDoubtsSortedForEveryNameOfAModel) {
  // The evidence adds a doubt "~ the measurement"; the name of a model may sort after it.
  const StepEvidence evidence = step_evidence("mine", 2s, 1s, {{{StepDoubt{"~mine 8 4"}, 0.05}}});
  EXPECT_EQ(evidence.evidence.of.doubts.size(), 2U);
  EXPECT_TRUE(std::ranges::is_sorted(evidence.evidence.of.doubts, std::less{}, &Doubt::of));
}

TEST(MeasuredStep, DoesNotApplyToAnotherMachine) {
  const StepEvidence evidence = measured_at(1.1);
  try {
    (void)first_row({"hardware=b200-sxm"}, &evidence);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "--measured-step: measured on h100-sxm, which does not apply to b200-sxm; choose the same machine");
  }
}

}  // namespace
}  // namespace commfuse
