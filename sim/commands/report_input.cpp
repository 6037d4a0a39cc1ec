// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/report_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "model/analysis/percentiles.h"
#include "model/build_info.h"
#include "model/config/catalogue.h"
#include "model/config/resolver.h"
#include "model/config_error.h"
#include "model/fit/robust_fit.h"
#include "model/record/run_record.h"
#include "reports/figure/wording.h"
#include "reports/html/points.h"
#include "reports/point_rows.h"
#include "sim/calibrate/calibrate.h"
#include "sim/commands/row_point.h"
#include "sim/commands/study.h"

namespace commfuse::sim {

namespace {

using reports::PointView;

/// Whether a row is of the schedule, and of the point, that was measured.
bool is_measured(const ResultRow& row, const MeasuredRun& run, const RunRecord& record) {
  const auto agrees = [&](std::string_view key, const std::string& text) {
    const auto found = std::find_if(record.settings.begin(), record.settings.end(),
                                    [&](const auto& setting) { return setting.first == key; });
    if (found == record.settings.end()) {
      return false;
    }
    Resolver resolver;
    resolver.read_flag(*find_field(key), found->second);
    const Settings settings = resolver.finish();
    const bool is_count = find_field(key)->type == FieldType::count;
    return is_count ? fmt::format("{}", settings.count(key)) == text : settings.text(key) == text;
  };
  return row.feasible() && row.schedule_sha256 == run.schedule_sha256 && agrees("model", row.model) &&
         agrees("hardware", row.hardware) && agrees("seq", fmt::format("{}", row.seq)) &&
         agrees("ranks", fmt::format("{}", row.ranks)) && agrees("batch", fmt::format("{}", row.batch));
}

/// A measured run and the row that predicted it.
struct Match {
  const ResultRow* row = nullptr;
  const MeasuredRun* run = nullptr;
};

std::vector<Match> matches_of(std::span<const ResultRow> rows, const RunRecord& record, const std::string& path) {
  std::vector<Match> matches;
  for (const MeasuredRun& run : record.runs) {
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const ResultRow& r) { return is_measured(r, run, record); });
    if (row != rows.end() && !run.makespans.empty()) {
      matches.push_back({&*row, &run});
    }
  }
  if (matches.empty()) {
    throw ConfigError(
        fmt::format("--measured: {} measured no schedule of these results; give results of the same model, "
                    "hardware, ranks, batch and seq",
                    path));
  }
  return matches;
}

reports::MeasuredPair pair_of(const Match& match) {
  std::vector<Duration> sorted = match.run->makespans;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](int per_mille) { return percentile(sorted, per_mille).value; };
  return {.name = reports::label_of(*match.row),
          .point = reports::point_of(*match.row),
          .predicted = reports::makespan_of(*match.row),
          .median = at(500),
          .p10 = at(100),
          .p90 = at(900),
          .rounds = sorted.size()};
}

