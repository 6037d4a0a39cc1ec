// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/report_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "model/analysis/percentiles.h"
#include "model/analysis/verdict.h"
#include "model/build_info.h"
#include "model/config/bandwidth_choice.h"
#include "model/config/catalogue.h"
#include "model/config/implementation.h"
#include "model/config/resolver.h"
#include "model/config_error.h"
#include "model/fit/robust_fit.h"
#include "model/record/run_record.h"
#include "reports/figure/wording.h"
#include "reports/html/overview.h"
#include "sim/calibrate/calibrate.h"
#include "sim/commands/row_point.h"
#include "sim/commands/study.h"

namespace commfuse::sim {

namespace {

using reports::RowRange;

/// Returns the settings of the measured point; nothing if the record lacks a setting that every point has.
std::optional<Settings> measured_point(const RunRecord& record) {
  constexpr std::array<std::string_view, 5> needed{"model", "hardware", "seq", "ranks", "batch"};
  constexpr std::array<std::string_view, 7> known{"model",          "hardware",         "seq", "ranks", "batch",
                                                  "link_bandwidth", "network_bandwidth"};
  Resolver resolver;
  for (const std::string_view key : known) {
    const auto setting = std::ranges::find(record.settings, key, [](const auto& entry) { return entry.first; });
    if (setting != record.settings.end()) {
      resolver.read_flag(*find_field(key), setting->second);
    } else if (std::ranges::find(needed, key) != needed.end()) {
      return std::nullopt;
    }
  }
  return resolver.finish();
}

/// Returns whether two strings state one bandwidth: "450GB/s" is "450 GB/s".
bool is_same_bandwidth(const std::string& text, const std::string& other_text) {
  const std::optional<BandwidthChoice> choice = parse_bandwidth_choice(text);
  const std::optional<BandwidthChoice> other = parse_bandwidth_choice(other_text);
  return choice && other && choice->times == other->times && choice->rate == other->rate;
}

/// Returns whether a row has the schedule and the point that were measured.
bool is_measured(const ResultRow& row, const MeasuredRun& run, const Settings& point) {
  return row.feasible() && row.schedule_sha256 == run.schedule_sha256 && row.model == point.text("model") &&
         row.hardware == point.text("hardware") && row.seq == point.count("seq") && row.ranks == point.count("ranks") &&
         row.batch == point.count("batch") && is_same_bandwidth(row.link_bandwidth, point.text("link_bandwidth")) &&
         is_same_bandwidth(row.network_bandwidth, point.text("network_bandwidth"));
}

/// A measured run and the row that predicted it.
struct Match {
  std::size_t row_index = 0;
  ResultRow row;
  const MeasuredRun* run = nullptr;
};

/// Returns the first row with the schedule and the point of a measured run.
std::optional<Match> match_of(const RowTable& rows, const MeasuredRun& run, const Settings& point) {
  const WordColumn& schedules = rows.columns().schedule_sha256;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (schedules[rows.place_of(i)] == run.schedule_sha256) {
      if (ResultRow row = rows[i]; is_measured(row, run, point)) {
        return Match{i, std::move(row), &run};
      }
    }
  }
  return std::nullopt;
}

std::vector<Match> matches_of(const RowTable& rows, const RunRecord& record, const std::string& path) {
  std::vector<Match> matches;
  try {
    const std::optional<Settings> point = measured_point(record);
    for (const MeasuredRun& run : record.runs) {
      std::optional<Match> match = point ? match_of(rows, run, *point) : std::nullopt;
      if (match && !run.makespans.empty()) {
        matches.push_back(*std::move(match));
      }
    }
  } catch (const ConfigError& error) {  // the error names a flag of the recorded run, not of this command
    throw ConfigError(fmt::format("--measured: {} has a setting that cannot be read: {}", path, error.what()));
  }
  if (matches.empty()) {
    throw ConfigError(
        fmt::format("--measured: {} has no measurement of these results; give results of the same model, "
                    "hardware, bandwidths, ranks, batch and seq",
                    path));
  }
  return matches;
}

reports::MeasuredPair pair_of(const Match& match) {
  std::vector<Duration> sorted = match.run->makespans;
  std::sort(sorted.begin(), sorted.end());
  const auto at_per_mille = [&](int per_mille) { return percentile(sorted, per_mille).value; };
  return {.name = reports::label_of(match.row),
          .point = reports::point_of(match.row),
          .predicted = reports::makespan_of(match.row),
          .median = at_per_mille(500),
          .p10 = at_per_mille(100),
          .p90 = at_per_mille(900),
          .rounds = sorted.size()};
}

/// Returns the predicted run with the measured timeline; nothing if no timeline was traced. Throws ConfigError, which
/// names the record's `path`, if the timeline's ops are not those of the schedule.
std::optional<reports::TracedRun> measured_run(const Match& match, const std::vector<reports::TracedRun>& predicted,
                                               const std::string& path) {
  const auto prediction = std::find_if(predicted.begin(), predicted.end(), [&](const reports::TracedRun& run) {
    return run.row.schedule_sha256 == match.row.schedule_sha256;
  });
  if (prediction == predicted.end() || match.run->spans.empty()) {
    return std::nullopt;
  }
  const auto is_of_same_op = [](const OpSpan& a, const OpSpan& b) { return a.rank == b.rank && a.op == b.op; };
  if (!std::ranges::equal(prediction->timeline, match.run->spans, is_of_same_op)) {
    throw ConfigError(fmt::format("--measured: {}: {} lacks the spans of some ops; measure again with --spans", path,
                                  match.run->strategy));
  }
  reports::TracedRun run = *prediction;
  run.timeline = match.run->spans;
  run.path.reset();
  run.measured = true;
  Instant last{};
  for (const OpSpan& span : run.timeline) {
    if (span.end > last) {
      last = span.end;
      run.row.analysis.critical_rank = span.rank;
    }
  }
  return run;
}

/// Returns the points to show as timelines, each once: the most decisive point; a second point, which is the one where
/// overlap loses the most, or else the largest or the smallest; and last the measured point.
std::vector<RowRange> shown_points(const RowTable& rows, const reports::Overview& overview,
                                   const std::vector<Match>& matches) {
  constexpr std::size_t limit = 2;
  std::vector<RowRange> shown;
  const auto is_shown = [&](const RowRange& point) {
    return std::ranges::any_of(shown, [&](const RowRange& other) { return other.first == point.first; });
  };
  for (const std::optional<RowRange>& point : {overview.decisive, overview.loss, overview.largest, overview.smallest}) {
    if (point && shown.size() < limit && !is_shown(*point)) {
      shown.push_back(*point);
    }
  }
  if (!matches.empty()) {
    const RowTable::Groups points = rows.runs(rows.point_columns());
    const auto next = std::upper_bound(points.begin(), points.end(), matches.front().row_index);
    const RowRange measured{*(next - 1), static_cast<std::size_t>(*next - *(next - 1))};
    std::erase_if(shown, [&](const RowRange& point) { return point.first == measured.first; });
    shown.push_back(measured);
  }
  return shown;
}

/// Returns the implementations that the settings name, or else the built-in implementations among the rows.
std::vector<std::shared_ptr<const Implementation>> implementations_of_rows(std::span<const ResultRow> rows,
                                                                           const Settings& settings,
                                                                           const Library& library) {
  if (settings.text("as") != "none") {
    const Implementations named = implementations_named(settings, library);
    return {named.begin(), named.end()};
  }
  std::vector<std::shared_ptr<const Implementation>> built_in;
  const std::vector<std::string> known = known_names(Catalogue::implementations);
  for (const ResultRow& row : rows) {
    if (!row.implements.empty() && std::ranges::find(known, row.strategy) != known.end()) {
      built_in.push_back(load_implementation(row.strategy));
    }
  }
  return built_in;
}

/// A reason why points cannot be simulated again, and these points.
struct MissingTimelines {
  std::string reason;
  std::vector<std::string> points;
};

void add_missing(const std::string& point, std::string reason, std::vector<MissingTimelines>& missing) {
  const auto known = std::ranges::find(missing, reason, &MissingTimelines::reason);
  MissingTimelines& same =
      known == missing.end() ? missing.emplace_back(MissingTimelines{std::move(reason), {}}) : *known;
  if (std::ranges::find(same.points, point) == same.points.end()) {
    same.points.push_back(point);
  }
}

/// Returns the study of a point. If the point cannot be simulated again, adds the reason to `missing` and returns
/// nothing.
std::optional<reports::PointStudy> study_again(std::span<const ResultRow> rows,
                                               const std::function<Settings()>& settings_of_point,
                                               std::vector<MissingTimelines>& missing) {
  const std::string where = reports::point_of(rows.front());
  try {
    const Settings settings = settings_of_point();
    Library library;
    library.load(settings);
    const auto implementations = implementations_of_rows(rows, settings, library);
    reports::PointStudy study = study_of(point_of(settings, library), rows, implementations);
    std::erase_if(study.runs, [&](const reports::TracedRun& run) {
      Instant last{};
      for (const OpSpan& span : run.timeline) {
        last = std::max(last, span.end);
      }
      return last.time_since_epoch() != reports::makespan_of(run.row);
    });
    if (!study.runs.empty()) {
      return study;
    }
    add_missing(where, "the rows of these results do not contain every setting, so the run cannot be repeated.",
                missing);
  } catch (const ConfigError& error) {
    add_missing(where, error.what(), missing);
  }
  return std::nullopt;
}

/// Returns the fits to the files. Notes name the rows and parts that are not shown.
std::vector<reports::FitCheck> fits_of(const std::vector<std::string>& files, const std::string& hardware,
                                       std::vector<std::string>& notes) {
  if (files.empty()) {
    return {};
  }
  const Machine base = load_machine(hardware);
  const auto observations = calibrate::read_observations({files.begin(), files.end()}, std::nullopt, &base);
  const calibrate::Calibration calibration = calibrate::calibrate(base, hardware, "fitted", observations);
  for (const auto* sentences : {&observations.faults, &observations.skipped, &calibration.skipped}) {
    for (const std::string& sentence : *sentences) {
      notes.push_back(fmt::format("Not fitted: {}.", sentence));
    }
  }
  std::vector<reports::FitCheck> fits;
  for (const calibrate::FittedPart& part : calibration.parts) {
    reports::FitCheck fit{part.name, part.source, {}};
    for (const calibrate::Residual& residual : part.residuals) {
      fit.residuals.push_back({residual.measured_us, residual.predicted_us, residual.held_out});
    }
    if (!fit.residuals.empty()) {
      fits.push_back(std::move(fit));
    }
  }
  return fits;
}

/// Throws ConfigError if the jitter does not exist. This check comes first, because mistakes in a point only add a
/// note.
void require_jitter(const std::string& name) {
  Resolver resolver;
  resolver.read_flag(*find_field("jitter"), name);
  load_jitter(resolver.finish().text("jitter"));
}

void add_studies(const std::vector<Match>& matches, const ReportExtras& extras, reports::ReportInput& input) {
  std::vector<MissingTimelines> missing;
  for (const RowRange& point : shown_points(input.rows, *input.overview, matches)) {
    const std::vector<ResultRow> rows = input.rows.rows(point.first, point.count);
    const auto settings_of_point = [&] {
      Settings settings =
          extras.settings ? extras.settings(input.rows.place_of(point.first)) : settings_of_row(rows.front());
      if (extras.jitter) {
        settings.put(*find_field("jitter"), {*extras.jitter, {Source::flag, "--jitter"}});
      }
      return settings;
    };
    std::optional<reports::PointStudy> study = study_again(rows, settings_of_point, missing);
    if (!study) {
      continue;
    }
    for (const Match& match : matches) {
      if (auto run = point.has(match.row_index) ? measured_run(match, study->runs, extras.measured) : std::nullopt) {
        study->runs.push_back(*std::move(run));
      }
    }
    input.gantts.push_back(study->runs);
    const bool is_measured_point = !matches.empty() && point.has(matches.front().row_index);
    if (!input.study || is_measured_point) {
      input.study = std::move(study);
    }
  }
  for (const MissingTimelines& same : missing) {
    input.notes.push_back(fmt::format("No timeline of {}: {}", names_in_words(same.points), same.reason));
  }
}

}  // namespace

