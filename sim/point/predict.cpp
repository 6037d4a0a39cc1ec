// SPDX-License-Identifier: Apache-2.0
#include "sim/point/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "model/check.h"
#include "model/config_error.h"
#include "model/cost/expert_gemm.h"
#include "model/cost/fold_wiring.h"
#include "model/text/counted.h"

namespace commfuse {

namespace {

constexpr std::size_t max_cut_bounds = 16'384;  // sweeps over link rates have different wires at each rate

/// Copies the timeline of the first ranks to all ranks that they represent.
Timeline on_all_ranks(Timeline timeline, Rank first_ranks, Rank ranks) {
  const std::size_t spans = timeline.size();
  timeline.reserve(spans * static_cast<std::size_t>(ranks / first_ranks));
  for (Rank first = first_ranks; first < ranks; first += first_ranks) {
    for (std::size_t i = 0; i < spans; ++i) {
      timeline.push_back(timeline[i]);
      timeline.back().rank += first;
    }
  }
  return timeline;
}

}  // namespace

void require_machine(const Point& point) {
  const int gpus = total_gpus(point.machine);
  if (point.ranks > gpus) {
    throw ConfigError(fmt::format("{} ranks do not fit {}, which has {}; choose ranks up to {}", point.ranks,
                                  point.machine.name, counted(gpus, "GPU"), gpus));
  }
  require_supported(point.machine.accelerator, point.dtype);
  if (point.needs_engine() && point.simulation.evaluator == Evaluator::replay) {
    throw ConfigError(
        fmt::format("replay cannot simulate {}: rates change at run time; choose --evaluator engine or auto",
                    point.faults ? "faults" : "interference dynamic"));
  }
  if (point.faults) {
    require_possible(*point.faults, point.ranks);
  }
}

void require_possible(const Point& point) {
  require_machine(point);
  require_divisible(point.scope, point.model, point.load(), point.ranks);
}

const std::vector<SiteKind>& Predictor::kinds(Scope scope) {
  std::vector<SiteKind>& entry = kinds_[scope];
  if (entry.empty()) {
    entry = kinds_of(scope);
  }
  return entry;
}

const Structure& Predictor::structure_at(const Point& point, const Strategy& strategy, const StrategyOptions& options) {
  const StructureKey key{point.scope, point.model.gated_mlp, point.ranks, &strategy, options};
  if (const Structure* const* known = recent_structures_.find(key)) {
    return **known;
  }
  if (const std::string refusal = refusal_of(strategy, kinds(point.scope), options, point.ranks); !refusal.empty()) {
    throw ConfigError(refusal);
  }
  const Structure& structure = structures_.get(key);
  recent_structures_.add(key, &structure);
  return structure;
}

Prediction Predictor::predict(const Point& point, const Strategy& strategy, const StrategyOptions& options) {
  const Structure& structure = structure_at(point, strategy, options);
  Sizes sizes = bind_sizes(structure.program(), quantities_of(point.model, point.load(), point.ranks));
  Prediction prediction = simulate(point, Schedule::generated, structure, std::move(sizes),
                                   flops_of(point.scope, point.model, point.load()));
  prediction.strategy = &strategy;
  prediction.options = options;
  return prediction;
}

std::string Predictor::refusal(const Point& point, const Strategy& strategy, const StrategyOptions& options) {
  if (std::string refusal = refusal_of(strategy, kinds(point.scope), options, point.ranks); !refusal.empty()) {
    return refusal;
  }
  const Structure& structure = structures_.get({point.scope, point.model.gated_mlp, point.ranks, &strategy, options});
  return refusal_of(structure.program(), quantities_of(point.model, point.load(), point.ranks));
}

Prediction Predictor::predict(const Point& point, const HandWritten& schedule) {
  Sizes sizes = sizes_at(schedule, point);
  const Flops flops = flops_of(schedule, point, sizes);
  return simulate(point, Schedule::from_file, schedule.structure, std::move(sizes), flops);
}

void Predictor::forget_schedules() {
  wirings_.clear();
  folded_wirings_.clear();
  cut_bounds_.clear();
  recent_cut_bounds_.forget();
}

Wiring Predictor::whole_wiring(const Point& point, const Program& program) {
  const std::shared_ptr<const Topology>& topology = point.machine.topology;
  if (topology == nullptr) {
    return wiring_of(program, point.machine);
  }
  if (!routes_ || &routes_->topology() != topology.get()) {
    routes_.emplace(topology);
  }
  return wiring_of(program, point.machine, *routes_);
}

std::shared_ptr<const Wiring> Predictor::wiring(const Point& point, const Structure& structure) {
  const OnWires key{&structure, point.machine.topology};
  auto entry = wirings_.find(key);
  if (entry != wirings_.end() && entry->second.digest != structure.digest) {
    forget_schedules();
    entry = wirings_.end();
  }
  if (entry == wirings_.end()) {
    auto wiring = std::make_shared<const Wiring>(narrowest_links(whole_wiring(point, structure.program())));
    entry = wirings_.emplace(key, Kept<std::shared_ptr<const Wiring>>{structure.digest, std::move(wiring)}).first;
  }
  return entry->second.value;
}

const CutBound& Predictor::cut_bound(const Point& point, const Structure& structure) {
  const std::pair place{&structure, static_cast<const Topology*>(point.machine.topology.get())};
  if (const Kept<CutBound>* const* recent = recent_cut_bounds_.find(place)) {
    if ((*recent)->digest == structure.digest) {
      return (*recent)->value;
    }
    forget_schedules();
  }
  const OnWires key{&structure, point.machine.topology};
  auto entry = cut_bounds_.find(key);
  if (entry != cut_bounds_.end() && entry->second.digest != structure.digest) {
    forget_schedules();
    entry = cut_bounds_.end();
  }
  if (entry == cut_bounds_.end()) {
    if (cut_bounds_.size() >= max_cut_bounds) {
      forget_schedules();
    }
    Kept<CutBound> kept{structure.digest, CutBound(structure.program(), point.machine)};
    entry = cut_bounds_.emplace(key, std::move(kept)).first;
  }
  recent_cut_bounds_.add(place, &entry->second);
  return entry->second.value;
}

void Predictor::hold_to_wires(const Point& point, const Structure& structure, const Sizes& sizes,
                              Prediction& prediction) {
  if (!std::isfinite(point.machine.link.capacity.value)) {
    return;
  }
  const Program& program = structure.program();
  const Cut cut = cut_bound(point, structure).at(program, sizes);
  require_above_cut(prediction.analysis.critical.makespan, cut);
  if (point.price.interference == Interference::dynamic) {  // prediction.link assumes undisturbed transfers
    prediction.link = std::max(prediction.link, least_time(cut));
  }
  require_above_cut(prediction.link, cut);
}

void Predictor::price_into(Priced& priced, const Point& point, const Structure& structure, const Sizes& sizes) {
  if (point.price.interference == Interference::dynamic) {
    priced.fluid = price_fluid(structure.program(), structure.meetings, sizes, point.machine, point.price,
                               wiring(point, structure));
    priced.costs = priced.fluid->costs;
    priced.options.fluid = &*priced.fluid;
  } else {
    kernels_.forget_all();
    price(structure.priced(), sizes, point.machine, point.price, kernels_, priced.costs);
  }
  priced.options.faults = point.faults.get();
}

std::size_t Predictor::number_of(std::size_t accelerator, PriceOptions options) {
  options.implementation = nullptr;  // changes prices of ops, but not the times of kernels from which they follow
  const std::pair wanted{accelerator, options};
  if (last_priced_as_ >= priced_as_.size() || priced_as_[last_priced_as_] != wanted) {
    last_priced_as_ = static_cast<std::size_t>(std::ranges::find(priced_as_, wanted) - priced_as_.begin());
    if (last_priced_as_ == priced_as_.size()) {
      priced_as_.push_back(wanted);
    }
  }
  return last_priced_as_;
}

std::optional<KernelInputs> Predictor::kernel_inputs(const Point& point, Schedule schedule, const Structure& structure,
                                                     const Sizes& sizes) {
  if (!accelerator_ || schedule != Schedule::generated || structure.prices.has_attention) {
    return std::nullopt;
  }
  const PriceOptions options = with_fixed_prices(point.price);
  const auto sms_beside = [&](const Meetings& meetings) {
    return sms_left(structure.program(), point.machine, meetings, options.interference);
  };
  return KernelInputs{.structure = &structure,
                      .priced_as = number_of(*accelerator_, options),
                      .sms_beside_exchanges = sms_beside({.exchange = true}),
                      .sms_beside_collectives = sms_beside({.collective = true}),
                      .sizes = &sizes};
}

void Predictor::price_recalled_into(Priced& priced, const Point& point, const KernelInputs& inputs) {
  const bool is_known = kernel_memory_.recall(inputs, std::span(&kernels_, 1));
  price(inputs.structure->priced(), *inputs.sizes, point.machine, point.price, kernels_, priced.costs);
  if (!is_known) {
    kernel_memory_.keep(inputs, std::span(&kernels_, 1));
  }
  priced.options.faults = point.faults.get();
}

void Predictor::fold(Priced& priced, const Point& point, const Structure& structure) {
  const Mesh& mesh = structure.program().mesh;
  const Rank ranks = distinct_ranks(structure.program(), structure.tape, priced.costs);
  if (!point.simulation.symmetry || point.faults != nullptr || ranks == mesh.ranks()) {
    return;
  }
  if (priced.fluid) {
    std::shared_ptr<const Wiring>& whole = priced.fluid->wiring;
    const auto [entry, is_new] = folded_wirings_.try_emplace({whole.get(), ranks});
    if (is_new) {
      std::optional<Wiring> wiring = folded_wiring(*whole, mesh, ranks);
      entry->second = wiring ? std::make_shared<const Wiring>(std::move(*wiring)) : nullptr;
    }
    if (entry->second == nullptr) {
      return;
    }
    whole = entry->second;
  }
  priced.options.first_ranks = ranks;
}

Prediction Predictor::simulate(const Point& point, Schedule schedule, const Structure& structure, Sizes sizes,
                               Flops flops) {
  const Program& program = structure.program();
  Priced& priced = simulated_;
  priced.fluid.reset();
  priced.options = {};
  const std::optional<KernelInputs> inputs = kernel_inputs(point, schedule, structure, sizes);
  if (inputs && point.price.interference != Interference::dynamic) {
    price_recalled_into(priced, point, *inputs);
  } else {
    price_into(priced, point, structure, sizes);
  }
  const Costs& costs = priced.costs;
  const Replay::Ranks ranks = point.simulation.symmetry ? Replay::Ranks::distinct : Replay::Ranks::all;
  Prediction prediction;
  prediction.evaluator = point.chosen_evaluator();
  const bool uses_replay = prediction.evaluator == Evaluator::replay;
  const Makespans bounds = replay_.run(program, structure.tape, costs, ranks, uses_replay ? &recorder_ : nullptr);
  if (!uses_replay) {
    fold(priced, point, structure);
    engine_.run(structure.plan, costs, recorder_, priced.options);
  }
  prediction.analysis = analyse(program, costs, recorder_);
  prediction.ideal = bounds.ideal;
  prediction.link = bounds.link;
  const Duration total = prediction.analysis.critical.makespan;
  check(total >= prediction.ideal && total >= prediction.link, "no run is faster than its bounds");
  hold_to_wires(point, structure, sizes, prediction);
  const FlopsPerSecond peak = point.machine.accelerator.dense_peak(point.dtype);
  const double possible = to_seconds(total) * point.ranks * peak.value;
  prediction.mfu = possible > 0.0 ? flops.count / possible : 0.0;  // a file may hold no op
  prediction.buffers = bytes_per_rank(program, sizes, point.price.experts);
  prediction.structure = &structure;
  prediction.sizes = std::move(sizes);
  return prediction;
}

Timeline Predictor::timeline(const Point& point, const Structure& structure, const Sizes& sizes) {
  Priced priced;
  price_into(priced, point, structure, sizes);
  fold(priced, point, structure);
  Recorder recorder(Recorder::Keep::timeline);
  engine_.run(structure.plan, priced.costs, recorder, priced.options);
  return on_all_ranks(recorder.timeline(), recorder.ranks(), structure.program().mesh.ranks());
}

void Predictor::add_tails(const Point& point, Prediction& prediction) {
  if (!point.monte_carlo.jitter) {
    return;
  }
  const Structure& structure = *prediction.structure;
  Priced priced;
  price_into(priced, point, structure, prediction.sizes);
  MonteCarloOptions options = point.monte_carlo;
  options.engine = prediction.evaluator == Evaluator::engine ? &priced.options : nullptr;
  prediction.tails = monte_carlo_.run({structure.plan, structure.tape, structure.draw_keys, priced.costs}, options);
}

Duration Predictor::slowed(const Point& point, const Strategy& strategy, const StrategyOptions& options,
                           const Slowdown& slowdown) {
  const Structure& structure = structures_.get({point.scope, point.model.gated_mlp, point.ranks, &strategy, options});
  const Sizes sizes = bind_sizes(structure.program(), quantities_of(point.model, point.load(), point.ranks));
  const Costs costs = static_costs(point, point.machine, structure, sizes);
  return static_makespan(point, structure, slowed_down(structure.program(), costs, slowdown));
}

std::vector<Duration> Predictor::makespans(const Point& point, const Prediction& prediction, double slowdown) {
  check(point.monte_carlo.jitter != nullptr, "sampling needs a point with a jitter");
  const Structure& structure = *prediction.structure;
  Priced priced;
  price_into(priced, point, structure, prediction.sizes);
  if (slowdown != 1.0) {
    priced.costs = with_slow_rank(structure.program(), std::move(priced.costs), 0, slowdown);
  }
  MonteCarloOptions options = point.monte_carlo;
  options.engine = prediction.evaluator == Evaluator::engine ? &priced.options : nullptr;
  return monte_carlo_.makespans({structure.plan, structure.tape, structure.draw_keys, priced.costs}, options);
}

SampledTimes Predictor::sampled(const Point& point, const Prediction& prediction, double slowdown) {
  std::vector<Duration> sorted = makespans(point, prediction, slowdown);
  const double samples = static_cast<double>(sorted.size());
  double sum = 0.0;
  for (const Duration makespan : sorted) {
    sum += to_seconds(makespan);
  }
  double squares = 0.0;
  for (const Duration makespan : sorted) {
    const double difference = to_seconds(makespan) - sum / samples;
    squares += difference * difference;
  }
  const auto p99 = sorted.begin() + static_cast<std::ptrdiff_t>(order_of(sorted.size(), 990) - 1);
  std::nth_element(sorted.begin(), p99, sorted.end());
  return {from_seconds(sum / samples), *p99, std::sqrt(squares / samples)};
}

Prediction Predictor::predict_best(const Point& point, const Strategy& strategy,
                                   const std::vector<StrategyOptions>& candidates) {
  std::optional<Prediction> best;
  std::string refusal;
  for (const StrategyOptions& options : candidates) {
    try {
      Prediction candidate = predict(point, strategy, options);
      if (!best || candidate.analysis.critical.makespan < best->analysis.critical.makespan) {
        best = std::move(candidate);
      }
    } catch (const ConfigError& error) {
      if (refusal.empty()) {
        refusal = error.what();
      }
    }
  }
  if (!best) {
    throw ConfigError(refusal);
  }
  return *std::move(best);
}

}  // namespace commfuse
