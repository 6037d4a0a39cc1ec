// SPDX-License-Identifier: Apache-2.0
#include "sim/why/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "model/analysis/critical_path.h"
#include "model/check.h"
#include "model/cost/implemented.h"
#include "model/math/functions.h"
#include "sim/why/how.h"

namespace commfuse {

namespace {

PathKind kind_of(Purpose purpose) {
  switch (purpose) {
    case Purpose::essential: return PathKind::essential;
    case Purpose::communication: return PathKind::communication;
    default: return PathKind::local;
  }
}

/// Groups ops by shape and description, so that a GEMM with fewer SMs is a separate entry.
std::vector<ExplainedOp> ops_of(const Point& point, const Prediction& prediction, const Costs& costs) {
  const Program& program = prediction.structure->program();
  const Rank rank = prediction.analysis.critical_rank;
  const Coordinates coordinates = program.mesh.coordinates(rank);
  std::map<std::pair<std::string, std::string>, ExplainedOp> by_shape;
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    if (!program.ops[op].where.holds(coordinates)) {
      continue;
    }
    const PricedShape shape =
        priced_shape(program, program.shapes[program.ops[op].shape], prediction.sizes, point.price.experts);
    const Duration time = costs.of(rank, op);
    std::pair key{in_words(shape), how(point, *prediction.structure, prediction.sizes, op)};
    auto [entry, is_new] = by_shape.try_emplace(key);
    ExplainedOp& explained = entry->second;
    if (is_new) {
      explained = {.shape = key.first, .how = key.second, .kind = kind_of(program.ops[op].purpose), .shortest = time};
    }
    ++explained.count;
    explained.shortest = std::min(explained.shortest, time);
    explained.longest = std::max(explained.longest, time);
    explained.together += time;
  }
  std::vector<ExplainedOp> ops;
  for (auto& [key, explained] : by_shape) {
    ops.push_back(std::move(explained));
  }
  std::stable_sort(ops.begin(), ops.end(),
                   [](const ExplainedOp& a, const ExplainedOp& b) { return a.together > b.together; });
  return ops;
}

/// Returns the time on the critical path by kind of op, at fixed prices. The parts add up to the time of the run.
std::array<Duration, path_kinds> path_of(const Point& point, const Prediction& prediction, const Costs& costs,
                                         Predictor& predictor) {
  Point fixed_prices = point;
  fixed_prices.faults = nullptr;
  fixed_prices.price.interference =
      point.price.interference == Interference::dynamic ? Interference::constant : point.price.interference;
  const Structure& structure = *prediction.structure;
  const Timeline timeline = predictor.timeline(fixed_prices, structure, prediction.sizes);
  const CriticalPath path = critical_path(structure.plan.lowered, costs, timeline);
  return shares_of(path, structure.program().mesh.ranks()).by_kind;
}

class Sensitivities {
 public:
  Sensitivities(const Point& point, const Prediction& prediction, const Costs& costs, Predictor& predictor)
      : point_(point), prediction_(prediction), predictor_(predictor), nominal_(makespan(costs)) {}

  [[nodiscard]] std::vector<Hold> find(const Uncertainty& uncertainty) const {
    std::vector<Hold> holds;
    if (nominal_ == Duration{}) {
      return holds;
    }
    const std::vector<NamedParameter> parameters = parameters_of(point_.machine);
    std::map<std::size_t, double> effects;
    for (const Doubt& doubt : uncertainty.doubts) {
      if (const auto* parameter = std::get_if<std::size_t>(&doubt.of)) {
        effects[*parameter] = doubt.effect;
      } else if (const auto* shape = std::get_if<PricedShape>(&doubt.of)) {
        holds.push_back(of_shape(*shape, doubt.effect));
      } else if (const auto* implementation = std::get_if<ImplementationDoubt>(&doubt.of)) {
        holds.push_back(of_implementation(*implementation, doubt.effect));
      } else {
        check(false, "doubts of whole steps do not occur for layers");
      }
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const double elasticity = elasticity_of(parameters[i].name);
      if (elasticity != 0.0 || effects.contains(i)) {
        holds.push_back({.name = parameters[i].name,
                         .provenance = parameters[i].provenance,
                         .source = parameters[i].source,
                         .elasticity = elasticity,
                         .standard_error = parameters[i].standard_error,
                         .effect = effects.contains(i) ? effects[i] : 0.0});
      }
    }
    std::stable_sort(holds.begin(), holds.end(), [](const Hold& a, const Hold& b) {
      const auto size = [](const Hold& hold) {
        return std::pair{std::abs(hold.effect), std::abs(hold.elasticity.value_or(0.0))};
      };
      return size(a) > size(b);
    });
    return holds;
  }

 private:
  [[nodiscard]] Duration makespan(const Costs& costs) const {
    return predictor_.static_makespan(point_, *prediction_.structure, costs);
  }

  [[nodiscard]] double elasticity_of(const std::string& parameter) const {
    constexpr double nudge = 0.01;
    const Machine machine = raised(point_.machine, parameter, nudge);
    const Duration time = makespan(static_costs(point_, machine, *prediction_.structure, prediction_.sizes));
    return math::log(to_seconds(time) / to_seconds(nominal_)) / math::log(1.0 + nudge);
  }

  [[nodiscard]] Hold of_shape(const PricedShape& shape, double effect) const {
    const int ranks = prediction_.structure->program().mesh.ranks();
    return {.name = in_words(shape), .standard_error = residual_of(shape, point_.machine, ranks), .effect = effect};
  }

  [[nodiscard]] Hold of_implementation(const ImplementationDoubt& doubt, double effect) const {
    const ImplementedSites& sites = *point_.price.implementation;
    for (const RaisedImplementation& raised : raised_by_error(sites)) {
      if (raised.name == doubt.parameter) {
        return {.name = fmt::format("{}.{}", sites.name, raised.name),
                .provenance = raised.provenance,
                .source = raised.source,
                .standard_error = raised.standard_error,
                .effect = effect};
      }
    }
    return {.name = fmt::format("{}, residual of its fit", sites.name),
            .standard_error = sites.residual.value,
            .effect = effect};
  }

  const Point& point_;
  const Prediction& prediction_;
  Predictor& predictor_;
  Duration nominal_;
};

}  // namespace

Explanation explain(const Point& point, const Prediction& prediction, Predictor& predictor) {
  const Costs costs = static_costs(point, point.machine, *prediction.structure, prediction.sizes);
  Explanation explanation;
  explanation.ops = ops_of(point, prediction, costs);
  explanation.on_path = path_of(point, prediction, costs, predictor);
  explanation.holds = Sensitivities(point, prediction, costs, predictor).find(predictor.uncertainty(point, prediction));
  return explanation;
}

}  // namespace commfuse
