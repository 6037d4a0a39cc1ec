// SPDX-License-Identifier: Apache-2.0
// Compares points on clusters, where the ranks of one node represent all, with the same points where every rank is
// simulated.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "sim/point/predict.h"

namespace commfuse {
namespace {

/// Returns a shipped cluster of two nodes, resized to `nodes` nodes.
Machine cluster(const std::string& name, int nodes) {
  return load_machine(name.substr(0, name.size() - 1) + std::to_string(nodes));
}

Point point_on(const Machine& machine) {
  const Transformer model = load_model("llama-3.1-70b");
  return {.model = model, .machine = machine};
}

struct FoldedAndWhole {
  Prediction folded;
  Prediction whole;
  Timeline folded_timeline;
  Timeline whole_timeline;
};

/// Returns the predictions with and without folding, or nothing if the strategy cannot cut so few tokens.
std::optional<FoldedAndWhole> predictions_of(Predictor& predictor, Point point, const Strategy& strategy,
                                             const StrategyOptions& options) {
  try {
    FoldedAndWhole result;
    result.folded = predictor.predict(point, strategy, options);
    result.folded_timeline = predictor.timeline(point, *result.folded.structure, result.folded.sizes);
    point.simulation.symmetry = false;
    result.whole = predictor.predict(point, strategy, options);
    result.whole_timeline = predictor.timeline(point, *result.whole.structure, result.whole.sizes);
    return result;
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

void expect_same(const FoldedAndWhole& predictions, const std::string& what) {
  const Analysis& a = predictions.folded.analysis;
  const Analysis& b = predictions.whole.analysis;
  EXPECT_EQ(a.critical_rank, b.critical_rank) << what;
  EXPECT_EQ(a.critical.makespan, b.critical.makespan) << what;
  EXPECT_EQ(a.critical.busy, b.critical.busy) << what;
  EXPECT_EQ(a.critical.exposed, b.critical.exposed) << what;
  EXPECT_EQ(a.critical.local, b.critical.local) << what;
  EXPECT_EQ(a.mean_exposed, b.mean_exposed) << what;
  EXPECT_EQ(a.max_exposed, b.max_exposed) << what;
  EXPECT_EQ(predictions.folded.ideal, predictions.whole.ideal) << what;
  EXPECT_EQ(predictions.folded.link, predictions.whole.link) << what;
  EXPECT_EQ(predictions.folded_timeline, predictions.whole_timeline) << what;
}

/// Compares every strategy's schedules at the point and returns their number.
int compare_all(const Point& point, const std::string& where) {
  StructureCache structures;
  Predictor predictor(structures);
  int compared = 0;
  for (const Strategy& strategy : strategies()) {
    if (!applies(strategy, kinds_of(point.scope))) {
      continue;
    }
    for (const StrategyOptions& options : schedules_to_try(strategy, kinds_of(point.scope), point.ranks)) {
      const std::string what = where + ", " + std::string{strategy.name} + " " + strategy.describe(options);
      if (const std::optional<FoldedAndWhole> predictions = predictions_of(predictor, point, strategy, options)) {
        expect_same(*predictions, what);
        ++compared;
      }
    }
  }
  return compared;
}

class FoldedPoints : public testing::TestWithParam<const char*> {};

TEST_P(FoldedPoints, EqualUnfoldedPointsToThePicosecond) {
  for (const int nodes : {2, 4}) {
    Point point = point_on(cluster(GetParam(), nodes));
    point.ranks = nodes * point.machine.gpus_per_node;
    if (point.ranks > 32) {
      continue;
    }
    for (const Scope scope : {Scope::mlp, Scope::qkv}) {
      for (const Interference interference : {Interference::constant, Interference::dynamic}) {
        point.scope = scope;
        point.seq = nodes == 2 ? 8192 : 16384;
        point.price.interference = interference;
        EXPECT_GT(compare_all(point, std::string{GetParam()} + ", " + std::to_string(nodes) + " nodes"), 3);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Clusters, FoldedPoints,
                         testing::Values("dgx-h100-x2", "dgx-a100-x2", "a100-100g-x2", "azure-nc96ads-x2", "mi300x-x2",
                                         "gke-a4-x2", "gh200-slingshot-x2"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// Links are shared most when every rank sends to every other rank on four lanes.
TEST(FoldedPoints, EqualUnfoldedPointsInDirectForms) {
  StructureCache structures;
  Predictor predictor(structures);
  for (const std::int64_t seq : {4096, 6144, 16384}) {
    Point point = point_on(cluster("dgx-h100-x2", 4));
    point.ranks = 32;
    point.seq = seq;
    point.price.interference = Interference::dynamic;
    const StrategyOptions options{.form = Form::direct, .lanes = 4};
    const std::optional<FoldedAndWhole> predictions = predictions_of(predictor, point, commfuse_strategy, options);
    ASSERT_TRUE(predictions);
    expect_same(*predictions, "seq " + std::to_string(seq));
  }
}

}  // namespace
}  // namespace commfuse
