// SPDX-License-Identifier: Apache-2.0
#include "sim/point/point_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <span>
#include <utility>

#include "model/analysis/memory.h"
#include "model/config/choices.h"
#include "model/config_error.h"
#include "model/cost/priced_shape.h"
#include "model/program/names.h"

namespace commfuse {

namespace {

/// Settings that a Point takes as they are, without loading or computing anything.
constexpr std::array<std::string_view, 3> plain_keys{"ranks", "batch", "seq"};

bool is_plain(const Field& field) {
  return std::find(plain_keys.begin(), plain_keys.end(), field.key) != plain_keys.end();
}

bool is_of_strategies(const Field& field) { return field.key.starts_with("strategy."); }

std::string provenance_in_words(const Program& program, const Point& point) {
  auto kinds = provenances_of(program, point.machine, point.price);
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    kinds[kind] = kinds[kind] || point.jitter_provenances[kind];
  }
  std::string text;
  for (const Provenance kind : all_provenances) {
    if (kinds[static_cast<std::size_t>(kind)]) {
      text += (text.empty() ? "" : "+") + std::string{name_of(kind)};
    }
  }
  return text;
}

/// Returns a row with the settings of the point.
ResultRow row_of(const Point& point) {
  ResultRow row;
  row.model = point.model.name;
  row.hardware = point.machine.name;
  row.link_bandwidth = point.link_bandwidth;
  row.network_bandwidth = point.network_bandwidth;
  row.all_reduce_kernel = name_of(point.machine.link.collective.all_reduce_kernel);
  row.link_rate = point.machine.link.nominal_rate.value.value;
  if (point.machine.network) {
    row.network_rate = point.machine.network->nominal_rate.value.value;
  }
  row.scope = name_of(point.scope);
  row.ranks = point.ranks;
  row.batch = point.batch;
  row.seq = point.seq;
  row.dtype = name_of(point.dtype);
  row.faults = point.fault_file;
  row.jitter = point.jitter;
  row.seed = point.monte_carlo.seed;
  static_cast<PricedAs&>(row) = priced_as(point.price);
  return row;
}

/// Returns a row with the settings and the prediction, but without the schedule, provenances and warnings.
ResultRow row_of(const Point& point, const Prediction& prediction) {
  ResultRow row = row_of(point);
  row.schedule_sha256 = prediction.structure->digest;
  row.analysis = prediction.analysis;
  static_cast<Outcome&>(row) = prediction;
  row.buffers = prediction.buffers;
  row.tails = prediction.tails;
  row.evaluator = word_of(evaluator_choices, prediction.evaluator);
  return row;
}

ResultRow infeasible_row(const Point& point, const Candidates& candidate, const std::vector<SiteKind>& kinds,
                         const std::string& reason) {
  ResultRow row = row_of(point);
  row.strategy = candidate.strategy->name;
  if (candidate.options.size() == 1) {
    SharedWords().put_schedule(row, kinds, *candidate.strategy, candidate.options.front());
  }
  row.reason = reason;
  return row;
}

/// A row and the uncertainty of its time, which is empty unless requested.
struct SimulatedRow {
  ResultRow row;
  Uncertainty uncertainty{};
};

/// Returns the warnings, separated by "; ". The memory of a rank is its shards of the scope's tensors and the buffers
/// of the schedule.
std::string warnings_of(const Point& point, const Prediction& prediction) {
  const Bytes capacity = point.machine.accelerator.hbm_capacity;
  std::vector<std::string> warnings =
      outside_fit(prediction.structure->program(), prediction.sizes, point.machine, point.price.experts);
  if (warnings.empty() && prediction.buffers <= capacity) {
    return {};
  }
  if (prediction.buffers > capacity) {
    const auto gigabytes = [](Bytes bytes) { return static_cast<double>(bytes.count) / 1e9; };
    warnings.insert(warnings.begin(), memory_warning({.needed_gb = gigabytes(prediction.buffers),
                                                      .capacity_gb = gigabytes(capacity),
                                                      .hardware = point.machine.name,
                                                      .remedy = "use more ranks or fewer tokens"}));
  }
  return fmt::format("{}", fmt::join(warnings, "; "));
}

/// Returns a row with everything in the prediction.
SimulatedRow simulated_row(const Point& point, Prediction& prediction, Predictor& predictor, SharedWords& words) {
  predictor.add_tails(point, prediction);
  SimulatedRow simulated{row_of(point, prediction)};
  simulated.row.provenances = words.provenances(point, *prediction.structure);
  simulated.row.warnings = warnings_of(point, prediction);
  if (point.raised != nullptr) {
    simulated.uncertainty = predictor.uncertainty(point, prediction);
    simulated.row.makespan_error = error_of(simulated.uncertainty);
  }
  return simulated;
}

SimulatedRow run_candidate(const Point& point, const Candidates& candidate, Predictor& predictor, SharedWords& words) {
  try {
    require_runnable(point);
    Prediction best = predictor.predict_best(point, *candidate.strategy, candidate.options);
    SimulatedRow simulated = simulated_row(point, best, predictor, words);
    words.put_schedule(simulated.row, predictor.kinds(point.scope), *best.strategy, best.options);
    return simulated;
  } catch (const ConfigError& error) {
    return {infeasible_row(point, candidate, predictor.kinds(point.scope), error.what())};
  }
}

/// Returns "its transfers 83 us, its GEMM 21 us": the cost of each handicap by itself, largest first, without costs
/// below 1% of the time.
std::string handicaps_in_words(const Point& point, const Candidates& candidate, const ResultRow& row,
                               Predictor& predictor) {
  const Duration time = row.analysis.critical.makespan;
  std::vector<std::pair<Duration, std::string_view>> costs;
  for (const Handicap handicap : all_handicaps) {
    const ImplementedSites sites = without(*point.price.implementation, handicap);
    Point freed_point = point;
    freed_point.price.implementation = &sites;
    const Prediction freed = predictor.predict_best(freed_point, *candidate.strategy, candidate.options);
    const Duration cost = time - freed.analysis.critical.makespan;
    if (to_seconds(cost) > 0.01 * to_seconds(time)) {
      costs.emplace_back(cost, in_words(handicap));
    }
  }
  std::ranges::stable_sort(costs, std::greater{}, [](const auto& cost) { return cost.first; });
  std::vector<std::string> words;
  for (const auto& [cost, what] : costs) {
    words.push_back(fmt::format("{} {:.0f} us", what, to_microseconds(cost)));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

/// Returns the row of settings that clash, for the strategies or implementations that they name.
SimulatedRow clashing_row(const Point& point, const std::string& names, const ConfigError& error) {
  SimulatedRow clashing{row_of(point)};
  clashing.row.strategy = names;
  clashing.row.reason = error.what();
  return clashing;
}

/// Runs an implementation under its own name; its row also names the strategy whose schedule it uses.
SimulatedRow run_implementation(const Point& point, const Candidates& candidate, Predictor& predictor) {
  const Implementation& implementation = *candidate.implementation;
  const std::string refusal = refusal_of(implementation, point);
  const Point priced = priced_as(point, implementation);
  SharedWords words;  // the implementation has its own prices
  SimulatedRow simulated = refusal.empty()
                               ? run_candidate(priced, candidate, predictor, words)
                               : SimulatedRow{infeasible_row(point, candidate, predictor.kinds(point.scope), refusal)};
  ResultRow& row = simulated.row;
  if (row.feasible()) {
    row.held_back = handicaps_in_words(priced, candidate, row, predictor);
  }
  row.implements = row.strategy;
  row.strategy = implementation.name;
  row.parameters.clear();
  row.interference = word_of(interference_choices, point.price.interference);
  row.bound = false;
  if (const std::string unmeasured = unmeasured_in_words(implementation, point.machine);
      row.feasible() && !unmeasured.empty()) {
    row.unmeasured_on = point.machine.accelerator.name;
    row.warnings += (row.warnings.empty() ? "" : "; ") + unmeasured;
  }
  return simulated;
}

/// Marks ideal schedules that are compared with implementations as bounds. Only serial is available to everyone.
void mark_ideals_as_bounds(std::vector<SimulatedRow>& simulated) {
  for (SimulatedRow& candidate : simulated) {
    candidate.row.bound =
        candidate.row.bound || (candidate.row.implements.empty() && candidate.row.strategy != serial_strategy.name);
  }
}

SimulatedRow run_file(const Point& point, const HandWritten& schedule, Predictor& predictor, SharedWords& words) {
  SimulatedRow simulated{row_of(point)};
  try {
    require_simulatable(point);
    Prediction prediction = predictor.predict(point, schedule);
    simulated = simulated_row(point, prediction, predictor, words);
  } catch (const ConfigError& error) {
    simulated.row.reason = error.what();
  }
  ResultRow& row = simulated.row;
  row.scope = schedule.scope ? name_of(*schedule.scope) : own_work;
  row.strategy = schedule.program().name;
  row.parameters = schedule.file;
  return simulated;
}

/// Returns whether a row competes: its schedule is available, so it can win.
bool competes(const ResultRow& row) {
  return row.feasible() && !row.bound && row.analysis.critical.makespan > Duration{};
}

/// Sets each competing row's probability of being faster than the row that is predicted to be the fastest of the
/// others.
void add_win_probabilities(std::vector<SimulatedRow>& simulated) {
  const auto makespan = [](const SimulatedRow& candidate) { return candidate.row.analysis.critical.makespan; };
  for (SimulatedRow& candidate : simulated) {
    const SimulatedRow* other = nullptr;
    for (const SimulatedRow& rival : simulated) {
      if (&rival != &candidate && competes(rival.row) && (other == nullptr || makespan(rival) < makespan(*other))) {
        other = &rival;
      }
    }
    if (other != nullptr && competes(candidate.row) && candidate.row.makespan_error) {
      candidate.row.win_probability =
          probability_shorter(makespan(candidate), candidate.uncertainty, makespan(*other), other->uncertainty);
    }
  }
}

/// Compares every competing row with serial, including rows of ideal schedules: their `win_probability` compares them
/// only with the fastest other row, which may be the row of another schedule.
void add_beats_serial(std::vector<SimulatedRow>& simulated) {
  const auto serial = std::ranges::find_if(simulated, [](const SimulatedRow& candidate) {
    return candidate.row.strategy == serial_strategy.name && candidate.row.makespan_error && competes(candidate.row);
  });
  if (serial == simulated.end()) {
    return;
  }
  for (SimulatedRow& candidate : simulated) {
    if (&candidate == &*serial || !candidate.row.makespan_error || !competes(candidate.row)) {
      continue;
    }
    candidate.row.beats_serial = probability_shorter(candidate.row.analysis.critical.makespan, candidate.uncertainty,
                                                     serial->row.analysis.critical.makespan, serial->uncertainty);
    if (!candidate.row.implements.empty()) {
      candidate.row.saving_error = ratio_error(candidate.uncertainty, serial->uncertainty);
    }
  }
}

std::vector<SimulatedRow> run_files(const Point& point, const Library& library, Predictor& predictor,
                                    SharedWords& words) {
  std::vector<SimulatedRow> rows;
  for (const HandWritten& schedule : library.schedules()) {
    if (belongs(schedule, point)) {
      rows.push_back(run_file(point, schedule, predictor, words));
    }
  }
  return rows;
}

}  // namespace

bool runs_generated(const Settings& settings, const Library& library) {
  return library.schedules().empty() || names_strategies(settings);
}

bool all_feasible(const std::vector<ResultRow>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const ResultRow& row) { return row.feasible(); });
}

