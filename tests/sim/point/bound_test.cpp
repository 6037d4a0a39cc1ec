// SPDX-License-Identifier: Apache-2.0
// Tests that no schedule of any strategy takes less time than a bound, on fast and slow links, for few and many tokens.
#include <gtest/gtest.h>

#include "model/config/catalogue.h"
#include "model/hardware/link_rates.h"
#include "sim/point/predict.h"

namespace commfuse {
namespace {

/// Returns the time of the fastest schedule of the strategies that are bounds, or of all other strategies.
Duration fastest_of(Predictor& predictor, const Point& point, bool bounds) {
  Duration fastest = Duration::max();
  for (const Strategy& strategy : strategies()) {
    if (strategy.bound == bounds && applies(strategy, kinds_of(point.scope))) {
      const Prediction best =
          predictor.predict_best(point, strategy, schedules_to_try(strategy, kinds_of(point.scope), point.ranks));
      fastest = std::min(fastest, best.analysis.critical.makespan);
    }
  }
  return fastest;
}

TEST(Bound, NoScheduleTakesLessTime) {
  StructureCache structures;
  Predictor predictor(structures);
  for (const char* hardware : {"h100-sxm", "b200-sxm", "pcie-rtx-pro-6000", "ascend-910b-mesh"}) {
    for (const Scope scope : {Scope::gate_up, Scope::down, Scope::down_ar}) {
      for (const std::int32_t ranks : {1, 2, 8}) {
        for (const std::int64_t seq : {256, 4096, 32768}) {
          Point point{.model = load_model("llama-3.1-70b"), .machine = load_machine(hardware)};
          point.scope = scope;
          point.ranks = ranks;
          point.seq = seq;
          EXPECT_LE(fastest_of(predictor, point, true), fastest_of(predictor, point, false))
              << hardware << " " << name_of(scope) << ", " << ranks << " ranks, seq " << seq;
        }
      }
    }
  }
}

// A kernel that sums an all-reduce cuts the columns, so it has eight blocks whatever the number of tokens. If it cut
// the tokens, 4,104 tokens on 8 ranks would allow only one block, and the sums after the GEMM would take 42 us instead
// of 5 us.
TEST(Bound, OfAnAllReduceHardlyDependsOnHowTokensDivide) {
  StructureCache structures;
  Predictor predictor(structures);
  Point point{.model = load_model("llama-3.1-70b"), .machine = load_machine("b300-sxm")};
  point.scope = Scope::down_ar;
  point.ranks = 8;
  const auto time_at = [&](std::int64_t tokens) {
    point.seq = tokens;
    return to_microseconds(fastest_of(predictor, point, true));
  };
  const double below = time_at(4096);
  const double above = time_at(4160);
  for (const std::int64_t tokens : {4097, 4099, 4104, 4112, 4120, 4152}) {
    const double between = below + (above - below) * static_cast<double>(tokens - 4096) / 64.0;
    EXPECT_NEAR(time_at(tokens), between, 0.02 * between) << tokens << " tokens";
  }
}

TEST(Bound, NoAllReduceOfUnevenTokensTakesLessTime) {
  StructureCache structures;
  Predictor predictor(structures);
  for (const char* hardware : {"h100-sxm", "b200-sxm", "a100-sxm-80", "ascend-910b-mesh"}) {
    for (const std::int64_t seq : {272, 528, 4112}) {  // Data slicing can cut the tokens of a rank in two.
      Point point{.model = load_model("llama-3.1-70b"), .machine = load_machine(hardware)};
      point.scope = Scope::down_ar;
      point.ranks = 8;
      point.seq = seq;
      EXPECT_LE(fastest_of(predictor, point, true), fastest_of(predictor, point, false)) << hardware << ", seq " << seq;
    }
  }
}

// NCCL sums in the switch of each node, and exchanges these sums between nodes.
TEST(Bound, NoAllReduceOverNodesTakesLessTime) {
  StructureCache structures;
  Predictor predictor(structures);
  for (const char* hardware : {"hgx-h800-x2", "dgx-h100-x2", "gb200-nvl72-x2"}) {
    for (const std::int64_t seq : {4096, 32768}) {
      Point point{.model = load_model("llama-3.1-70b"), .machine = load_machine(hardware)};
      point.scope = Scope::out_proj_ar;
      point.ranks = 16;
      point.seq = seq;
      EXPECT_LE(fastest_of(predictor, point, true), fastest_of(predictor, point, false)) << hardware << ", seq " << seq;
    }
  }
}

// A GEMM of 512 rows needs slightly more tiles than one wave of an A100's 108 SMs holds, so it takes two waves. A
// quarter of the rows takes one wave, so cut GEMMs are faster.
TEST(Bound, NoScheduleTakesLessTimeIfCuttingMakesAGemmFaster) {
  StructureCache structures;
  Predictor predictor(structures);
  for (const Scope scope : {Scope::gate_up, Scope::down, Scope::mlp}) {
    for (const std::int64_t seq : {512, 1024}) {
      Point point{.model = load_model("llama-3.1-8b"), .machine = load_machine("a100-sxm-80")};
      point.scope = scope;
      point.ranks = 4;
      point.seq = seq;
      EXPECT_LE(fastest_of(predictor, point, true), fastest_of(predictor, point, false))
          << name_of(scope) << ", seq " << seq;
    }
  }
}

// Sixteen ranks receive over the links of their node and through their NICs at the same time, and small exchanges on an
// A100 are measured to be faster than the data sheet's rate.
TEST(Bound, NoScheduleTakesLessTimeOverHypotheticalLinks) {
  StructureCache structures;
  Predictor predictor(structures);
  for (const char* hardware : {"dgx-h100-x2", "dgx-a100-x2", "gke-a4-x2", "mi300x-x2"}) {
    for (const LinkRates rates : {LinkRates{0.25, 4.0}, LinkRates{0.25, 0.5}, LinkRates{4.0, 4.0}}) {
      for (const std::int32_t ranks : {8, 16}) {
        Point point{.model = load_model("qwen2.5-72b"), .machine = with_link_rates(load_machine(hardware), rates)};
        point.scope = Scope::out_proj;
        point.ranks = ranks;
        point.seq = 32768;
        EXPECT_LE(fastest_of(predictor, point, true), fastest_of(predictor, point, false))
            << hardware << ", links x" << rates.node << ", network x" << rates.network << ", " << ranks << " ranks";
      }
    }
  }
}

}  // namespace
}  // namespace commfuse
