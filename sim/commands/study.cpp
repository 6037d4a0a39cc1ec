// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/study.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "model/analysis/error_tail.h"
#include "model/analysis/uncertainty.h"
#include "model/cost/expert_gemm.h"
#include "model/cost/gemm.h"
#include "model/cost/priced_shape.h"
#include "model/cost/shape_sizes.h"
#include "model/math/functions.h"
#include "reports/point_rows.h"
#include "reports/trace_label.h"
#include "sim/commands/traced.h"
#include "sim/why/why.h"

namespace commfuse::sim {

namespace {

std::string label_of(const ResultRow& row) { return reports::strategy_label(row.strategy, row.parameters); }

/// A row and a new prediction for it, at a point with the prices of the row's implementation.
struct Repeated {
  const ResultRow* row = nullptr;
  std::shared_ptr<const Point> point;
  Prediction prediction;
};

std::vector<Repeated> simulated_again(const Point& point, std::span<const ResultRow> rows,
                                      Implementations implementations, Predictor& predictor) {
  std::vector<Repeated> simulated;
  const auto ideal = std::make_shared<const Point>(point);
  for (const ResultRow& row : rows) {
    const Implementation* implementation = implementation_of(row, implementations);
    const Strategy* strategy = implementation != nullptr ? implementation->strategy
                               : row.implements.empty()  ? find_strategy(row.strategy)
                                                         : nullptr;
    if (!row.feasible() || strategy == nullptr) {
      continue;
    }
    const auto priced =
        implementation == nullptr ? ideal : std::make_shared<const Point>(priced_as(point, *implementation));
    Prediction prediction = predictor.predict(*priced, *strategy, row.options);
    if (prediction.structure->digest == row.schedule_sha256 &&
        prediction.analysis.critical.makespan == row.analysis.critical.makespan) {
      simulated.push_back({&row, priced, std::move(prediction)});
    }
  }
  return simulated;
}

Duration makespan_of(const Repeated& repeated) { return repeated.prediction.analysis.critical.makespan; }

/// Returns up to eight rows, as many as fit in a figure, in their order: serial and the fastest rows. If there are
/// implementations, only the fastest ideal schedule is shown.
std::vector<ResultRow> shown_rows(const std::vector<Repeated>& simulated) {
  const bool has_implementations =
      std::ranges::any_of(simulated, [](const Repeated& repeated) { return !repeated.row->implements.empty(); });
  std::vector<const Repeated*> order;
  for (const Repeated& repeated : simulated) {
    order.push_back(&repeated);
  }
  std::ranges::stable_sort(order, {}, [](const Repeated* repeated) { return makespan_of(*repeated); });
  const auto is_ideal = [](const Repeated* repeated) {
    return repeated->row->bound && repeated->row->implements.empty();
  };
  const auto fastest_ideal = std::ranges::find_if(order, is_ideal);
  std::vector<const Repeated*> kept;
  std::size_t free_slots = 8;
  const auto keep = [&](const Repeated* repeated) {
    if (free_slots > 0 && std::ranges::find(kept, repeated) == kept.end()) {
      kept.push_back(repeated);
      --free_slots;
    }
  };
  const auto serial =
      std::ranges::find_if(order, [](const Repeated* repeated) { return repeated->row->strategy == "serial"; });
  if (serial != order.end()) {
    keep(*serial);
  }
  if (has_implementations && fastest_ideal != order.end()) {
    keep(*fastest_ideal);
  }
  for (const Repeated* repeated : order) {
    if (!has_implementations || !is_ideal(repeated)) {
      keep(repeated);
    }
  }
  std::vector<ResultRow> rows;
  for (const Repeated& repeated : simulated) {
    if (std::ranges::find(kept, &repeated) != kept.end()) {
      rows.push_back(*repeated.row);
    }
  }
  return rows;
}

/// Returns the schedules that can win, fastest first.
std::vector<const Repeated*> ranking_of(const std::vector<Repeated>& predictions, std::span<const ResultRow> rows) {
  std::vector<const Repeated*> ranking;
  for (const Repeated& prediction : predictions) {
    if (reports::can_win(*prediction.row, rows)) {
      ranking.push_back(&prediction);
    }
  }
  std::stable_sort(ranking.begin(), ranking.end(), [](const Repeated* a, const Repeated* b) {
    return a->prediction.analysis.critical.makespan < b->prediction.analysis.critical.makespan;
  });
  return ranking;
}

/// Returns the saving of the fastest schedule over serial or, if serial is missing or itself the fastest, over the
/// second fastest schedule. Errors that affect both times equally cancel; see model/analysis/uncertainty.h.
std::optional<reports::SavingInterval> saving_of(const Point& point, const std::vector<const Repeated*>& ranking,
                                                 Predictor& predictor) {
  if (ranking.size() < 2 || point.raised == nullptr) {
    return std::nullopt;
  }
  const auto is_serial = [](const Repeated* repeated) { return repeated->row->strategy == "serial"; };
  const auto serial = std::ranges::find_if(ranking, is_serial);
  const bool has_both = serial != ranking.end() && serial != ranking.begin();
  const Repeated& best = *ranking[0];
  const Repeated& next = has_both ? **serial : *ranking[1];
  const double error = ratio_error(predictor.uncertainty(*best.point, best.prediction),
                                   predictor.uncertainty(*next.point, next.prediction));
  const double ratio = math::log(to_seconds(best.prediction.analysis.critical.makespan) /
                                 to_seconds(next.prediction.analysis.critical.makespan));
  const double reach = errors_with_share_below(0.95) * error;  // A 90% interval, as in `run`.
  return reports::SavingInterval{.winner = label_of(*best.row),
                                 .next = label_of(*next.row),
                                 .saved = 1.0 - math::exp(ratio),
                                 .low = 1.0 - math::exp(ratio + reach),
                                 .high = 1.0 - math::exp(ratio - reach)};
}

std::vector<reports::SampledRun> samples_of(const Point& point, const std::vector<const Repeated*>& ranking,
                                            Predictor& predictor) {
  std::vector<reports::SampledRun> runs;
  if (!point.monte_carlo.jitter) {
    return runs;
  }
  for (const Repeated* repeated : ranking) {
    reports::SampledRun run{label_of(*repeated->row), predictor.makespans(*repeated->point, repeated->prediction)};
    std::sort(run.sorted.begin(), run.sorted.end());
    runs.push_back(std::move(run));
  }
  return runs;
}

/// Adds the GEMMs of a schedule by shape and price. The price is part of the key, because a GEMM that runs during
/// communication may take longer than another GEMM of the same shape.
void add_gemms(const Point& point, const Repeated& repeated, reports::Roofline& roofline) {
  const Program& program = repeated.prediction.structure->program();
  const Sizes& sizes = repeated.prediction.sizes;
  const Rank rank = repeated.prediction.analysis.critical_rank;
  const Coordinates coordinates = program.mesh.coordinates(rank);
  const Costs costs = static_costs(point, point.machine, *repeated.prediction.structure, sizes);
  std::map<std::pair<PricedShape, Duration>, reports::RoofedGemm> gemms;
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const Shape& shape = program.shapes[program.ops[op].shape];
    const auto* gemm = std::get_if<GemmShape>(&shape);
    if (gemm == nullptr || !program.ops[op].where.holds(coordinates) || costs.of(rank, op) == Duration{}) {
      continue;
    }
    const PricedShape priced = priced_shape(program, shape, sizes, point.price.experts);
    const GemmSize size = grouped(point.price.experts, gemm_size(*gemm, sizes));
    auto& roofed =
        gemms
            .try_emplace({priced, costs.of(rank, op)}, reports::RoofedGemm{.schedule = label_of(*repeated.row),
                                                                           .shape = in_words(priced),
                                                                           .work = flops_of(size),
                                                                           .traffic = compulsory_traffic(size),
                                                                           .time = costs.of(rank, op)})
            .first->second;
    ++roofed.count;
  }
  for (auto& [key, roofed] : gemms) {
    roofline.gemms.push_back(std::move(roofed));
  }
}

reports::Roofline roofline_of(const Point& point, const std::vector<const Repeated*>& ranking) {
  const Accelerator& accelerator = point.machine.accelerator;
  reports::Roofline roofline{.accelerator = point.machine.name,
                             .dtype = std::string{name_of(point.dtype)},
                             .peak = accelerator.dense_peak(point.dtype),
                             .memory = accelerator.hbm_bandwidth.value};
  for (const Repeated* repeated : ranking) {
    if (repeated->row->implements.empty()) {
      add_gemms(point, *repeated, roofline);
    }
  }
  return roofline;
}

}  // namespace

reports::PointStudy study_of(const Point& point, std::span<const ResultRow> rows, Implementations implementations) {
  StructureCache structures;
  Predictor predictor(structures);
  const std::vector<Repeated> simulated = simulated_again(point, rows, implementations, predictor);
  const std::vector<const Repeated*> ranking = ranking_of(simulated, rows);
  reports::PointStudy study{
      .runs = traced(point, shown_rows(simulated), {.implementations = implementations}, {structures, predictor})};
  if (ranking.empty()) {
    return study;
  }
  study.explanation = explain(*ranking.front()->point, ranking.front()->prediction, predictor);
  study.explanation->row = *ranking.front()->row;
  study.samples = samples_of(point, ranking, predictor);
  study.saving = saving_of(point, ranking, predictor);
  study.roofline = roofline_of(point, ranking);
  return study;
}

}  // namespace commfuse::sim