const std::string& SharedWords::provenances(const Point& point, const Structure& structure) {
  const auto [entry, is_new] = provenances_.try_emplace(&structure);
  if (is_new) {
    entry->second = provenance_in_words(structure.program(), point);
  }
  return entry->second;
}

void SharedWords::put_schedule(ResultRow& row, const std::vector<SiteKind>& kinds, const Strategy& strategy,
                               const StrategyOptions& options) {
  if (!schedule_ || schedule_->strategy != &strategy || schedule_->options != options || schedule_->kinds != kinds) {
    schedule_ = {kinds, &strategy, options, parameters_of(strategy, kinds, options),
                 relevant_options(strategy, kinds, options)};
  }
  row.strategy = strategy.name;
  row.parameters = schedule_->parameters;
  row.bound = strategy.bound;
  row.options = options;
  row.relevant = schedule_->relevant;
}

void SharedWords::forget() { provenances_.clear(); }

PointRunner::PointRunner(const Library& library, StructureCache& structures, ForEachIndex for_each)
    : library_(library), predictor_(structures, for_each), texts_(run_fields().size()) {
  for (const Field& field : run_fields()) {
    const bool is_of_schedules = field.key == "ranks" || field.key == "scope" || field.key == "dtype";
    unsigned parts = is_of_strategies(field) ? of_candidates : is_plain(field) ? of_sizes : of_point;
    if (is_of_schedules) {
      parts |= of_candidates | of_implementations;
    }
    if (field.key == "as") {
      parts |= of_implementations;
    }
    affected_.push_back(static_cast<std::uint8_t>(parts));
  }
}

