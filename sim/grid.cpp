// SPDX-License-Identifier: Apache-2.0
#include "sim/grid.h"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>

#include <iterator>

#include "model/schedule/text.h"

namespace commfuse {

namespace {

std::string provenance_in_words(const Program& program, const Point& point) {
  const auto kinds = leans_on(program, point.machine, point.price);
  std::string text;
  for (const Provenance kind : all_provenances) {
    if (kinds[static_cast<std::size_t>(kind)]) {
      text += (text.empty() ? "" : "+") + std::string{name_of(kind)};
    }
  }
  return text;
}

std::vector<ResultRow> rows_of(const Point& point, const std::vector<Candidates>& candidates, Predictor& predictor) {
  std::vector<ResultRow> rows;
  for (const Candidates& candidate : candidates) {
    rows.push_back(row_of(point, predictor.predict_best(point, *candidate.strategy, candidate.options)));
  }
  return rows;
}

}  // namespace

std::vector<ResultRow> run_points(const std::vector<Point>& points, const StrategyRequest& strategies, int threads) {
  const std::size_t most = threads > 0
                               ? static_cast<std::size_t>(threads)
                               : tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, most);
  StructureCache structures;
  tbb::enumerable_thread_specific<Predictor> predictors([&] { return Predictor(structures); });
  std::vector<std::vector<ResultRow>> by_point(points.size());
  tbb::parallel_for(std::size_t{0}, points.size(), [&](std::size_t i) {
    by_point[i] = rows_of(points[i], candidates_of(strategies, points[i].dtype), predictors.local());
  });
  std::vector<ResultRow> rows;
  for (std::vector<ResultRow>& some : by_point) {
    rows.insert(rows.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  }
  return rows;
}

ResultRow row_of(const Point& point, const Prediction& prediction) {
  ResultRow row;
  row.model = point.model.name;
  row.hardware = point.machine.name;
  row.scope = name_of(point.scope);
  row.ranks = point.ranks;
  row.batch = point.batch;
  row.seq = point.seq;
  row.dtype = name_of(point.dtype);
  row.strategy = prediction.strategy->name;
  row.parameters = prediction.strategy->describe(prediction.options);
  if (prediction.strategy->uses_slices) {
    row.slices = prediction.options.slices;
  }
  if (prediction.strategy->uses_form) {
    row.form = name_of(prediction.options.form);
    if (prediction.options.form == Form::ring) {
      row.add_lane = name_of(prediction.options.add_lane);
    }
  }
  row.schedule_sha256 = prediction.structure->digest;
  row.analysis = prediction.analysis;
  row.ideal = prediction.ideal;
  row.link = prediction.link;
  row.mfu = prediction.mfu;
  row.buffers = prediction.buffers;
  row.evaluator = "engine";
  row.interference = point.price.interference == Interference::none ? "none" : "static";
  row.launch = point.price.launch == Launch::stream ? "stream" : "graph";
  row.leans_on = provenance_in_words(prediction.structure->program(), point);
  return row;
}

}  // namespace commfuse
