// SPDX-License-Identifier: Apache-2.0
#include "sim/grid.h"

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>

#include <algorithm>

#include "model/config/choices.h"
#include "model/config_error.h"
#include "model/cost/priced_shape.h"
#include "model/schedule/text.h"

namespace commfuse {

namespace {

constexpr std::size_t most_points = 1'000'000;

std::string provenance_in_words(const Program& program, const Point& point) {
  auto kinds = leans_on(program, point.machine, point.price);
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    kinds[kind] = kinds[kind] || point.jitter_leans_on[kind];
  }
  std::string text;
  for (const Provenance kind : all_provenances) {
    if (kinds[static_cast<std::size_t>(kind)]) {
      text += (text.empty() ? "" : "+") + std::string{name_of(kind)};
    }
  }
  return text;
}

/// What was asked.
ResultRow row_of(const Point& point) {
  ResultRow row;
  row.model = point.model.name;
  row.hardware = point.machine.name;
  row.link_bandwidth = point.link_bandwidth;
  row.network_bandwidth = point.network_bandwidth;
  row.link_rate = point.machine.link.nominal_rate.value.value;
  if (point.machine.network) {
    row.network_rate = point.machine.network->nominal_rate.value.value;
  }
  row.scope = name_of(point.scope);
  row.ranks = point.ranks;
  row.batch = point.batch;
  row.seq = point.seq;
  row.dtype = name_of(point.dtype);
  row.interference = word_of(interference_choices, point.price.interference);
  row.faults = point.fault_file;
  row.jitter = point.jitter;
  row.seed = point.monte_carlo.seed;
  row.launch = word_of(launch_choices, point.price.launch);
  row.attention_kernel = word_of(attention_choices, point.price.attention);
  return row;
}

void put_schedule(ResultRow& row, Scope scope, const Strategy& strategy, const StrategyOptions& options) {
  row.strategy = strategy.name;
  row.parameters = parameters_of(strategy, kinds_of(scope), options);
  row.bound = strategy.bound;
  row.options = options;
  row.relevant = relevant_options(strategy, kinds_of(scope), options);
}

ResultRow row_of(const Point& point, const Prediction& prediction) {
  ResultRow row = row_of(point);
  row.schedule_sha256 = prediction.structure->digest;
  row.analysis = prediction.analysis;
  row.ideal = prediction.ideal;
  row.link = prediction.link;
  row.mfu = prediction.mfu;
  row.buffers = prediction.buffers;
  row.tails = prediction.tails;
  row.evaluator = word_of(evaluator_choices, prediction.evaluator);
  row.leans_on = provenance_in_words(prediction.structure->program(), point);
  return row;
}

ResultRow infeasible_row(const Point& point, const Candidates& candidate, const std::string& reason) {
  ResultRow row = row_of(point);
  row.strategy = candidate.strategy->name;
  if (candidate.options.size() == 1) {
    put_schedule(row, point.scope, *candidate.strategy, candidate.options.front());
  }
  row.reason = reason;
  return row;
}

/// A row, and what its time hangs on; nothing where nobody asks.
struct PlayedRow {
  ResultRow row;
  Uncertainty uncertainty{};
};

/// All that a prediction says of itself.
PlayedRow played_row(const Point& point, Prediction& prediction, Predictor& predictor) {
  predictor.add_tails(point, prediction);
  PlayedRow played{row_of(point, prediction)};
  if (point.raised != nullptr) {
    const Program& program = prediction.structure->program();
    played.uncertainty = predictor.uncertainty(point, prediction);
    played.row.makespan_error = error_of(played.uncertainty);
    played.row.warnings = fmt::format("{}", fmt::join(outside_fit(program, prediction.sizes, point.machine), "; "));
  }
  return played;
}

PlayedRow run_candidate(const Point& point, const Candidates& candidate, Predictor& predictor) {
  try {
    require_runnable(point);
    Prediction best = predictor.predict_best(point, *candidate.strategy, candidate.options);
    PlayedRow played = played_row(point, best, predictor);
    put_schedule(played.row, point.scope, *best.strategy, best.options);
    return played;
  } catch (const ConfigError& error) {
    return {infeasible_row(point, candidate, error.what())};
  }
}

PlayedRow run_file(const Point& point, const HandWritten& schedule, Predictor& predictor) {
  PlayedRow played{row_of(point)};
  try {
    require_playable(point);
    Prediction prediction = predictor.predict(point, schedule);
    played = played_row(point, prediction, predictor);
  } catch (const ConfigError& error) {
    played.row.reason = error.what();
  }
  ResultRow& row = played.row;
  row.scope = schedule.scope ? name_of(*schedule.scope) : own_work;
  row.strategy = schedule.program().name;
  row.parameters = schedule.file;
  return played;
}

/// A schedule that can be had: one of those among which one wins.
bool competes(const ResultRow& row) {
  return row.feasible() && !row.bound && row.analysis.critical.makespan > Duration{};
}

/// Of each that competes against the fastest of the others, as predicted.
void add_win_probabilities(std::vector<PlayedRow>& played) {
  const auto makespan = [](const PlayedRow& one) { return one.row.analysis.critical.makespan; };
  for (PlayedRow& one : played) {
    const PlayedRow* other = nullptr;
    for (const PlayedRow& rival : played) {
      if (&rival != &one && competes(rival.row) && (other == nullptr || makespan(rival) < makespan(*other))) {
        other = &rival;
      }
    }
    if (other != nullptr && competes(one.row) && one.row.makespan_error) {
      one.row.win_probability =
          probability_shorter(makespan(one), one.uncertainty, makespan(*other), other->uncertainty);
    }
  }
}

bool runs_generated(const Settings& settings, const Library& library) {
  return library.schedules().empty() || names_strategies(settings);
}

std::vector<PlayedRow> run_generated(const Settings& settings, const Point& point, Predictor& predictor) {
  std::vector<PlayedRow> rows;
  try {
    for (const Candidates& candidate : candidates_of(settings)) {
      rows.push_back(run_candidate(point, candidate, predictor));
    }
  } catch (const ConfigError& error) {  // No schedule at all: the settings clash.
    rows.push_back({row_of(point)});
    rows.back().row.strategy = settings.text("strategy.name");
    rows.back().row.reason = error.what();
  }
  return rows;
}

/// The generated schedules, then those of files that belong to the point.
std::vector<ResultRow> run_point(const Settings& settings, const Library& library, Predictor& predictor) {
  const Point point = point_of(settings, library);
  std::vector<PlayedRow> played;
  if (runs_generated(settings, library)) {
    played = run_generated(settings, point, predictor);
  }
  for (const HandWritten& schedule : library.schedules()) {
    if (belongs(schedule, point)) {
      played.push_back(run_file(point, schedule, predictor));
    }
  }
  add_win_probabilities(played);
  std::vector<ResultRow> rows;
  rows.reserve(played.size());
  for (PlayedRow& one : played) {
    rows.push_back(std::move(one.row));
  }
  return rows;
}

std::size_t product_of(const std::vector<GridAxis>& axes) {
  std::size_t points = 1;
  for (const GridAxis& axis : axes) {
    points *= axis.steps.size();
    if (points > most_points) {
      throw ConfigError(fmt::format("{}: with this axis there are more than {} points; take fewer values",
                                    axis.origin.where, most_points));
    }
  }
  return points;
}

/// The point at a place in the nested loop.
Settings settings_at(const Grid& grid, std::size_t place) {
  Settings settings = grid.settings;
  for (std::size_t a = grid.axes.size(); a-- > 0;) {
    const GridAxis& axis = grid.axes[a];
    const std::vector<Setting>& step = axis.steps[place % axis.steps.size()];
    place /= axis.steps.size();
    for (std::size_t f = 0; f < axis.fields.size(); ++f) {
      settings.put(*axis.fields[f], step[f]);
    }
  }
  return settings;
}

bool meets_all(const Settings& settings, const std::vector<GridConstraint>& constraints) {
  return std::all_of(constraints.begin(), constraints.end(), [&](const GridConstraint& one) {
    try {
      return one.constraint.holds(settings);
    } catch (const ConstraintError& error) {
      throw ConfigError(fmt::format("{}: {}", one.place(error.column()), error.what()));
    }
  });
}

/// What a setting takes in the grid, each value once.
std::vector<std::string> values_of(const Grid& grid, std::string_view key) {
  const Field* field = find_field(key);
  std::vector<std::string> values;
  for (const GridAxis& axis : grid.axes) {
    for (std::size_t f = 0; f < axis.fields.size(); ++f) {
      for (const std::vector<Setting>& step : axis.steps) {
        if (axis.fields[f] == field && std::find(values.begin(), values.end(), step[f].text) == values.end()) {
          values.push_back(step[f].text);
        }
      }
    }
  }
  return values.empty() ? std::vector{grid.settings.text(key)} : values;
}

/// Of the axis that varies a setting, or else of the setting.
Origin origin_in(const Grid& grid, const Field& field) {
  for (const GridAxis& axis : grid.axes) {
    if (std::find(axis.fields.begin(), axis.fields.end(), &field) != axis.fields.end()) {
      return axis.origin;
    }
  }
  return grid.settings.at(field).origin;
}

/// Each hardware with all the links that are wanted of it.
void load_machines(const Grid& grid, Library& library, std::vector<std::string>& mistakes) {
  Settings settings = grid.settings;
  const auto put = [&](std::string_view key, const std::string& text) {
    const Field& field = *find_field(key);
    settings.put(field, {text, origin_in(grid, field)});
  };
  for (const std::string& hardware : values_of(grid, "hardware")) {
    put("hardware", hardware);
    try {
      for (const std::string& link : values_of(grid, "link_bandwidth")) {
        put("link_bandwidth", link);
        for (const std::string& network : values_of(grid, "network_bandwidth")) {
          put("network_bandwidth", network);
          library.load_machine(settings);
        }
      }
    } catch (const ConfigError& error) {
      mistakes.emplace_back(error.what());
    }
  }
}

bool all_feasible(const std::vector<ResultRow>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const ResultRow& row) { return row.feasible(); });
}

}  // namespace

