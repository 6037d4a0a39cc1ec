// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "model/cost/implemented.h"
#include "model/math/functions.h"
#include "sim/point/predict.h"

namespace commfuse {

namespace {

/// Returns whether two runs at these prices are identical.
bool are_identical(const Costs& a, const Costs& b) {
  return a.duration == b.duration && a.by_rank == b.by_rank && a.issue == b.issue;
}

/// Groups the ops by the shape that the cost model prices.
std::map<PricedShape, std::vector<std::size_t>> ops_by_shape(const Program& program, const Sizes& sizes,
                                                             const ExpertSplit& experts) {
  std::vector<PricedShape> shapes;
  for (const Shape& shape : program.shapes) {
    shapes.push_back(priced_shape(program, shape, sizes, experts));
  }
  std::map<PricedShape, std::vector<std::size_t>> ops;
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    ops[shapes[program.ops[op].shape]].push_back(op);
  }
  return ops;
}

bool is_collective(const Shape& shape, CollectiveKind kind) {
  const auto* collective = std::get_if<CollectiveShape>(&shape);
  return collective != nullptr && collective->kind == kind;
}

bool is_of_kernels(AffectedOps affects) { return affects == AffectedOps::gemms || affects == AffectedOps::attention; }

bool may_change_kernels(AffectedOps affects) { return is_of_kernels(affects) || affects == AffectedOps::anything; }

/// Adds the times that `times` lacks.
void add_missing(KernelTimes& times, const KernelTimes& from) {
  for (std::size_t place = 0; place < times.shapes.size(); ++place) {
    if (times.shapes[place] == KernelTimes::unknown) {
      times.shapes[place] = from.shapes[place];
    }
  }
}

/// Keeps only the times that are also valid on the raised machine: those that cannot depend on its parameter.
void forget_affected(KernelTimes& times, const Program& program, AffectedOps affects) {
  switch (affects) {
    case AffectedOps::anything: times.forget_all(); break;
    case AffectedOps::gemms: times.forget_gemms(program); break;
    case AffectedOps::attention: times.forget_attention(program); break;
    case AffectedOps::decoding:
    case AffectedOps::experts:
    case AffectedOps::quantization: break;
    case AffectedOps::collectives:
    case AffectedOps::all_reduces:
    case AffectedOps::all_to_alls:
    case AffectedOps::exchanges: times.forget_transfers(program); break;
  }
}

}  // namespace

bool may_be_affected(const Program& program, const Point& point, const RaisedMachine& raised) {
  if (raised.is_between_nodes && program.mesh.ranks() <= point.machine.gpus_per_node) {
    return false;
  }
  if (raised.affects == AffectedOps::anything) {
    return true;
  }
  // The price of a GEMM with fp8 inputs may contain the ramp of bf16.
  const auto reads = [&](DType gemm) {
    const DType dtype = point.price.gemm_dtype.value_or(gemm);
    return raised.dtype == dtype ||
           (raised.dtype == DType::bf16 && dtype == DType::fp8 && !point.price.gemm_dtype.has_value());
  };
  return std::ranges::any_of(program.shapes, [&](const Shape& shape) {
    const auto* gemm = std::get_if<GemmShape>(&shape);
    const auto* core = std::get_if<AttentionShape>(&shape);
    switch (raised.affects) {
      case AffectedOps::anything: return true;
      case AffectedOps::gemms:
        return core != nullptr ? raised.dtype == core->dtype : gemm != nullptr && reads(gemm->dtype);
      case AffectedOps::attention: return core != nullptr;
      case AffectedOps::decoding:
      case AffectedOps::experts:
      case AffectedOps::quantization: return false;
      case AffectedOps::collectives: return std::holds_alternative<CollectiveShape>(shape);
      case AffectedOps::all_reduces: return is_collective(shape, CollectiveKind::all_reduce);
      case AffectedOps::all_to_alls: return is_collective(shape, CollectiveKind::all_to_all);
      case AffectedOps::exchanges: return std::holds_alternative<ExchangeShape>(shape);
    }
    return true;
  });
}