void PointRunner::note(const Settings& settings) {
  const std::span<const Field> fields = run_fields();
  unsigned changed = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (const std::string& text = settings.at(fields[i]).text; text != texts_[i]) {
      texts_[i] = text;
      changed |= affected_[i];
    }
  }
  if ((changed & of_point) != 0) {
    point_.reset();
    words_.forget();
  }
  has_sizes_ = has_sizes_ && (changed & of_sizes) == 0;
  last_candidates_ = (changed & of_candidates) == 0 ? last_candidates_ : nullptr;
  if ((changed & of_implementations) != 0) {
    implementations_.reset();
  }
}

const Point& PointRunner::point_at(const Settings& settings) {
  if (!point_) {
    point_ = point_of(settings, library_);
    predictor_.recall_kernels(library_.accelerator(choices_of(settings).machine));
    has_sizes_ = false;
  }
  if (!has_sizes_) {
    point_->ranks = static_cast<std::int32_t>(settings.count("ranks"));
    point_->batch = settings.count("batch");
    point_->seq = settings.count("seq");
    has_sizes_ = true;
  }
  return *point_;
}

const std::vector<Candidates>& PointRunner::candidates_at(const Settings& settings) {
  constexpr std::size_t max_kept = 4096;
  if (last_candidates_ != nullptr) {
    return *last_candidates_;
  }
  std::string key;
  for (const Field& field : run_fields()) {
    if ((affected_[static_cast<std::size_t>(&field - run_fields().data())] & of_candidates) != 0) {
      key += settings.at(field).text;
      key += '\n';
    }
  }
  auto known = candidates_.find(key);
  if (known == candidates_.end()) {
    if (candidates_.size() >= max_kept) {
      candidates_.clear();
    }
    known = candidates_.emplace(std::move(key), candidates_of(settings)).first;
  }
  last_candidates_ = &known->second;
  return *last_candidates_;
}

