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

/// A row with its repeated prediction, at the point with the prices of the row's implementation.
struct Again {
  const ResultRow* row = nullptr;
  std::shared_ptr<const Point> point;
  Prediction prediction;
};

std::vector<Again> simulated_again(const Point& point, std::span<const ResultRow> rows, Implementations implementations,
                                   Predictor& predictor) {
  std::vector<Again> simulated;
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

Duration makespan_of(const Again& again) { return again.prediction.analysis.critical.makespan; }

/// Returns as many rows as a figure has room for, in their order: serial and the fastest rows. Together with
/// implementations, only the fastest ideal schedule is shown.
std::vector<ResultRow> shown_rows(const std::vector<Again>& simulated) {
  const bool has_implementations =
      std::ranges::any_of(simulated, [](const Again& again) { return !again.row->implements.empty(); });
  std::vector<const Again*> order;
  for (const Again& again : simulated) {
    order.push_back(&again);
  }
  std::ranges::stable_sort(order, {}, [](const Again* again) { return makespan_of(*again); });
  const auto is_ideal = [](const Again* again) { return again->row->bound && again->row->implements.empty(); };
  const auto fastest_ideal = std::ranges::find_if(order, is_ideal);
  std::vector<const Again*> kept;
  std::size_t room = 8;
  const auto keep = [&](const Again* again) {
    if (room > 0 && std::ranges::find(kept, again) == kept.end()) {
      kept.push_back(again);
      --room;
    }
  };
  const auto serial = std::ranges::find_if(order, [](const Again* again) { return again->row->strategy == "serial"; });
  if (serial != order.end()) {
    keep(*serial);
  }
  if (has_implementations && fastest_ideal != order.end()) {
    keep(*fastest_ideal);
  }
  for (const Again* again : order) {
    if (!has_implementations || !is_ideal(again)) {
      keep(again);
    }
  }
  std::vector<ResultRow> rows;
  for (const Again& again : simulated) {
    if (std::ranges::find(kept, &again) != kept.end()) {
      rows.push_back(*again.row);
    }
  }
  return rows;
}

/// Returns the schedules that can win, fastest first.
std::vector<const Again*> ranking_of(const std::vector<Again>& predictions, std::span<const ResultRow> rows) {
  std::vector<const Again*> ranking;
  for (const Again& prediction : predictions) {
    if (reports::can_win(*prediction.row, rows)) {
      ranking.push_back(&prediction);
    }
  }
  std::stable_sort(ranking.begin(), ranking.end(), [](const Again* a, const Again* b) {
    return a->prediction.analysis.critical.makespan < b->prediction.analysis.critical.makespan;
  });
  return ranking;
}

/// Returns the saving of the fastest schedule over serial or, if serial is missing or itself the fastest, over the
/// second fastest schedule. Errors that affect both times alike cancel; see model/analysis/uncertainty.h.
std::optional<reports::SavingInterval> saving_of(const Point& point, const std::vector<const Again*>& ranking,
                                                 Predictor& predictor) {
  if (ranking.size() < 2 || point.raised == nullptr) {
    return std::nullopt;
  }
  const auto is_serial = [](const Again* again) { return again->row->strategy == "serial"; };
  const auto serial = std::ranges::find_if(ranking, is_serial);
  const bool has_both = serial != ranking.end() && serial != ranking.begin();
  const Again& best = *ranking[0];
  const Again& next = has_both ? **serial : *ranking[1];
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

std::vector<reports::SampledRun> samples_of(const Point& point, const std::vector<const Again*>& ranking,
                                            Predictor& predictor) {
  std::vector<reports::SampledRun> runs;
  if (!point.monte_carlo.jitter) {
    return runs;
  }
  for (const Again* again : ranking) {
    reports::SampledRun run{label_of(*again->row), predictor.makespans(*again->point, again->prediction)};
    std::sort(run.sorted.begin(), run.sorted.end());
    runs.push_back(std::move(run));
  }
  return runs;
}

/// Adds the GEMMs of a schedule by shape and price. The price is part of the key, because a GEMM beside communication
/// may take longer than another GEMM of the same shape.
void add_products(const Point& point, const Again& again, reports::Roofline& roofline) {
  const Program& program = again.prediction.structure->program();
  const Sizes& sizes = again.prediction.sizes;
  const Rank rank = again.prediction.analysis.critical_rank;
  const Coordinates coordinates = program.mesh.coordinates(rank);
  const Costs costs = static_costs(point, point.machine, *again.prediction.structure, sizes);
  std::map<std::pair<PricedShape, Duration>, reports::RoofedProduct> products;
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const Shape& shape = program.shapes[program.ops[op].shape];
    const auto* gemm = std::get_if<GemmShape>(&shape);
    if (gemm == nullptr || !program.ops[op].where.holds(coordinates) || costs.of(rank, op) == Duration{}) {
      continue;
    }
    const PricedShape priced = priced_shape(program, shape, sizes);
    const GemmSize size = gemm_size(*gemm, sizes);
    const auto work = 2.0 * static_cast<double>(size.m) * static_cast<double>(size.n) * static_cast<double>(size.k);
    auto& product =
        products
            .try_emplace({priced, costs.of(rank, op)}, reports::RoofedProduct{.schedule = label_of(*again.row),
                                                                              .shape = in_words(priced),
                                                                              .work = {work},
                                                                              .traffic = compulsory_traffic(size),
                                                                              .time = costs.of(rank, op)})
            .first->second;
    ++product.count;
  }
  for (auto& [key, product] : products) {
    roofline.products.push_back(std::move(product));
  }
}

reports::Roofline roofline_of(const Point& point, const std::vector<const Again*>& ranking) {
  const Accelerator& accelerator = point.machine.accelerator;
  reports::Roofline roofline{.accelerator = point.machine.name,
                             .dtype = std::string{name_of(point.dtype)},
                             .peak = accelerator.dense_peak(point.dtype),
                             .memory = accelerator.hbm_bandwidth.value};
  for (const Again* again : ranking) {
    if (again->row->implements.empty()) {
      add_products(point, *again, roofline);
    }
  }
  return roofline;
}

}  // namespace

reports::PointStudy study_of(const Point& point, std::span<const ResultRow> rows, Implementations implementations) {
  StructureCache structures;
  Predictor predictor(structures);
  const std::vector<Again> simulated = simulated_again(point, rows, implementations, predictor);
  const std::vector<const Again*> ranking = ranking_of(simulated, rows);
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
