// SPDX-License-Identifier: Apache-2.0
// The expected shares, bands and scores are worked out by hand.
#include "model/record/reliability.h"

#include <gtest/gtest.h>

#include <cmath>

namespace commfuse {
namespace {

/// Returns a row that lies `errors_off` standard errors from its prediction.
CheckedTime row(std::int64_t shape, double errors_off, double error = 0.1) {
  return {.distance = errors_off * error, .error = error, .shape = {shape}};
}

TEST(Coverage, IsTheShareOfRowsInsideEachInterval) {
  // Half-widths of the intervals, in standard errors: 0.649, 0.994, 1.867, 2.432.
  const Coverage coverage = coverage_of({row(1, 0.64), row(2, -0.64), row(3, 0.99), row(4, -1.86), row(5, 1.86),
                                         row(6, 2.43), row(7, 2.43), row(8, 2.44)});
  EXPECT_EQ(coverage.n, 8);
  EXPECT_EQ(coverage.shapes, 8);
  EXPECT_DOUBLE_EQ(coverage.at[0].share, 2.0 / 8.0);
  EXPECT_DOUBLE_EQ(coverage.at[1].share, 3.0 / 8.0);
  EXPECT_DOUBLE_EQ(coverage.at[2].share, 5.0 / 8.0);
  EXPECT_DOUBLE_EQ(coverage.at[3].share, 7.0 / 8.0);
  // Every shape has one row, so the design effect is 8/7, the correction of a variance from a sample.
  EXPECT_NEAR(coverage.at[0].band, 1.959963984540054 * std::sqrt(8.0 / 7.0 * 0.25 / 8.0), 1e-12);
}

TEST(Coverage, RowsOfOneShapeCountByTheirCorrelation) {
  // Four shapes of two rows: for three shapes both rows are inside, for one both are outside. The share is 3/4. The
  // sums by shape differ from 2 x 3/4 by 1/2 for three shapes and by 3/2 for one, so their squares add up to 3, and the
  // design effect is 4/3 x 3 / (8 x 3/16) = 8/3.
  std::vector<CheckedTime> times;
  for (std::int64_t shape = 0; shape < 4; ++shape) {
    for (int i = 0; i < 2; ++i) {
      times.push_back(row(shape, shape == 0 ? 5.0 : 0.1));
    }
  }
  const Coverage coverage = coverage_of(times);
  EXPECT_EQ(coverage.shapes, 4);
  EXPECT_DOUBLE_EQ(coverage.at[1].share, 0.75);
  EXPECT_NEAR(coverage.at[1].band, 1.959963984540054 * std::sqrt(8.0 / 3.0 * 0.68 * 0.32 / 8.0), 1e-12);
}

TEST(Coverage, RowsOfOneShapeAreAssumedCorrelatedIfAllRowsLieInside) {
  // Three rows of one shape and one of another have a design effect of (9 + 1) / 4.
  const Coverage coverage = coverage_of({row(1, 0.0), row(1, 0.1), row(1, -0.1), row(2, 0.0)});
  EXPECT_DOUBLE_EQ(coverage.at[3].share, 1.0);
  EXPECT_NEAR(coverage.at[3].band, 1.959963984540054 * std::sqrt(2.5 * 0.95 * 0.05 / 4.0), 1e-12);
}

TEST(Coverage, TheMedianErrorIsTakenOverTheRows) {
  EXPECT_DOUBLE_EQ(coverage_of({row(1, 0, 0.1), row(2, 0, 0.3), row(3, 0, 0.2)}).median_error, 0.2);
  EXPECT_DOUBLE_EQ(coverage_of({row(1, 0, 0.1), row(2, 0, 0.3), row(3, 0, 0.2), row(4, 0, 0.4)}).median_error, 0.25);
  EXPECT_EQ(coverage_of({}).n, 0);
  EXPECT_EQ(beyond_chance(coverage_of({})), 0.0);
}

TEST(Coverage, ExcessIsTheDistanceOfTheWorstLevelFromItsBand) {
  Coverage coverage{.n = 100};
  coverage.at = {ObservedShare{0.52, 0.10}, ObservedShare{0.60, 0.05}, ObservedShare{0.80, 0.04},
                 ObservedShare{0.95, 0.03}};
  EXPECT_NEAR(beyond_chance(coverage), 0.06, 1e-12);
  coverage.at[2].share = 0.93;
  EXPECT_NEAR(beyond_chance(coverage), 0.03, 1e-12);
}

TEST(Reliability, PairsAreCountedByTheirStatedProbability) {
  const std::vector<JudgedPair> pairs{{.probability = 0.55, .came_true = true, .shape = {1}},
                                      {.probability = 0.59, .came_true = false, .shape = {2}},
                                      {.probability = 0.60, .came_true = true, .shape = {3}},
                                      {.probability = 0.99, .came_true = true, .shape = {4}},
                                      {.probability = 1.00, .came_true = false, .shape = {5}}};
  const Reliability reliability = reliability_of(pairs);
  EXPECT_EQ(reliability.n, 5);
  EXPECT_NEAR(reliability.brier, (0.45 * 0.45 + 0.59 * 0.59 + 0.4 * 0.4 + 0.01 * 0.01 + 1.0) / 5.0, 1e-12);
  EXPECT_EQ(reliability.bins[0].n, 2);
  EXPECT_NEAR(reliability.bins[0].said, 0.57, 1e-12);
  EXPECT_DOUBLE_EQ(reliability.bins[0].observed.share, 0.5);
  EXPECT_EQ(reliability.bins[1].n, 1);
  EXPECT_EQ(reliability.bins[5].n, 0);
  EXPECT_EQ(reliability.bins[6].n, 2);
  EXPECT_NEAR(reliability.bins[6].said, 0.995, 1e-12);
  EXPECT_DOUBLE_EQ(reliability.bins[6].observed.share, 0.5);
}

TEST(Reliability, IsEmptyWithoutPairs) {
  const Reliability reliability = reliability_of({});
  EXPECT_EQ(reliability.n, 0);
  EXPECT_EQ(reliability.brier, 0.0);
  EXPECT_EQ(reliability.bins[0].from, 0.5);
  EXPECT_EQ(reliability.bins[6].to, 1.0);
}

TEST(NewResidual, CoversSixtyEightPercentOfTheRowsThatTheFitRead) {
  FitRows fit{.machine = "m", .key = "k", .residual = 0.5, .rows = {}};
  for (int i = 1; i <= 9; ++i) {
    fit.rows.push_back({.distance = 0.01 * i * (i % 2 == 0 ? 1.0 : -1.0), .shape = {i}});
  }
  fit.rows.push_back({.distance = 0.05, .shape = {10}, .held_out = true});
  fit.rows.push_back({.distance = 0.2, .shape = {11}, .held_out = true});
  // ceil(0.68 x (9 + 1)) = 7: the seventh smallest, 0.07, lies on the edge of 0.9937 standard errors.
  const NewResidual result = new_residual(fit);
  EXPECT_EQ(result.read, 9);
  EXPECT_EQ(result.held_out, 2);
  EXPECT_NEAR(result.residual, std::exp(0.07 / 0.993666938968772) - 1.0, 1e-12);
  EXPECT_DOUBLE_EQ(result.now.at[1].share, 1.0);
  EXPECT_DOUBLE_EQ(result.then.at[1].share, 0.5);
}

TEST(NewResidual, CoversWhatParametersDoNotExplain) {
  FitRows fit{.machine = "m", .key = "k", .residual = 0.5, .rows = {}};
  fit.rows.push_back({.distance = 0.05 * 0.993666938968772, .parameters = 0.03, .shape = {1}});
  EXPECT_NEAR(new_residual(fit).residual, std::exp(0.04) - 1.0, 1e-12);
  fit.rows[0].parameters = 0.06;
  EXPECT_EQ(new_residual(fit).residual, 0.005);  // Parameters explain the whole error.
  EXPECT_EQ(new_residual({.residual = 0.5, .rows = {}}).residual, 0.5);
}

TEST(NewResidual, EachLimitHasAFactorWhereTheFitReadEnoughOfItsRows) {
  FitRows fit{.machine = "m", .key = "k", .residual = 0.05, .rows = {}};
  const auto add = [&](int rows, double scaled, Limit limit, bool held_out) {
    for (int i = 0; i < rows; ++i) {
      fit.rows.push_back({.distance = scaled * 0.993666938968772, .shape = {i}, .held_out = held_out, .limit = limit});
    }
  };
  add(100, 0.02, Limit::latency, false);
  add(200, 0.10, Limit::compute, false);
  add(59, 0.50, Limit::few_tiles, false);
  add(10, 0.019, Limit::latency, true);
  add(10, 0.021, Limit::latency, true);
  const NewResidual result = new_residual(fit);
  // ceil(0.68 x (359 + 1)) = 245, which is among the 200 rows of 0.10.
  EXPECT_NEAR(result.residual, std::exp(0.10) - 1.0, 1e-12);
  EXPECT_NEAR(result.by_limit[static_cast<std::size_t>(Limit::latency)] * result.residual, std::exp(0.02) - 1.0, 1e-12);
  EXPECT_DOUBLE_EQ(result.by_limit[static_cast<std::size_t>(Limit::compute)], 1.0);
  EXPECT_EQ(result.by_limit[static_cast<std::size_t>(Limit::few_tiles)], 1.0);  // 59 rows are too few
  EXPECT_EQ(result.read_by_limit, (std::array<std::int64_t, 4>{100, 0, 59, 200}));
  EXPECT_DOUBLE_EQ(result.now.at[1].share, 1.0);  // 0.05 contains all rows
  EXPECT_DOUBLE_EQ(result.then.at[1].share, 0.5);
}

TEST(NewResidual, RowsAreJudgedByTheFactorOfTheirLimit) {
  FitRows fit{.machine = "m", .key = "k", .residual = 0.05, .rows = {}};
  fit.rows.push_back({.distance = 0.04, .shape = {1}, .held_out = true, .limit = Limit::latency});
  EXPECT_DOUBLE_EQ(new_residual(fit).now.at[1].share, 1.0);
  fit.by_limit[static_cast<std::size_t>(Limit::latency)] = 0.5;
  EXPECT_DOUBLE_EQ(new_residual(fit).now.at[1].share, 0.0);
}

}  // namespace
}  // namespace commfuse