std::vector<std::string> files_read(const std::string& results, const ReportExtras& extras) {
  std::vector<std::string> files = extras.fits;
  files.insert(files.end(), {results, extras.measured});
  return files;
}

reports::ReportInput report_input(std::string title, RowTable rows, std::string command, const ReportExtras& extras,
                                  std::vector<StepRow> models) {
  if (extras.jitter) {
    require_jitter(*extras.jitter);
    if (rows.empty() && !models.empty()) {
      throw ConfigError("--jitter: these results are of whole models, which have no detailed point; remove --jitter");
    }
  }
  rows.order_by_point();
  rows.order_by_setting();
  reports::ReportInput input{.title = std::move(title),
                             .rows = std::move(rows),
                             .gantts = {},
                             .command = std::move(command),
                             .version = fmt::format("commfuse-sim {}", build_info().version),
                             .rule = extras.rule,
                             .models = std::move(models)};
  input.overview = reports::overview_of(input.rows, extras.rule);
  std::vector<Match> matches;
  std::optional<RunRecord> record;
  if (!extras.measured.empty()) {
    record = load_run_record(extras.measured);
    matches = matches_of(input.rows, *record, extras.measured);
    for (const Match& match : matches) {
      input.measured.push_back(pair_of(match));
    }
  }
  const std::string hardware = !input.rows.empty()     ? input.rows[0].hardware
                               : !input.models.empty() ? input.models.front().text("hardware")
                                                       : std::string{};
  input.fits = fits_of(extras.fits, hardware, input.notes);
  add_studies(matches, extras, input);
  return input;
}

}  // namespace commfuse::sim