namespace {

void lengthen_ops(Costs& costs, const std::vector<std::size_t>& ops, double share) {
  const auto lengthen = [share](Duration& time) {
    time += Duration{std::llround(static_cast<double>(time.count()) * share)};
  };
  for (const std::size_t op : ops) {
    lengthen(costs.duration[op]);
    for (std::size_t i = op; i < costs.by_rank.size(); i += costs.duration.size()) {
      lengthen(costs.by_rank[i]);
    }
  }
}

}  // namespace

PriceOptions with_fixed_prices(PriceOptions options) {
  if (options.interference == Interference::dynamic) {
    options.interference = Interference::constant;
  }
  return options;
}

Costs static_costs(const Point& point, const Machine& machine, const Structure& structure, const Sizes& sizes) {
  KernelTimes kernels;
  Costs costs;
  price(structure.priced(), sizes, machine, with_fixed_prices(point.price), kernels, costs);
  return costs;
}

Duration Predictor::static_makespan(const Point& point, const Structure& structure, const Costs& costs) {
  const Replay::Ranks ranks = point.simulation.symmetry ? Replay::Ranks::distinct : Replay::Ranks::all;
  return replay_.makespan(structure.program(), structure.tape, costs, ranks);
}

std::vector<Duration> Predictor::static_makespans(const Point& point, const Structure& structure, const Costs& nominal,
                                                  std::span<Costs> varied) {
  const Replay::Ranks ranks = point.simulation.symmetry ? Replay::Ranks::distinct : Replay::Ranks::all;
  const auto has_same_issue = [&](const Costs& other) {
    return other.by_rank.size() == nominal.by_rank.size() && other.issue == nominal.issue;
  };
  std::vector<std::size_t> replayed_together;  // original indices of the costs that the swaps move to the front
  std::vector<Duration> times(varied.size());
  for (std::size_t i = 0; i < varied.size(); ++i) {
    if (has_same_issue(varied[i])) {
      std::swap(varied[replayed_together.size()], varied[i]);
      replayed_together.push_back(i);
    } else {
      times[i] = static_makespan(point, structure, varied[i]);
    }
  }
  std::vector<Duration> makespans;
  replay_.makespans(structure.program(), structure.tape, varied.first(replayed_together.size()), ranks, makespans);
  for (std::size_t k = 0; k < replayed_together.size(); ++k) {
    times[replayed_together[k]] = makespans[k];
  }
  return times;
}

void Predictor::price_doubted(const Point& point, const Prediction& prediction) {
  const Structure& structure = *prediction.structure;
  const PriceOptions options = with_fixed_prices(point.price);
  const std::optional<KernelInputs> inputs = kernel_inputs(point, prediction);
  if (!inputs || !kernel_memory_.recall(*inputs, std::span(&doubted_.times, 1))) {
    doubted_.times.forget_all();
  }
  price(structure.priced(), prediction.sizes, point.machine, options, doubted_.times, doubted_.costs);
}

bool Predictor::raises_costs(const Point& point, const Prediction& prediction, const RaisedMachine& raised,
                             KernelTimes& times) {
  const PricedProgram priced = prediction.structure->priced();
  const PriceOptions options = with_fixed_prices(point.price);
  if (is_of_kernels(raised.affects) &&
      kernels_are_the_same(priced, prediction.sizes, *raised.machine, options, doubted_.times, times)) {
    return false;
  }
  price(priced, prediction.sizes, *raised.machine, options, times, doubted_.next());
  return !are_identical(doubted_.next(), doubted_.costs);
}

