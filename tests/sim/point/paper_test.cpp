// SPDX-License-Identifier: Apache-2.0
// Tests Tables 1 and 3 of the CommFuse paper: two parameters are fitted to the vanilla row of Table 1, and everything
// else is predicted (docs/paper.md).
#include <gtest/gtest.h>

#include "model/config/catalogue.h"
#include "sim/point/predict.h"

namespace commfuse {
namespace {

class PaperTable1 : public testing::Test {
 protected:
  static Point point() {
    Point point{.model = load_model(COMMFUSE_SOURCE_DIR "/configs/models/commfuse-paper-mlp.yaml"),
                .machine = load_machine(COMMFUSE_SOURCE_DIR "/configs/hardware/commfuse-paper-npu.yaml")};
    point.scope = Scope::down;
    point.ranks = 4;
    point.batch = 32;
    point.seq = 4096;
    return point;
  }
  /// Returns the end-to-end time in milliseconds.
  double predicted(const char* name, const std::vector<StrategyOptions>& candidates) {
    const Prediction best = predictor_.predict_best(point(), *find_strategy(name), candidates);
    return to_seconds(best.analysis.critical.makespan) * 1e3;
  }

  StructureCache structures_;
  Predictor predictor_{structures_};
};

TEST_F(PaperTable1, TheVanillaRowMatchesItsFit) {
  const Prediction serial = predictor_.predict(point(), serial_strategy, {});
  EXPECT_NEAR(to_seconds(serial.analysis.critical.makespan) * 1e3, 122.3, 0.1);
  EXPECT_NEAR(to_seconds(serial.analysis.critical.exposed) * 1e3, 43.8, 0.1);
}

TEST_F(PaperTable1, SlicingByEightIsWithinTwoPercent) {
  StrategyOptions eight;
  eight.slices = 8;
  EXPECT_NEAR(predicted("sliced", {eight}) / 83.9, 1.0, 0.02);
}

TEST_F(PaperTable1, CommFuseIsWithinThreePercent) {
  EXPECT_NEAR(predicted("commfuse", commfuse_strategy.variants({})) / 77.1, 1.0, 0.03);
}

/// All rows of Table 3 have the same number of tokens, in sequences of 1K to 16K, so they share one prediction.
class PaperTable3 : public PaperTable1, public testing::WithParamInterface<std::int64_t> {
 protected:
  Analysis simulated(const char* name) {
    Point paper_point = point();
    paper_point.seq = GetParam();
    paper_point.batch = 131072 / paper_point.seq;
    return predictor_.predict_best(paper_point, *find_strategy(name), find_strategy(name)->variants({})).analysis;
  }
  /// Returns by how many percent `time` is shorter than `serial`.
  static double reduction(Duration time, Duration serial) {
    return 100.0 * (1.0 - to_seconds(time) / to_seconds(serial));
  }
};

TEST_P(PaperTable3, CommunicationIsHiddenInThePublishedRanges) {
  const Duration serial = simulated("serial").critical.exposed;
  EXPECT_GE(reduction(simulated("commfuse").critical.exposed, serial), 99.0);
  EXPECT_GE(reduction(simulated("sliced").critical.exposed, serial), 74.0);
  EXPECT_LE(reduction(simulated("sliced").critical.exposed, serial), 88.0);
}

TEST_P(PaperTable3, EndToEndIsInThePublishedRanges) {
  const Duration serial = simulated("serial").critical.makespan;
  const double commfuse = reduction(simulated("commfuse").critical.makespan, serial);
  const double sliced = reduction(simulated("sliced").critical.makespan, serial);
  EXPECT_GE(commfuse, 35.0);
  EXPECT_LE(commfuse, 40.2);
  EXPECT_GE(sliced, 29.5);
  EXPECT_LE(sliced, 35.0);
}

INSTANTIATE_TEST_SUITE_P(Sequences, PaperTable3, testing::Values(1024, 2048, 4096, 8192, 16384));

}  // namespace
}  // namespace commfuse