/// The measured timeline on the program that was predicted; nothing where none was traced.
std::optional<reports::TracedRun> measured_run(const Match& match, const std::vector<reports::TracedRun>& predicted) {
  const auto of = std::find_if(predicted.begin(), predicted.end(), [&](const reports::TracedRun& run) {
    return run.row.schedule_sha256 == match.row->schedule_sha256;
  });
  if (of == predicted.end() || match.run->spans.empty()) {
    return std::nullopt;
  }
  reports::TracedRun run = *of;
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

bool is_of(const PointView& point, const ResultRow* row) {
  return row >= point.rows.data() && row < point.rows.data() + point.rows.size();
}

/// Points that are shown in time: the smallest, the largest, the measured one, in that order, each once.
std::vector<const PointView*> shown_points(const std::vector<PointView>& points, const ResultRow* measured) {
  const PointView* most = reports::largest(points);
  const PointView* least = nullptr;
  const PointView* seen = nullptr;
  const auto size = [](const PointView& point) {
    const ResultRow& row = point.rows.front();
    return std::tuple(row.batch * row.seq, row.ranks);
  };
  for (const PointView& point : points) {
    if (!point.ranking.empty() && (least == nullptr || size(point) < size(*least))) {
      least = &point;
    }
    if (is_of(point, measured)) {
      seen = &point;
    }
  }
  std::vector<const PointView*> shown;
  for (const PointView* point : {least, most, seen}) {
    if (point != nullptr) {
      std::erase(shown, point);
      shown.push_back(point);
    }
  }
  return shown;
}

/// Nothing, and a note, where the point cannot be played again.
std::optional<reports::PointStudy> study_again(const PointView& view, const std::function<Settings()>& made_with,
                                               std::vector<std::string>& notes) {
  const std::string where = reports::point_of(view.rows.front());
  try {
    const Settings settings = made_with();
    Library library;
    library.load(settings);
    reports::PointStudy study = study_of(point_of(settings, library), view.rows);
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
    notes.push_back(
        fmt::format("No timeline of {}: what made these results cannot be made again from their rows, which "
                    "do not tell every setting.",
                    where));
  } catch (const ConfigError& error) {
    notes.push_back(fmt::format("No timeline of {}: {}", where, error.what()));
  }
  return std::nullopt;
}

/// What of the files is not shown is said in a note.
std::vector<reports::FitCheck> fits_of(const std::vector<std::string>& files, const std::string& hardware,
                                       std::vector<std::string>& notes) {
  if (files.empty()) {
    return {};
  }
  const Machine base = load_machine(hardware);
  const auto seen = calibrate::read_observations({files.begin(), files.end()}, std::nullopt, &base);
  const calibrate::Calibration calibration = calibrate::calibrate(base, hardware, "fitted", seen);
  for (const auto* sentences : {&seen.faults, &seen.skipped, &calibration.skipped}) {
    for (const std::string& sentence : *sentences) {
      notes.push_back(fmt::format("Not among the fits: {}.", sentence));
    }
  }
  std::vector<reports::FitCheck> fits;
  for (const calibrate::FittedPart& part : calibration.parts) {
    reports::FitCheck fit{part.name, part.source, {}};
    for (const calibrate::Residual& one : part.residuals) {
      fit.residuals.push_back({one.measured_us, one.predicted_us, one.held_back});
    }
    if (!fit.residuals.empty()) {
      fits.push_back(std::move(fit));
    }
  }
  return fits;
}

/// One that was asked for is there, or it is a mistake; a point that cannot be shown is none.
void require_jitter(const std::string& name) {
  Resolver resolver;
  resolver.read_flag(*find_field("jitter"), name);
  load_jitter(resolver.finish().text("jitter"));
}

void add_studies(const std::vector<Match>& matches, const ReportExtras& extras, reports::ReportInput& input) {
  const std::vector<PointView> points = reports::points_of(input.rows, extras.rule);
  const ResultRow* measured = matches.empty() ? nullptr : matches.front().row;
  for (const PointView* view : shown_points(points, measured)) {
    const ResultRow& row = view->rows.front();
    const auto made_with = [&] {
      Settings settings =
          extras.settings ? extras.settings(static_cast<std::size_t>(&row - input.rows.data())) : settings_of_row(row);
      if (extras.jitter) {
        settings.put(*find_field("jitter"), {*extras.jitter, {Source::flag, "--jitter"}});
      }
      return settings;
    };
    std::optional<reports::PointStudy> study = study_again(*view, made_with, input.notes);
    if (!study) {
      continue;
    }
    for (const Match& match : matches) {
      if (auto run = is_of(*view, match.row) ? measured_run(match, study->runs) : std::nullopt) {
        study->runs.push_back(*std::move(run));
      }
    }
    input.gantts.push_back(study->runs);
    input.study = std::move(study);
  }
}

}  // namespace

std::vector<std::string> files_read(const std::string& results, const ReportExtras& extras) {
  std::vector<std::string> files = extras.fits;
  files.insert(files.end(), {results, extras.measured});
  return files;
}

reports::ReportInput report_input(std::string title, std::vector<ResultRow> rows, std::string command,
                                  const ReportExtras& extras) {
  if (extras.jitter) {
    require_jitter(*extras.jitter);
  }
  reports::ReportInput input{.title = std::move(title),
                             .rows = reports::ordered_by_point(std::move(rows)),
                             .gantts = {},
                             .command = std::move(command),
                             .version = fmt::format("commfuse-sim {}", build_info().version),
                             .rule = extras.rule};
  std::vector<Match> matches;
  std::optional<RunRecord> record;
  if (!extras.measured.empty()) {
    record = load_run_record(extras.measured);
    matches = matches_of(input.rows, *record, extras.measured);
    for (const Match& match : matches) {
      input.measured.push_back(pair_of(match));
    }
  }
  input.fits = fits_of(extras.fits, input.rows.empty() ? std::string{} : input.rows.front().hardware, input.notes);
  add_studies(matches, extras, input);
  return input;
}

}  // namespace commfuse::sim
