// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/progress.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace commfuse {
namespace {

using Seconds = std::chrono::duration<double>;

/// Returns the texts that are written while `total` points finish, one every `step` seconds.
std::vector<std::string> lines(ProgressForm form, std::size_t total, double step) {
  std::vector<std::string> written;
  double now = 0.0;
  Progress progress(
      form, total, [&] { return Seconds(now); }, [&](const std::string& text) { written.push_back(text); });
  for (std::size_t i = 0; i < total; ++i) {
    now += step;
    progress.finished(i != 1);
  }
  progress.end();
  return written;
}

TEST(Progress, ShowsProgressRateAndRemainingTime) {
  // 12 points in 6 s are 2 per second, so 12 more take 6 s.
  const ProgressState state{.done = 12, .total = 24, .infeasible = 3, .elapsed = Seconds(6)};
  EXPECT_EQ(in_words(state), "12 of 24 points (50%), 6 s left, 2.0 points/s, 3 infeasible");
  EXPECT_EQ(in_json(state), R"({"done":12,"total":24,"infeasible":3,"rate_per_s":2.0,"left_s":6.0})");
  EXPECT_EQ(as_bar(state), "[========         ] 12 of 24 points (50%), 6 s left, 2.0 points/s, 3 infeasible");
  EXPECT_EQ(in_words({.noun = "tables", .done = 1, .total = 2}), "1 of 2 tables (50%)");
  EXPECT_EQ(in_words({.done = 0, .total = 24}), "0 of 24 points (0%)");
  EXPECT_EQ(in_json({.done = 0, .total = 24}),
            R"({"done":0,"total":24,"infeasible":0,"rate_per_s":0.0,"left_s":null})");
  EXPECT_EQ(in_words({.done = 1, .total = 10'001, .elapsed = Seconds(1)}),
            "1 of 10001 points (0%), 2 h 46 min left, 1.0 points/s");
  EXPECT_EQ(in_words({.done = 10, .total = 10, .elapsed = Seconds(130)}),
            "10 of 10 points (100%), took 2 min 10 s, 0.1 points/s");
}

TEST(Progress, ShowsASinglePointAndASlowRate) {
  EXPECT_EQ(in_words({.done = 1, .total = 1, .elapsed = Seconds(4)}), "1 of 1 point (100%), took 4 s, 0.2 points/s");
  EXPECT_EQ(in_words({.noun = "tables", .done = 0, .total = 1}), "0 of 1 table (0%)");
  const ProgressState slow{.done = 1, .total = 2, .elapsed = Seconds(80)};
  EXPECT_EQ(in_words(slow), "1 of 2 points (50%), 80 s left, 0.013 points/s");
  EXPECT_EQ(in_json(slow), R"({"done":1,"total":2,"infeasible":0,"rate_per_s":0.013,"left_s":80.0})");
}

TEST(Progress, PlainWritesALineEachTenSecondsAndAtTheEnd) {
  EXPECT_EQ(lines(ProgressForm::plain, 25, 1.0),
            (std::vector<std::string>{"10 of 25 points (40%), 15 s left, 1.0 points/s, 1 infeasible\n",
                                      "20 of 25 points (80%), 5 s left, 1.0 points/s, 1 infeasible\n",
                                      "25 of 25 points (100%), took 25 s, 1.0 points/s, 1 infeasible\n"}));
}

TEST(Progress, ABarNeverCutsOffTheRemainingTime) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 10'000; ++i) {
    const std::size_t total = 2 + random() % (std::size_t{1} << (random() % 36));
    const std::size_t done = 1 + random() % (total - 1);
    const ProgressState state{.done = done,
                              .total = total,
                              .infeasible = random() % (done + 1),
                              .elapsed = Seconds(static_cast<double>(random() % 10'000'000) / 1000.0)};
    const std::string bar = as_bar(state);
    EXPECT_LE(bar.size(), 79U) << bar;
    if (state.rate() > 0.0) {
      EXPECT_NE(bar.find(" left"), std::string::npos) << bar;
    }
  }
}

TEST(Progress, TheBarIsRedrawnAtMostTenTimesASecond) {
  const std::vector<std::string> written = lines(ProgressForm::bar, 1000, 0.001);  // The run takes one second.
  EXPECT_LE(written.size(), 11U);
  EXPECT_GE(written.size(), 9U);
  for (const std::string& text : written) {
    EXPECT_EQ(text.front(), '\r');
  }
  EXPECT_EQ(written.back().back(), '\n');
}

TEST(Progress, JsonIsOneObjectPerSecondAndNoneIsSilent) {
  EXPECT_EQ(lines(ProgressForm::json, 3, 1.0).size(), 4U);
  EXPECT_TRUE(lines(ProgressForm::none, 100, 1.0).empty());
}

TEST(Progress, AutoIsABarOnATerminalOnly) {
  EXPECT_EQ(progress_form("auto", true), ProgressForm::bar);
  EXPECT_EQ(progress_form("auto", false), ProgressForm::none);
  EXPECT_EQ(progress_form("plain", true), ProgressForm::plain);
  EXPECT_EQ(progress_form("json", false), ProgressForm::json);
  EXPECT_EQ(progress_form("none", true), ProgressForm::none);
}

}  // namespace
}  // namespace commfuse
