// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/study.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

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

/// A row of a generated schedule and its prediction made again.
struct Again {
  const ResultRow* row = nullptr;
  Prediction prediction;
};

std::vector<Again> played_again(const Point& point, std::span<const ResultRow> rows, Predictor& predictor) {
  std::vector<Again> all;
  for (const ResultRow& row : rows) {
    const Strategy* strategy = find_strategy(row.strategy);
    if (!row.feasible() || strategy == nullptr) {
      continue;
    }
    Prediction prediction = predictor.predict(point, *strategy, row.options);
    if (prediction.structure->digest == row.schedule_sha256 &&
        prediction.analysis.critical.makespan == row.analysis.critical.makespan) {
      all.push_back({&row, std::move(prediction)});
    }
  }
  return all;
}

/// Those that can win, fastest first.
std::vector<const Again*> ranking_of(const std::vector<Again>& all, std::span<const ResultRow> rows) {
  std::vector<const Again*> ranking;
  for (const Again& one : all) {
    if (reports::can_win(*one.row, rows)) {
      ranking.push_back(&one);
    }
  }
  std::stable_sort(ranking.begin(), ranking.end(), [](const Again* a, const Again* b) {
    return a->prediction.analysis.critical.makespan < b->prediction.analysis.critical.makespan;
  });
  return ranking;
}

/// Errors that both times hang on alike cancel; see model/analysis/uncertainty.h.
std::optional<reports::SavingInterval> saving_of(const Point& point, const std::vector<const Again*>& ranking,
                                                 Predictor& predictor) {
  if (ranking.size() < 2 || point.raised == nullptr) {
    return std::nullopt;
  }
  const Again& best = *ranking[0];
  const Again& next = *ranking[1];
  const double error =
      ratio_error(predictor.uncertainty(point, best.prediction), predictor.uncertainty(point, next.prediction));
  const double ratio = math::log(to_seconds(best.prediction.analysis.critical.makespan) /
                                 to_seconds(next.prediction.analysis.critical.makespan));
  constexpr double two_sided_95 = 1.959963984540054;
  return reports::SavingInterval{.winner = label_of(*best.row),
                                 .next = label_of(*next.row),
                                 .saved = 1.0 - math::exp(ratio),
                                 .low = 1.0 - math::exp(ratio + two_sided_95 * error),
                                 .high = 1.0 - math::exp(ratio - two_sided_95 * error)};
}

std::vector<reports::SampledRun> samples_of(const Point& point, const std::vector<const Again*>& ranking,
                                            Predictor& predictor) {
  std::vector<reports::SampledRun> runs;
  if (!point.monte_carlo.jitter) {
    return runs;
  }
  for (const Again* one : ranking) {
    reports::SampledRun run{label_of(*one->row), predictor.makespans(point, one->prediction)};
    std::sort(run.sorted.begin(), run.sorted.end());
    runs.push_back(std::move(run));
  }
  return runs;
}

/// Products of a schedule by shape and price: one beside communication may take longer than its like.
void add_products(const Point& point, const Again& one, reports::Roofline& roofline) {
  const Program& program = one.prediction.structure->program();
  const Sizes& sizes = one.prediction.sizes;
  const Rank rank = one.prediction.analysis.critical_rank;
  const Coordinates here = program.mesh.coordinates(rank);
  const Costs costs = static_costs(point, point.machine, *one.prediction.structure, sizes);
  std::map<std::pair<PricedShape, Duration>, reports::RoofedProduct> products;
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const Shape& shape = program.shapes[program.ops[op].shape];
    const auto* gemm = std::get_if<GemmShape>(&shape);
    if (gemm == nullptr || !program.ops[op].where.holds(here) || costs.of(rank, op) == Duration{}) {
      continue;
    }
    const PricedShape priced = priced_shape(program, shape, sizes);
    const GemmSize size = gemm_size(*gemm, sizes);
    const auto work = 2.0 * static_cast<double>(size.m) * static_cast<double>(size.n) * static_cast<double>(size.k);
    auto& product =
        products
            .try_emplace({priced, costs.of(rank, op)}, reports::RoofedProduct{.schedule = label_of(*one.row),
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
  for (const Again* one : ranking) {
    add_products(point, *one, roofline);
  }
  return roofline;
}

}  // namespace

reports::PointStudy study_of(const Point& point, std::span<const ResultRow> rows) {
  StructureCache structures;
  Predictor predictor(structures);
  const std::vector<Again> all = played_again(point, rows, predictor);
  const std::vector<const Again*> ranking = ranking_of(all, rows);
  std::vector<ResultRow> known;
  for (const Again& one : all) {
    known.push_back(*one.row);
  }
  reports::PointStudy study{.runs = traced(point, known)};
  if (ranking.empty()) {
    return study;
  }
  study.explanation = explain(point, ranking.front()->prediction, predictor);
  study.explanation->row = *ranking.front()->row;
  study.samples = samples_of(point, ranking, predictor);
  study.saving = saving_of(point, ranking, predictor);
  study.roofline = roofline_of(point, ranking);
  return study;
}

}  // namespace commfuse::sim
