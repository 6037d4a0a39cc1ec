// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/math/functions.h"
#include "sim/parallel/run_points.h"
#include "sim/point/predict.h"
#include "sim/why/why.h"
#include "tests/sim/grid_of.h"

namespace commfuse {
namespace {

/// Returns the MLP of Llama-3.1-70B on eight H100 where only the named parameter is uncertain, by a tenth, and no fit
/// has a residual.
Point point_with_error_of(const char* parameter) {
  Point point{.model = load_model(COMMFUSE_SOURCE_DIR "/configs/models/llama-3.1-70b.yaml"),
              .machine = load_machine(COMMFUSE_SOURCE_DIR "/configs/hardware/h100-sxm.yaml"),
              .seq = 8192};
  Machine& machine = point.machine;
  machine.accelerator.matrix_units[index_of(DType::bf16)]->fit.residual = 0.0;
  machine.link.peer.fit.residual = 0.0;
  machine.link.collective.fit.residual = 0.0;
  point.raised = std::make_shared<const std::vector<RaisedMachine>>(
      1, RaisedMachine{.parameter = 7, .machine = raised(machine, parameter, 0.1)});
  return point;
}

struct Simulated {
  Simulated(const Point& point, const char* strategy)
      : predictor(structures), prediction(predictor.predict(point, *find_strategy(strategy), {})) {}
  StructureCache structures;
  Predictor predictor;
  Prediction prediction;
};

/// Returns true for a doubt about a parameter. Every schedule also has a doubt about the residual of memory-bound
/// kernels, which is assumed.
bool is_parameter(const Doubt& doubt) { return std::holds_alternative<std::size_t>(doubt.of); }

TEST(Uncertainty, PropagatesTheErrorOfAParameter) {
  const Point point = point_with_error_of("link.collective.rate");
  Simulated serial(point, "serial");
  const Uncertainty uncertainty = serial.predictor.uncertainty(point, serial.prediction);
  ASSERT_TRUE(is_parameter(uncertainty.doubts.front()));
  EXPECT_EQ(std::get<std::size_t>(uncertainty.doubts.front().of), 7U);
  Point faster = point;
  faster.machine = *point.raised->front().machine;
  const Duration time = serial.predictor.predict(faster, serial_strategy, {}).analysis.critical.makespan;
  EXPECT_EQ(uncertainty.doubts.front().effect,
            math::log(to_seconds(time) / to_seconds(serial.prediction.analysis.critical.makespan)));
  EXPECT_LT(uncertainty.doubts.front().effect, -0.01);
}

/// Returns the parameters in `raised`, each marked as possibly affecting every price.
std::shared_ptr<const std::vector<RaisedMachine>> affecting_anything(const std::vector<RaisedMachine>& raised) {
  auto result = std::make_shared<std::vector<RaisedMachine>>(raised);
  for (RaisedMachine& parameter : *result) {
    parameter.affects = AffectedOps::anything;
    parameter.is_between_nodes = false;
  }
  return result;
}

bool same(const Uncertainty& a, const Uncertainty& b) {
  return std::ranges::equal(a.doubts, b.doubts,
                            [](const Doubt& x, const Doubt& y) { return x.of == y.of && x.effect == y.effect; });
}

Point point_with_all_errors(const char* hardware) {
  Point point;
  point.model = load_model("llama-3.1-8b");
  point.machine = load_machine(hardware);
  point.seq = 8192;
  point.raised = std::make_shared<const std::vector<RaisedMachine>>(raised_by_error(point.machine));
  return point;
}

TEST(Uncertainty, IsTheSameWhenEveryParameterIsPricedAgain) {
  int compared = 0;
  for (const char* hardware : {"h100-sxm", "a100-sxm-80", "b200-sxm", "dgx-h100-x2", "gb200-nvl72-x2", "l40s-pcie"}) {
    Point point = point_with_all_errors(hardware);
    Point all_repriced = point;
    all_repriced.raised = affecting_anything(*point.raised);
    for (const Scope scope : {Scope::mlp, Scope::attention, Scope::mlp_ar, Scope::ulysses, Scope::layer}) {
      for (const Strategy& strategy : strategies()) {
        for (const std::int32_t ranks : {4, 8, 16}) {
          point.scope = all_repriced.scope = scope;
          point.ranks = all_repriced.ranks = ranks;
          StructureCache structures;
          Predictor predictor(structures);
          if (!applies(strategy, predictor.kinds(scope))) {
            continue;
          }
          try {
            require_possible(point);
            const Prediction prediction = predictor.predict(point, strategy, {});
            EXPECT_TRUE(same(predictor.uncertainty(point, prediction), predictor.uncertainty(all_repriced, prediction)))
                << hardware << " " << name_of(scope) << " " << strategy.name << " " << ranks;
            ++compared;
          } catch (const ConfigError&) {  // Not every number of ranks has such a schedule.
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 200);
}

TEST(Uncertainty, OfFp8LayersIsTheSameWhenEveryParameterIsPricedAgain) {
  for (const char* hardware : {"h100-sxm", "b300-sxm"}) {
    Point point = point_with_all_errors(hardware);
    point.dtype = DType::fp8;
    Point all_repriced = point;
    all_repriced.raised = affecting_anything(*point.raised);
    for (const char* strategy : {"serial", "async_tp", "commfuse"}) {
      StructureCache structures;
      Predictor predictor(structures);
      const Prediction prediction = predictor.predict(point, *find_strategy(strategy), {});
      EXPECT_TRUE(same(predictor.uncertainty(point, prediction), predictor.uncertainty(all_repriced, prediction)))
          << hardware << " " << strategy;
    }
  }
}

TEST(Uncertainty, IgnoresParametersThatAScheduleDoesNotUse) {
  const Point point = point_with_error_of("link.collective.rate");
  Simulated ring(point, "commfuse");
  for (const Doubt& doubt : ring.predictor.uncertainty(point, ring.prediction).doubts) {
    EXPECT_FALSE(is_parameter(doubt));
  }
}

/// Returns the part of the serial schedule's makespan that depends on the shapes of GEMMs.
double share_of_gemms(const Point& point) {
  Simulated serial(point, "serial");
  double gemms = 0.0;
  for (const Doubt& doubt : serial.predictor.uncertainty(point, serial.prediction).doubts) {
    const auto* shape = std::get_if<PricedShape>(&doubt.of);
    EXPECT_NE(shape, nullptr);
    gemms += shape != nullptr && shape->kind == PricedKind::product ? std::exp(doubt.effect) - 1.0 : 0.0;
  }
  return gemms;
}

TEST(Uncertainty, TheResidualOfAShapeLengthensAllItsOps) {
  Point point = point_with_error_of("link.peer.rate");
  FitScope& fit = point.machine.accelerator.matrix_units[index_of(DType::bf16)]->fit;
  fit.residual = 0.1;
  fit.by_limit = ones_by_limit;
  // Serial has two GEMMs with one activation between them; each GEMM becomes longer by a tenth of its time.
  Simulated serial(point, "serial");
  const Structure& structure = *serial.prediction.structure;
  const Costs costs = static_costs(point, point.machine, structure, serial.prediction.sizes);
  double expected = 0.0;
  for (std::size_t op = 0; op < costs.duration.size(); ++op) {
    expected += structure.program().ops[op].kind == OpKind::gemm ? 0.1 * to_seconds(costs.duration[op]) : 0.0;
  }
  expected /= to_seconds(serial.prediction.analysis.critical.makespan);
  EXPECT_NEAR(share_of_gemms(point), expected, 1e-9);
  // 8K rows of 7K and 8K columns: both GEMMs are limited by compute.
  fit.by_limit[static_cast<std::size_t>(Limit::compute)] = 0.5;
  EXPECT_NEAR(share_of_gemms(point), 0.5 * expected, 1e-9);
  fit.by_limit[static_cast<std::size_t>(Limit::bandwidth)] = 7.0;
  EXPECT_NEAR(share_of_gemms(point), 0.5 * expected, 1e-9);
}

TEST(Uncertainty, IsAbsentUnlessRequested) {
  Point point = point_with_error_of("link.peer.rate");
  point.raised = nullptr;
  Simulated serial(point, "serial");
  EXPECT_TRUE(serial.predictor.uncertainty(point, serial.prediction).doubts.empty());
}

TEST(Uncertainty, DynamicInterferenceHasTheErrorAtFixedPrices) {
  Point point = point_with_error_of("link.peer.rate");
  Simulated fixed(point, "commfuse");
  const Uncertainty expected = fixed.predictor.uncertainty(point, fixed.prediction);
  point.price.interference = Interference::dynamic;
  Simulated dynamic(point, "commfuse");
  EXPECT_EQ(error_of(dynamic.predictor.uncertainty(point, dynamic.prediction)), error_of(expected));
}

/// Returns the rows of the given settings.
std::vector<ResultRow> rows_of(const std::vector<std::string>& sets) {
  const Settings settings = test::settings_of(sets);
  Library library;
  library.load(settings);
  return run_points({settings}, library, {.threads = 1}).front();
}

TEST(Uncertainty, ChancesOfTheTwoFastestAddUpToOne) {
  std::vector<ResultRow> rows = rows_of({"seq=8K", "ranks=8"});
  std::erase_if(rows, [](const ResultRow& row) { return row.bound; });
  std::sort(rows.begin(), rows.end(), [](const ResultRow& a, const ResultRow& b) {
    return a.analysis.critical.makespan < b.analysis.critical.makespan;
  });
  ASSERT_GT(rows.size(), 2U);
  EXPECT_GE(*rows[0].win_probability, 0.5);
  EXPECT_NEAR(*rows[0].win_probability + *rows[1].win_probability, 1.0, 1e-12);
  for (const ResultRow& row : rows) {
    EXPECT_GT(*row.makespan_error, 0.0);
    EXPECT_LT(*row.makespan_error, 0.5);
  }
}

TEST(Uncertainty, OffLeavesTheColumnsEmpty) {
  for (const ResultRow& row : rows_of({"seq=8K", "uncertainty=off"})) {
    EXPECT_FALSE(row.makespan_error || row.win_probability);
    EXPECT_TRUE(row.warnings.empty());
  }
}

TEST(Why, ThePathAddsUpToTheMakespanAndEveryOpIsExplained) {
  Point point = point_with_error_of("link.collective.rate");
  point.price.interference = Interference::none;
  for (const char* strategy : {"serial", "commfuse", "sliced"}) {
    Simulated simulated(point, strategy);
    const Explanation explanation = explain(point, simulated.prediction, simulated.predictor);
    Duration path{};
    for (const Duration time : explanation.on_path) {
      path += time;
    }
    EXPECT_EQ(path, simulated.prediction.analysis.critical.makespan) << strategy;
    std::size_t ops = 0;
    for (const ExplainedOp& op : explanation.ops) {
      ops += op.count;
    }
    EXPECT_EQ(ops, simulated.prediction.structure->program().ops.size()) << strategy;
  }
}

TEST(Why, TheRateOfTheWireSerialWaitsForHasANegativeElasticity) {
  const Point point = point_with_error_of("link.collective.rate");
  Simulated serial(point, "serial");
  const Explanation explanation = explain(point, serial.prediction, serial.predictor);
  const auto find = [&](const std::string& name) {
    return std::find_if(explanation.holds.begin(), explanation.holds.end(),
                        [&](const Hold& hold) { return hold.name == name; });
  };
  const auto rate = find("link.collective.rate");
  ASSERT_NE(rate, explanation.holds.end());
  EXPECT_LT(*rate->elasticity, -0.1);
  EXPECT_GT(*rate->elasticity, -1.0);
  EXPECT_EQ(find("link.peer.rate"), explanation.holds.end());  // Serial exchanges nothing.
}

}  // namespace
}  // namespace commfuse