Library library_of(const Grid& grid) {
  Library library;
  std::vector<std::string> mistakes;
  const auto load_all = [&](std::string_view key, void (Library::*load)(const std::string&)) {
    for (const std::string& name : values_of(grid, key)) {
      try {
        (library.*load)(name);
      } catch (const ConfigError& error) {
        mistakes.emplace_back(error.what());
      }
    }
  };
  load_all("model", &Library::load_model);
  load_machines(grid, library, mistakes);
  load_all("jitter", &Library::load_jitter);
  load_all("faults", &Library::load_faults);
  if (!mistakes.empty()) {
    throw ConfigError(fmt::format("{}", fmt::join(mistakes, "\n")));
  }
  return library;
}

std::vector<Settings> points_of(const Grid& grid) {
  std::vector<Settings> points;
  const std::size_t product = product_of(grid.axes);
  for (std::size_t place = 0; place < product; ++place) {
    Settings settings = settings_at(grid, place);
    if (meets_all(settings, grid.constraints)) {
      points.push_back(std::move(settings));
    }
  }
  return points;
}

void require_all_runnable(const std::vector<Settings>& points, const Library& library) {
  for (const Settings& settings : points) {
    if (runs_generated(settings, library)) {
      candidates_of(settings);
      require_runnable(point_of(settings, library));
    }
  }
}

std::vector<std::vector<ResultRow>> run_points(const std::vector<Settings>& points, const Library& library,
                                               const GridOptions& options) {
  const std::size_t most = options.threads > 0
                               ? static_cast<std::size_t>(options.threads)
                               : tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, most);
  StructureCache structures;
  tbb::enumerable_thread_specific<Predictor> predictors([&] { return Predictor(structures); });
  std::vector<std::vector<ResultRow>> by_point(points.size());
  tbb::parallel_for(std::size_t{0}, points.size(), [&](std::size_t i) {
    if (options.stop != nullptr && options.stop->load()) {
      return;
    }
    by_point[i] = run_point(points[i], library, predictors.local());
    if (options.finished) {
      options.finished(all_feasible(by_point[i]));
    }
  });
  if (options.stop != nullptr && options.stop->load()) {
    throw Interrupted{};
  }
  return by_point;
}

}  // namespace commfuse