const std::vector<Candidates>& PointRunner::implementations_at(const Settings& settings) {
  if (!implementations_) {
    implementations_ = implementations_of(settings, library_);
  }
  return *implementations_;
}

void PointRunner::require_runnable(const Settings& settings) {
  note(settings);
  if (runs_generated(settings, library_)) {
    candidates_at(settings);
    commfuse::require_runnable(point_at(settings));
  }
  implementations_at(settings);
}

std::vector<ResultRow> PointRunner::rows(const Settings& settings) {
  note(settings);
  const Point& point = point_at(settings);
  std::vector<SimulatedRow> simulated;
  if (runs_generated(settings, library_)) {
    try {
      for (const Candidates& candidate : candidates_at(settings)) {
        simulated.push_back(run_candidate(point, candidate, predictor_, words_));
      }
    } catch (const ConfigError& error) {  // no schedule runs: the settings clash
      simulated.assign(1, clashing_row(point, settings.text("strategy.name"), error));
    }
  }
  std::span<const Candidates> implemented;
  try {
    implemented = implementations_at(settings);
  } catch (const ConfigError& error) {  // a named implementation does not cover the scope
    mark_ideals_as_bounds(simulated);
    simulated.push_back(clashing_row(point, settings.text("as"), error));
  }
  const bool wants_all = settings.text("as") == "all";
  for (const Candidates& candidate : implemented) {
    if (!wants_all || refusal_of(*candidate.implementation, point).empty()) {
      simulated.push_back(run_implementation(point, candidate, predictor_));
    }
  }
  if (!implemented.empty()) {
    mark_ideals_as_bounds(simulated);
  }
  std::vector<SimulatedRow> file_rows = run_files(point, library_, predictor_, words_);
  std::move(file_rows.begin(), file_rows.end(), std::back_inserter(simulated));
  add_beats_serial(simulated);
  add_win_probabilities(simulated);
  std::vector<ResultRow> rows;
  rows.reserve(simulated.size());
  for (SimulatedRow& candidate : simulated) {
    rows.push_back(std::move(candidate.row));
  }
  return rows;
}

}  // namespace commfuse
