// SPDX-License-Identifier: Apache-2.0
// What calls itself a bound is one: no schedule of any strategy takes less time, on links fast and slow, for few tokens
// and many.
#include <gtest/gtest.h>

#include "model/config/catalogue.h"
#include "sim/predict.h"

namespace commfuse {
namespace {

TEST(Bound, NoScheduleTakesLessTime) {
  StructureCache structures;
  Predictor predictor(structures);
  for (const char* hardware : {"h100-sxm", "b200-sxm", "pcie-rtx-pro-6000", "ascend-910b-mesh"}) {
    for (const Scope scope : {Scope::gate_up, Scope::down}) {
      for (const std::int32_t ranks : {1, 2, 8}) {
        for (const std::int64_t seq : {256, 4096, 32768}) {
          Point point{.model = load_model("llama-3.1-70b"), .machine = load_machine(hardware)};
          point.scope = scope;
          point.ranks = ranks;
          point.seq = seq;
          Duration fastest = Duration::max();
          Duration bound = Duration::max();
          for (const Strategy& strategy : strategies()) {
            if (applies(strategy, kinds_of(scope))) {
              const Prediction best = predictor.predict_best(point, strategy, strategy.variants({}));
              Duration& kept = strategy.bound ? bound : fastest;
              kept = std::min(kept, best.analysis.critical.makespan);
            }
          }
          EXPECT_LE(bound, fastest) << hardware << " " << name_of(scope) << ", " << ranks << " ranks, seq " << seq;
        }
      }
    }
  }
}

}  // namespace
}  // namespace commfuse