void Predictor::price_raised(const Point& point, const Prediction& prediction, std::vector<DoubtOf>& doubts) {
  const Program& program = prediction.structure->program();
  auto& [nominal, costs, parameters, raised_times, transfers, varied, used] = doubted_;
  parameters.clear();
  for (const RaisedMachine& raised : *point.raised) {
    if (may_change_kernels(raised.affects) && may_be_affected(program, point, raised)) {
      parameters.push_back(raised.parameter);
    }
  }
  raised_times.resize(std::max(raised_times.size(), parameters.size()));
  const std::span<KernelTimes> machines = std::span(raised_times).first(parameters.size());
  std::optional<KernelInputs> inputs = kernel_inputs(point, prediction);
  if (inputs) {
    const auto known = std::ranges::find(raised_lists_, parameters);
    inputs->raised = 1 + static_cast<std::size_t>(known - raised_lists_.begin());
    if (known == raised_lists_.end()) {
      raised_lists_.push_back(parameters);
    }
  }
  const bool is_known = inputs && kernel_memory_.recall(*inputs, machines);
  auto machine = machines.begin();
  for (const RaisedMachine& raised : *point.raised) {
    if (!may_be_affected(program, point, raised)) {
      continue;
    }
    KernelTimes& times = may_change_kernels(raised.affects) ? *machine++ : transfers;
    if (!is_known || &times == &transfers) {
      times = nominal;
      forget_affected(times, program, raised.affects);
    } else if (is_of_kernels(raised.affects)) {
      add_missing(times, nominal);  // adds times of transfers, which the parameter does not affect
    }
    if (raises_costs(point, prediction, raised, times)) {
      doubts.emplace_back(raised.parameter);
      ++used;
    }
  }
  if (inputs && !is_known) {
    kernel_memory_.keep(*inputs, machines);
  }
}

Uncertainty Predictor::uncertainty(const Point& point, const Prediction& prediction) {
  Uncertainty result;
  if (point.raised == nullptr) {
    return result;
  }
  const Structure& structure = *prediction.structure;
  const Sizes& sizes = prediction.sizes;
  const Program& program = structure.program();
  PriceOptions options = with_fixed_prices(point.price);
  const Costs& costs = doubted_.costs;
  doubted_.used = 0;
  price_doubted(point, prediction);
  const Duration nominal = static_makespan(point, structure, costs);
  if (nominal == Duration{}) {
    return result;  // a file may hold no op
  }
  std::vector<DoubtOf> doubts;
  const auto add_doubt = [&](auto source) {
    doubts.emplace_back(std::move(source));
    ++doubted_.used;
  };
  price_raised(point, prediction, doubts);
  const int ranks = program.mesh.ranks();
  for (const auto& [shape, ops] : ops_by_shape(program, sizes, options.experts)) {
    doubted_.next() = costs;
    lengthen_ops(doubted_.next(), ops, residual_of(shape, point.machine, ranks));
    add_doubt(shape);
  }
  if (const ImplementedSites* sites = point.price.implementation) {
    for (const RaisedImplementation& raised : raised_by_error(*sites)) {
      options.implementation = &raised.sites;
      price(structure.priced(), sizes, point.machine, options, doubted_.times, doubted_.next());
      add_doubt(ImplementationDoubt{sites->name, raised.name});
    }
  }
  const std::vector<Duration> times =
      static_makespans(point, structure, costs, std::span(doubted_.varied).first(doubted_.used));
  for (std::size_t i = 0; i < doubts.size(); ++i) {
    if (times[i] != nominal && times[i] > Duration{}) {
      result.doubts.push_back({doubts[i], math::log(to_seconds(times[i]) / to_seconds(nominal))});
    }
  }
  if (const ImplementedSites* sites = point.price.implementation) {
    const bool is_elsewhere = options.experts.count > 0;  // costs are fitted to GEMMs without experts
    const double residual = std::max(sites->residual.value, is_elsewhere ? sites->elsewhere.value : 0.0);
    result.doubts.push_back({ImplementationDoubt{sites->name, {}}, math::log(1.0 + residual)});
    std::ranges::sort(result.doubts, std::less{}, &Doubt::of);
  }
  return result;
}

}  // namespace commfuse
