// SPDX-License-Identifier: Apache-2.0
// Table 1 of the CommFuse paper: two parameters fitted on its vanilla row, the other two rows predicted
// (docs/paper.md).
#include <gtest/gtest.h>

#include "model/config/catalogue.h"
#include "sim/predict.h"

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
  /// Milliseconds from end to end.
  double predicted(const char* name, const std::vector<StrategyOptions>& candidates) {
    const Prediction best = predictor_.predict_best(point(), *find_strategy(name), candidates);
    return to_seconds(best.analysis.critical.makespan) * 1e3;
  }

  StructureCache structures_;
  Predictor predictor_{structures_};
};

TEST_F(PaperTable1, TheVanillaRowIsWhatWasFitted) {
  const Prediction serial = predictor_.predict(point(), *find_strategy("serial"), {});
  EXPECT_NEAR(to_seconds(serial.analysis.critical.makespan) * 1e3, 122.3, 0.1);
  EXPECT_NEAR(to_seconds(serial.analysis.critical.exposed) * 1e3, 43.8, 0.1);
}

TEST_F(PaperTable1, SlicingByEightIsWithinTwoPercent) {
  StrategyOptions eight;
  eight.slices = 8;
  EXPECT_NEAR(predicted("sliced", {eight}) / 83.9, 1.0, 0.02);
}

TEST_F(PaperTable1, CommFuseIsWithinThreePercent) {
  EXPECT_NEAR(predicted("commfuse", find_strategy("commfuse")->variants({})) / 77.1, 1.0, 0.03);
}

}  // namespace
}  // namespace commfuse
