// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "model/cost/implemented.h"
#include "model/math/functions.h"
#include "sim/point/predict.h"

namespace commfuse {

namespace {

/// Returns whether two runs at these prices are identical.
bool same(const Costs& a, const Costs& b) {
  return a.duration == b.duration && a.by_rank == b.by_rank && a.issue == b.issue;
}

/// Groups the ops by the shape that the cost model prices.
std::map<PricedShape, std::vector<std::size_t>> ops_by_shape(const Program& program, const Sizes& sizes) {
  std::vector<PricedShape> shapes;
  for (const Shape& shape : program.shapes) {
    shapes.push_back(priced_shape(program, shape, sizes));
  }
  std::map<PricedShape, std::vector<std::size_t>> ops;
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    ops[shapes[program.ops[op].shape]].push_back(op);
  }
  return ops;
}

/// Returns whether a price of the program may depend on the raised parameter.
bool may_feel(const Program& program, const Point& point, const RaisedMachine& raised) {
  if (raised.felt_by == FeltBy::anything) {
    return true;
  }
  return std::ranges::any_of(program.shapes, [&](const Shape& shape) {
    const auto* gemm = std::get_if<GemmShape>(&shape);
    const auto* core = std::get_if<AttentionShape>(&shape);
    switch (raised.felt_by) {
      case FeltBy::anything: return true;
      case FeltBy::products:
        return core != nullptr ? raised.dtype == core->dtype
                               : gemm != nullptr && raised.dtype == point.price.products.value_or(gemm->dtype);
      case FeltBy::attention: return core != nullptr;
      case FeltBy::collectives: return std::holds_alternative<CollectiveShape>(shape);
      case FeltBy::exchanges: return std::holds_alternative<ExchangeShape>(shape);
    }
    return true;
  });
}

Costs with_longer(Costs costs, const std::vector<std::size_t>& ops, double share) {
  const auto lengthen = [share](Duration& time) {
    time += Duration{std::llround(static_cast<double>(time.count()) * share)};
  };
  for (const std::size_t op : ops) {
    lengthen(costs.duration[op]);
    for (std::size_t i = op; i < costs.by_rank.size(); i += costs.duration.size()) {
      lengthen(costs.by_rank[i]);
    }
  }
  return costs;
}

Costs static_costs(PriceOptions options, const Machine& machine, const Structure& structure, const Sizes& sizes) {
  if (options.interference == Interference::dynamic) {
    options.interference = Interference::constant;
  }
  return price(structure.program(), structure.meetings, sizes, machine, options);
}

}  // namespace

Costs static_costs(const Point& point, const Machine& machine, const Structure& structure, const Sizes& sizes) {
  return static_costs(point.price, machine, structure, sizes);
}

Duration Predictor::static_makespan(const Point& point, const Structure& structure, const Costs& costs) {
  const Replay::Ranks ranks = point.simulation.symmetry ? Replay::Ranks::distinct : Replay::Ranks::all;
  return replay_.makespan(structure.program(), structure.tape, costs, ranks);
}

Uncertainty Predictor::uncertainty(const Point& point, const Prediction& prediction) {
  Uncertainty total;
  if (point.raised == nullptr) {
    return total;
  }
  const Structure& structure = *prediction.structure;
  const Sizes& sizes = prediction.sizes;
  const Costs costs = static_costs(point, point.machine, structure, sizes);
  const Duration nominal = static_makespan(point, structure, costs);
  if (nominal == Duration{}) {
    return total;  // a file may hold no op
  }
  const auto doubt = [&](const DoubtOf& of, const Costs& other) {
    const Duration time = static_makespan(point, structure, other);
    if (time != nominal && time > Duration{}) {
      total.doubts.push_back({of, math::log(to_seconds(time) / to_seconds(nominal))});
    }
  };
  for (const RaisedMachine& raised : *point.raised) {
    if (!may_feel(structure.program(), point, raised)) {
      continue;
    }
    const Costs other = static_costs(point, raised.machine, structure, sizes);
    if (!same(other, costs)) {
      doubt(raised.parameter, other);
    }
  }
  const int ranks = structure.program().mesh.ranks();
  for (const auto& [shape, ops] : ops_by_shape(structure.program(), sizes)) {
    doubt(shape, with_longer(costs, ops, residual_of(shape, point.machine, ranks)));
  }
  if (const ImplementedSites* sites = point.price.implementation) {
    PriceOptions options = point.price;
    for (const RaisedImplementation& raised : raised_by_error(*sites)) {
      options.implementation = &raised.sites;
      doubt(ImplementationDoubt{sites->name, raised.name}, static_costs(options, point.machine, structure, sizes));
    }
    total.doubts.push_back({ImplementationDoubt{sites->name, {}}, math::log(1.0 + sites->residual.value)});
    std::ranges::sort(total.doubts, std::less{}, &Doubt::of);
  }
  return total;
}

}  // namespace commfuse
