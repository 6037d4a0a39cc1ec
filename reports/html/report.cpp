// SPDX-License-Identifier: Apache-2.0
#include "reports/html/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "model/record/model_version.h"
#include "model/text/quantity.h"
#include "reports/commas.h"
#include "reports/comparison.h"
#include "reports/crossover.h"
#include "reports/figure/crossing.h"
#include "reports/figure/gantt.h"
#include "reports/figure/heatmap.h"
#include "reports/figure/markup.h"
#include "reports/figure/roofline.h"
#include "reports/figure/spread.h"
#include "reports/figure/wording.h"
#include "reports/html/blocks.h"
#include "reports/html/charts.h"
#include "reports/html/definitions.h"
#include "reports/html/inputs.h"
#include "reports/html/models_section.h"
#include "reports/html/page_frame.h"
#include "reports/html/page_link.h"
#include "reports/html/page_scripts.h"
#include "reports/html/points.h"
#include "reports/html/results_table.h"
#include "reports/html/rows_block.h"
#include "reports/html/savings_section.h"
#include "reports/html/study_sections.h"
#include "reports/html/timeline_block.h"
#include "reports/html/winners.h"
#include "reports/plan_names.h"
#include "reports/plan_verdicts.h"
#include "reports/point_rows.h"
#include "reports/savings.h"
#include "reports/step_rows.h"

namespace commfuse::reports {

namespace {

// Limits for the page without scripts and on paper; the table that scripts make has every row of the page.
constexpr std::size_t max_rows = 400;
constexpr std::size_t max_rows_on_paper = 42;
constexpr std::size_t max_settings = 4;

class Page {
 public:
  explicit Page(const ReportInput& input)
      : input_(input),
        overview_(input.overview ? *input.overview : computed_overview_.emplace(overview_of(input.rows, input.rule))),
        page_rows_(page_rows(input.rows)),
        settings_(requested_settings(input.rows)),
        winners_(winners_section(input.rows, overview_, input.rule)) {}

  void write(const TakeBytes& take) {
    sections();
    take(html_);
    take(charts_.blocks());
    if (has_layers()) {
      write_block(
          "rows", [&](const TakeBytes& take_row) { write_rows_block(input_.rows, page_rows_, overview_, take_row); },
          take);
    }
    take(page_scripts());
    take(page_foot(
        fmt::format("{} \u00b7 model version {} \u00b7 schema {}", input_.version, model_version, result_schema)));
  }
  /// Returns the figures of the page, then the figures that only `plot` shows.
  ReportFigures figures() {
    sections();
    ReportFigures figures{charts_.figures(), charts_.left_out()};
    add_plot_figures(figures.figures);
    return figures;
  }

 private:
  void sections() {
    open();
    summary_section();
    map_section();
    time_section();
    html_ += input_.study ? study_section(*input_.study, title_of(input_.study->runs), charts_) : std::string{};
    html_ += agreement_section(input_.measured, charts_);
    if (has_layers()) {
      table_section();
    }
    html_ += models_section(input_.models, has_layers(), charts_, input_.rule);
    html_ += fits_section(input_.fits, charts_);
    if (has_layers()) {
      input_section();
    }
    command_section();
    about_section();
  }
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(html_), format, std::forward<Args>(args)...);
  }
  void tile(std::string_view name, const std::string& value, const std::string& about) {
    add("<div class=\"tile\"><dt>{}</dt><dd><div class=\"value\">{}</div><div class=\"about\">{}</div></dd></div>\n",
        name, escaped(value), escaped(about));
  }
  void section(std::string_view id, std::string_view title) { html_ += section_head(id, title); }

  void open();
  void summary_section();
  [[nodiscard]] std::string first_sentence() const;
  [[nodiscard]] std::string second_sentence() const;
  [[nodiscard]] std::string point_sentence() const;
  [[nodiscard]] const RowRange& shown_point() const;
  [[nodiscard]] std::string place_in_words(const ResultRow& row) const;
  [[nodiscard]] std::string reason_of(const ResultRow& row) const;
  [[nodiscard]] bool is_studied(const ResultRow& row) const;
  [[nodiscard]] std::string interval_at(const ResultRow& row) const;
  [[nodiscard]] bool has_stated(const SavingInterval& saving) const;
  [[nodiscard]] std::string title_of(const std::vector<TracedRun>& runs) const;
  [[nodiscard]] std::string terms() const;
  [[nodiscard]] bool has_interval() const;
  [[nodiscard]] bool has_error() const;
  void tiles();
  void saving_tiles();
  void model_tiles();
  void winner_tile();
  void exposed_tile();
  void time_section();
  void timeline(const std::vector<TracedRun>& runs, std::size_t index);
  void map_section();
  void maps_of(const Overview::Setting& setting, std::size_t number);
  [[nodiscard]] bool has_gaps(const Overview::Setting& setting) const;
  /// Returns the text that distinguishes the setting's figures from those of other settings; empty without other
  /// settings.
  [[nodiscard]] std::string subject_of(const Overview::Setting& setting) const {
    return overview_.settings.size() > 1 ? setting.title : std::string{};
  }
  [[nodiscard]] std::vector<std::size_t> points_on_paper() const;
  [[nodiscard]] std::vector<const Overview::Setting*> shown_settings() const;
  void add_plot_figures(std::vector<Figure>& figures) const;
  void table_section();
  void input_section();
  void command_section();
  void about_section();

  /// A page without any rows counts as a page of layers.
  [[nodiscard]] bool has_layers() const { return !input_.rows.empty() || input_.models.empty(); }
  [[nodiscard]] bool has_maps() const {
    return std::ranges::any_of(overview_.settings, [](const Overview::Setting& setting) { return setting.points > 1; });
  }
  [[nodiscard]] std::vector<ResultRow> rows_of(const RowRange& range) const {
    return input_.rows.rows(range.first, range.count);
  }
  [[nodiscard]] std::vector<ResultRow> results_of(const RowRange& range) const {
    std::vector<ResultRow> rows = rows_of(range);
    std::erase_if(rows, [](const ResultRow& row) { return !has_result(row); });
    return rows;
  }

  const ReportInput& input_;
  std::optional<Overview> computed_overview_;
  const Overview& overview_;
  PageRows page_rows_;
  RequestedSettings settings_;
  std::string winners_;
  Charts charts_;
  std::string html_;
};

void Page::open() {
  std::vector<SectionLink> links{{"verdict", "Verdict"}};
  const auto link = [&](bool is_present, std::string_view id, std::string_view text) {
    if (is_present) {
      links.push_back({id, text});
    }
  };
  link(has_maps(), "ahead", overview_.savings.points > 0 ? "Where overlap pays" : "Who wins where");
  link(!input_.gantts.empty(), "time", "Where the time goes");
  link(input_.study && !input_.study->runs.empty(), "point", "One point");
  link(!input_.measured.empty(), "measured", "Predicted against measured");
  link(has_layers(), "results", "All results");
  link(!input_.models.empty(), "models", "Whole models");
  link(!input_.fits.empty(), "fits", "Fits of single operations");
  link(has_layers(), "inputs", "Inputs");
  link(has_layers(), "words", "Definitions");
  link(true, "again", "Run it again");
  link(true, "about", "About");
  const std::string of_models = subject_in_words(input_.models);
  std::string subject = subject_in_words(settings_, overview_.points);
  subject += subject.empty() || of_models.empty() ? of_models : ". " + of_models;
  html_ += page_head(input_.title, links, script_sources(), subject + (subject.empty() ? "" : "."));
}

/// Removes the line breaks that a terminal needs, and formats numbers as the rest of the page does.
std::string on_one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  text.erase(text.find_last_not_of(' ') + 1);
  return for_page(text);
}

/// Returns "flux,te": the implementations next to the schedules of a point.
std::string implementations_of(const std::vector<TracedRun>& runs) {
  std::string names;
  for (const TracedRun& run : runs) {
    names += run.row.implements.empty() ? "" : (names.empty() ? "" : ",") + run.row.strategy;
  }
  return names;
}

/// Returns the decisive point, else the largest one. Requires a point with a result.
const RowRange& Page::shown_point() const { return overview_.decisive ? *overview_.decisive : *overview_.largest; }

/// Returns the point of a row, with its setting if there are several settings.
std::string Page::place_in_words(const ResultRow& row) const {
  std::string place = point_of(row);
  if (overview_.settings.size() == 1) {
    return place;
  }
  place += settings_.values("Batch").size() > 1 ? ", batch " + format_count(row.batch) : "";
  place += settings_.values("Dtype").size() > 1 ? ", " + row.dtype : "";
  if (settings_.conditions.size() > 1) {
    for (const std::string& words : unusual(row)) {
      place += ", " + words;
    }
  }
  return fmt::format("{} of {} {} on {}", place, row.model, row.scope, machine_in_words(row));
}

/// Returns a sentence such as "Overlap saves 22.9% of serial's time at ranks 8, seq 32K." about ideal schedules, whose
/// verdict compares them with each other.
std::string saving_in_words(const PayVerdict& verdict, std::string_view where, std::string_view interval) {
  const std::string share = percent(std::abs(verdict.saved));
  return fmt::format("Overlap {} at {}{}{}.",
                     verdict.saved < 0.0 ? fmt::format("takes {} more time than serial", share)
                                         : fmt::format("saves {} of serial's time", share),
                     where, interval, verdict.pays == Pays::close ? ", too close to call" : "");
}

/// Returns why the page shows and explains this point; empty for a point that the user chose.
std::string Page::reason_of(const ResultRow& row) const {
  const auto is_at = [&](const std::optional<RowRange>& range) {
    const ResultRow other = range ? input_.rows[range->first] : ResultRow{};
    return range && point_of(other) == point_of(row) && setting_title(other) == setting_title(row);
  };
  const bool has_savings = overview_.savings.points > 0;
  return overview_.points < 2         ? ""
         : is_at(overview_.loss)      ? "where overlap loses most"
         : !is_at(overview_.decisive) ? is_at(overview_.largest)    ? "the largest point"
                                        : is_at(overview_.smallest) ? "the smallest point"
                                                                    : ""
         : has_savings                ? "where overlap saves most"
                                      : "where the fastest has the largest lead";
}

/// Returns "ranks 8, seq 32K: where overlap saves most".
std::string Page::title_of(const std::vector<TracedRun>& runs) const {
  if (runs.empty()) {
    return {};
  }
  const bool is_measured = std::ranges::any_of(runs, &TracedRun::measured);
  const std::string reason = is_measured ? "the measured point" : reason_of(runs.front().row);
  return place_in_words(runs.front().row) + (reason.empty() ? "" : ": ") + reason;
}

/// Returns whether the study is on the point of this row. Requires a study with runs.
bool Page::is_studied(const ResultRow& row) const {
  const ResultRow& studied = input_.study->runs.front().row;
  return point_of(studied) == point_of(row) && setting_title(studied) == setting_title(row);
}

/// Formats the interval of the saving at this point as " (90% interval: 15.2% to 29.9%)"; empty if it is unknown.
std::string Page::interval_at(const ResultRow& row) const {
  if (!input_.study || !input_.study->saving || input_.study->runs.empty()) {
    return {};
  }
  const SavingInterval& saving = *input_.study->saving;
  return saving.next == "serial" && is_studied(row)
             ? fmt::format(" (90% interval: {} to {})", percent(saving.low), percent(saving.high))
             : std::string{};
}

/// States which rows do not fit in memory, then the verdict that `run -o verdict` prints for the decisive point.
std::string Page::first_sentence() const {
  if (!has_layers()) {
    return models_sentence(input_.models, input_.rule);
  }
  if (!overview_.largest) {
    return "No point has a result.";
  }
  const std::vector<ResultRow> rows = results_of(shown_point());
  const std::string text = on_one_line(verdict(rows, input_.rule));
  const std::string memory = overview_.memory + (overview_.memory.empty() ? "" : " ");
  const PointView point = view_of(rows, input_.rule);
  const std::optional<PayVerdict> pays = pay_verdict(point.ranking, input_.rule);
  if (pays && pays->overlap->implements.empty() && point.ranking.size() > 2) {
    const ResultRow& row = rows.front();
    return fmt::format("{}{} {}", memory, saving_in_words(*pays, place_in_words(row), interval_at(row)), text);
  }
  return memory + (overview_.points == 1 ? text : fmt::format("At {}: {}", place_in_words(rows.front()), text));
}

/// Returns the sentence on all points together; empty if tiles show the same.
std::string Page::second_sentence() const {
  if (!has_layers()) {
    const std::string best = best_plan(input_.models, input_.rule);
    const PlanSavings savings = plan_savings(input_.models, input_.rule);
    return savings.count.points < 2 ? models_sum(input_.models, input_.rule) : best + (best.empty() ? "" : ".");
  }
  return overview_.savings.points > 1 ? std::string{} : on_one_line(overview_.wins_words);
}

/// Returns "commfuse saves 12.3% of the time of serial (90% interval: 10.1% to 14.4%)."
std::string interval_in_words(const SavingInterval& saving) {
  return fmt::format("{} saves {} of the time of {} (90% interval: {} to {}).", saving.winner, percent(saving.saved),
                     saving.next, percent(saving.low), percent(saving.high));
}

/// Returns whether the first sentence has this interval: as the interval of ideal schedules, or in the verdict on an
/// implementation. That verdict may compare the same two schedules the other way around.
bool Page::has_stated(const SavingInterval& saving) const {
  const std::string sentence = first_sentence();
  if (sentence.find("(90% interval: ") != std::string::npos) {
    return true;
  }
  const std::vector<ResultRow> rows = results_of(shown_point());
  const std::optional<PayVerdict> pays = pay_verdict(view_of(rows, input_.rule).ranking, input_.rule);
  if (!pays || !is_studied(*pays->overlap) || sentence.find("(90% interval ") == std::string::npos) {
    return false;
  }
  const std::pair compared{label_of(*pays->overlap), label_of(*pays->serial)};
  return compared == std::pair{saving.winner, saving.next} || compared == std::pair{saving.next, saving.winner};
}

/// Returns the certainty of the explained point; for a single point without an interval, its exposed time.
std::string Page::point_sentence() const {
  if (!overview_.largest) {
    return {};
  }
  if (input_.study && input_.study->saving && !input_.study->runs.empty()) {
    const SavingInterval& saving = *input_.study->saving;
    return has_stated(saving)
               ? std::string{}
               : fmt::format("At {}, {}", place_in_words(input_.study->runs.front().row), interval_in_words(saving));
  }
  if (overview_.points > 1) {
    return {};
  }
  const std::vector<ResultRow> rows = rows_of(*overview_.largest);
  const ResultRow& best = *view_of(rows, input_.rule).ranking.front();
  const auto text = [](Duration duration) { return TimeUnit(duration).text(duration); };
  return fmt::format("{} leaves {} of its {} exposed; with free communication it would take {}.", label_of(best),
                     text(best.analysis.critical.exposed), text(makespan_of(best)), text(best.ideal));
}

/// Returns whether the page states a 90% interval: the interval of the study, or the interval in the verdict.
bool Page::has_interval() const {
  if (input_.study && input_.study->saving) {
    return true;
  }
  if (!overview_.largest) {
    return false;
  }
  const std::vector<ResultRow> rows = results_of(shown_point());
  const std::optional<PayVerdict> pays = pay_verdict(view_of(rows, input_.rule).ranking, input_.rule);
  return pays && pays->overlap->saving_error;
}

/// Returns whether a time of the shown point has an error; none has one under --uncertainty off.
bool Page::has_error() const {
  return std::ranges::any_of(results_of(shown_point()),
                             [](const ResultRow& row) { return row.makespan_error.has_value(); });
}

/// Explains the words of the verdict to readers who are new to them.
std::string Page::terms() const {
  constexpr std::string_view overlap = "Overlap hides communication under computation";
  const std::string rule = fmt::format("To pay or lose, overlap needs {}; everything else is too close to call.",
                                       rule_in_words(input_.rule));
  if (!has_layers()) {
    const PlanSavings savings = plan_savings(input_.models, input_.rule);
    return savings.decisive ? fmt::format("{}; {} is the baseline. {}", overlap, savings.baseline, rule)
                            : std::string{};
  }
  if (!overview_.largest) {
    return {};
  }
  const std::vector<ResultRow> rows = results_of(shown_point());
  std::string text;
  if (overview_.savings.points > 0) {
    text = fmt::format("{}; serial, the baseline, hides none. {}", overlap, rule);
  }
  if (std::ranges::any_of(rows, [](const ResultRow& row) { return row.bound; })) {
    text += fmt::format("{}No implementation reaches a bound: bounds are shown for comparison and never win.",
                        text.empty() ? "" : " ");
  }
  return text;
}

void Page::summary_section() {
  section("verdict", "Verdict");
  // Rows that do not fit in memory come first: they cannot be run, however much they would save.
  const std::string memory = has_layers() ? std::string{} : memory_sentence(input_.models);
  for (const std::string& sentence : {memory, first_sentence(), second_sentence()}) {
    html_ += sentence.empty() ? "" : fmt::format("<p class=\"lead\">{}</p>\n", escaped(sentence));
  }
  tiles();
  const auto quiet = [&](const std::string& sentence) {
    html_ += sentence.empty() ? "" : fmt::format("<p class=\"quiet\">{}</p>\n", escaped(sentence));
  };
  quiet(point_sentence());
  quiet(terms());
  html_ += savings_tables(overview_);
  if (overview_.largest && !has_interval() && !has_error()) {
    html_ += "<p class=\"note\">No 90% interval: these results were made with --uncertainty off.</p>\n";
  }
  for (const std::string& note : input_.notes) {
    add("<p class=\"note\">{}</p>\n", escaped(note));
  }
  if (!no_charts().empty()) {
    add("<p class=\"note\">Except for timelines and the table, the figures of this report are static: {}.</p>\n",
        no_charts());
  }
  html_ += "</section>\n";
}

/// Returns "it loses at 2, too close to call at 4".
std::string rest_in_words(const SavingCount& count) {
  return fmt::format("{}{}{}", count.loses > 0 ? fmt::format("it loses at {}", size_with_commas(count.loses)) : "",
                     count.loses > 0 && count.close > 0 ? ", " : "",
                     count.close > 0 ? fmt::format("too close to call at {}", size_with_commas(count.close)) : "");
}

/// Adds tiles with the main numbers on the saving of overlap.
void Page::saving_tiles() {
  const SavingCount& count = overview_.savings;
  const std::vector<ResultRow> rows = results_of(overview_.best ? *overview_.best : shown_point());
  const PointView point = view_of(rows, input_.rule);
  const std::optional<PayVerdict> shown = pay_verdict(point.ranking, input_.rule);
  if (count.points > 1) {
    tile("Median saving", with_minus(percent(count.median)),
         fmt::format("of serial's time; middle 80% of points: {} to {}", with_minus(percent(count.low)),
                     with_minus(percent(count.high))));
  }
  if (shown) {
    const bool loses = shown->saved < 0.0;
    const char* name = count.points == 1 ? loses ? "Lost against serial" : "Saved against serial"
                       : loses           ? "Lost at least"
                                         : "Saved at best";
    tile(name, percent(std::abs(shown->saved)),
         fmt::format("of serial's time by {}, {}", label_of(*shown->overlap), place_in_words(*shown->overlap)));
  }
  if (count.points > 1) {
    tile("Overlap pays at", fmt::format("{} of {}", size_with_commas(count.pays), size_with_commas(count.points)),
         count.pays == count.points ? "points; it loses at none" : fmt::format("points; {}", rest_in_words(count)));
  }
}

void Page::winner_tile() {
  const std::vector<Wins>& wins = overview_.wins;
  if (wins.empty() && overview_.points == 1) {
    const std::vector<ResultRow> rows = rows_of(shown_point());
    std::vector<std::string> names;
    for (const ResultRow* row : view_of(rows, input_.rule).front) {
      names.push_back(row->strategy);
    }
    tile("Fastest strategy", "a tie", "of " + names_in_words(names));
    return;
  }
  tile("Fastest strategy", wins.empty() ? "none wins" : wins.front().strategy,
       overview_.points == 1
           ? place_in_words(input_.rows[overview_.largest->first])
           : fmt::format("wins at {} of {} points", wins.empty() ? 0 : wins.front().points, overview_.points));
}

void Page::exposed_tile() {
  const std::vector<ResultRow> rows = rows_of(shown_point());
  const ResultRow& best = *view_of(rows, input_.rule).ranking.front();
  const Duration exposed = best.analysis.critical.exposed;
  tile("Exposed", TimeUnit(exposed).text(exposed),
       fmt::format("{} of the time of {}, {}", percent(to_seconds(exposed) / to_seconds(makespan_of(best))),
                   label_of(best), place_in_words(best)));
}

/// Adds the tiles of whole models: each plan with its own baseline.
void Page::model_tiles() {
  const PlanSavings savings = plan_savings(input_.models, input_.rule);
  if (!savings.decisive) {
    return;
  }
  const auto plans = plans_of(input_.models);
  const PlanSaving shown = *plan_saving(plans[*savings.best], input_.rule);
  const SavingCount& count = savings.count;
  const std::string share_of = fmt::format("of {}'s time", savings.baseline);
  html_ += "<dl class=\"tiles\">\n";
  if (count.points > 1) {
    tile("Median saving", with_minus(percent(count.median)),
         fmt::format("{}; middle 80% of plans: {} to {}", share_of, with_minus(percent(count.low)),
                     with_minus(percent(count.high))));
  }
  const std::string place = count.points > 1 ? plan_heading(*shown.overlap)
                                             : fmt::format("{} GPUs, seq {}", shown.overlap->count("gpus"),
                                                           format_count(shown.overlap->count("seq")));
  tile(shown.saved < 0.0  ? count.points > 1 ? "Lost at least" : "Lost"
       : count.points > 1 ? "Saved at best"
                          : "Saved",
       percent(std::abs(shown.saved)),
       fmt::format("of {}'s time by {}, {}", shown.baseline->text("strategy"), shown.overlap->text("strategy"), place));
  if (count.points > 1) {
    tile("Overlap pays at", fmt::format("{} of {}", size_with_commas(count.pays), size_with_commas(count.points)),
         count.pays == count.points ? "plans; it loses at none" : fmt::format("plans; {}", rest_in_words(count)));
  }
  html_ += "</dl>\n";
}

void Page::tiles() {
  if (!has_layers()) {
    model_tiles();
  }
  if (!overview_.largest) {
    return;
  }
  html_ += "<dl class=\"tiles\">\n";
  saving_tiles();
  if (overview_.savings.points < 2) {
    winner_tile();
    exposed_tile();
  }
  const ResultRow peak = input_.rows[*overview_.highest_mfu];
  tile("Highest MFU", percent(peak.mfu), fmt::format("{}, {}", label_of(peak), place_in_words(peak)));
  html_ += "</dl>\n";
}

/// Lists the lanes of the runs: "compute, aux (small kernels), copy (copy engines)".
std::string lanes_in_words(const std::vector<std::vector<TracedRun>>& gantts) {
  constexpr std::array<std::pair<LaneKind, std::string_view>, 5> words{{
      {LaneKind::compute, "compute"},
      {LaneKind::aux, "aux (small kernels)"},
      {LaneKind::comm, "comm (communication kernels)"},
      {LaneKind::copy, "copy (copy engines)"},
      {LaneKind::kernel, "kernel (data that the compute kernel moves)"},
  }};
  std::string text;
  for (const auto& [kind, word] : words) {
    const bool is_present = std::ranges::any_of(gantts, [&, lane = kind](const std::vector<TracedRun>& runs) {
      return std::ranges::any_of(runs, [&](const TracedRun& run) {
        return std::ranges::any_of(run.program->lanes, [&](const Lane& candidate) { return candidate.kind == lane; });
      });
    });
    text += is_present ? fmt::format("{}{}", text.empty() ? "" : ", ", word) : "";
  }
  return text;
}

void Page::time_section() {
  if (input_.gantts.empty()) {
    return;
  }
  section("time", "Where the time goes");
  add("<p class=\"quiet\">Each strategy is shown on the rank that finishes last. Lanes: {}. The number on a bar is the "
      "part of the buffer that the op writes.</p>\n"
      "<p class=\"note scripted\">Click a timeline; then the wheel zooms, dragging moves, and the arrow keys go from "
      "op "
      "to op.</p>\n",
      lanes_in_words(input_.gantts));
  for (std::size_t i = 0; i < input_.gantts.size(); ++i) {
    if (!input_.gantts[i].empty()) {
      timeline(input_.gantts[i], i);
    }
  }
  html_ += "</section>\n";
}

/// Adds a timeline. The first timeline and measured timelines are open; others are folded.
void Page::timeline(const std::vector<TracedRun>& runs, std::size_t index) {
  const ResultRow& row = runs.front().row;
  const std::string title = title_of(runs);
  const Figure figure = gantt_figure(runs, fmt::format("gantt-{}", index + 1), input_.rule);
  const bool is_folded = index > 0 && std::ranges::none_of(runs, &TracedRun::measured);
  html_ += is_folded    ? fmt::format("<details><summary>Timeline of {}</summary>\n", escaped(title))
           : index == 0 ? fmt::format("<div>\n<h3>{}</h3>\n", escaped(title))
                        : fmt::format("<div class=\"screen\">\n<h3>{}</h3>\n", escaped(title));
  html_ += charts_.add_timeline(figure, "Timeline, " + title, timeline_block(runs, figure.id, figure.title),
                                input_.gantts.size() > 1 ? place_in_words(row) : std::string{});
  if (!input_.page.empty()) {
    add("<p class=\"screen\"><a href=\"{}\">Change this point in the page</a></p>\n",
        escaped(input_.page + page_hash(row, implementations_of(runs))));
  }
  html_ += is_folded ? "</details>\n" : "</div>\n";
}

/// Returns settings with a map, in the order of the rows; if there are many, a few that are evenly spaced from the
/// largest saving to the smallest.
std::vector<const Overview::Setting*> Page::shown_settings() const {
  std::vector<const Overview::Setting*> candidates;
  for (const Overview::Setting& setting : overview_.settings) {
    if (setting.points > 1) {
      candidates.push_back(&setting);
    }
  }
  std::vector<const Overview::Setting*> sorted = candidates;
  std::ranges::stable_sort(sorted, std::ranges::greater{},
                           [](const Overview::Setting* setting) { return setting->savings.median; });
  std::vector<const Overview::Setting*> shown;
  for (const std::size_t index : spread({.count = sorted.size(), .kept = max_settings})) {
    shown.push_back(sorted[index]);
  }
  std::ranges::sort(shown, {}, [](const Overview::Setting* setting) { return setting->rows.first; });
  return shown;
}

void Page::map_section() {
  if (!has_maps()) {
    return;
  }
  section("ahead", overview_.savings.points > 0 ? "Where overlap pays" : "Who wins where");
  if (std::ranges::any_of(overview_.settings, [&](const Overview::Setting& setting) { return has_gaps(setting); })) {
    html_ += "<p class=\"quiet\">Crossed out: no result.</p>\n";
  }
  std::size_t number = 0;
  const std::vector<const Overview::Setting*> shown = shown_settings();
  for (const Overview::Setting* setting : shown) {
    // Two maps fit on paper.
    add("<div{}>\n", ++number > 2 ? " class=\"screen\"" : "");
    maps_of(*setting, number);
    html_ += "</div>\n";
  }
  const auto candidates = static_cast<std::size_t>(
      std::ranges::count_if(overview_.settings, [](const Overview::Setting& setting) { return setting.points > 1; }));
  if (shown.size() < candidates) {
    add("<p class=\"note\">{}.</p>\n",
        charts_.leave_out(fmt::format("Maps of {} settings of {}, evenly spaced{}", shown.size(), candidates,
                                      overview_.savings.points > 0 ? " from the largest saving to the smallest" : "")));
  }
  html_ += winners_;
  html_ += "</section>\n";
}

/// Returns whether any row of the setting has no result.
bool Page::has_gaps(const Overview::Setting& setting) const {
  const auto& times = input_.rows.columns().makespan;
  for (std::size_t row = setting.rows.first; row < setting.rows.first + setting.rows.count; ++row) {
    if (times[input_.rows.place_of(row)] <= 0) {
      return true;
    }
  }
  return false;
}

void Page::maps_of(const Overview::Setting& setting, std::size_t number) {
  const std::vector<ResultRow> rows = rows_of(setting.rows);
  if (overview_.settings.size() > 1) {  // The page names a single setting below its title.
    add("<h3>{}</h3>\n", escaped(setting.title));
  }
  html_ += "<div class=\"maps\">\n";
  const bool has_savings = setting.savings.points > 0;
  if (has_savings) {
    const Figure figure = saving_map(rows, fmt::format("saving-{}", number), input_.rule);
    html_ += charts_.add(figure, "What overlap saves, " + setting.title, subject_of(setting));
  }
  for (const CrossoverMap& map : reports::maps_of(std::span(rows), input_.rule)) {
    if (map.strategies.size() > 1 || !has_savings) {
      html_ += charts_.add(winner_figure(map, fmt::format("winners-map-{}", number)), "Winners, " + setting.title,
                           subject_of(setting));
    }
  }
  html_ += "</div>\n";
}

std::vector<std::string> strategies_of(std::span<const ResultRow> rows) {
  std::vector<std::string> names;
  for (const ResultRow& row : rows) {
    if (std::find(names.begin(), names.end(), row.strategy) == names.end()) {
      names.push_back(row.strategy);
    }
  }
  return names;
}

void Page::add_plot_figures(std::vector<Figure>& figures) const {
  if (input_.study && input_.study->roofline && !input_.study->roofline->gemms.empty()) {
    figures.push_back(roofline_figure(*input_.study->roofline));
  }
  const std::string ours = "commfuse";
  std::size_t number = 0;
  for (const Overview::Setting* setting : shown_settings()) {
    ++number;
    const std::vector<ResultRow> rows = rows_of(setting->rows);
    const std::vector<std::string> strategies = strategies_of(rows);
    const auto add_figure = [&, subject = subject_of(*setting)](const Figure& figure) {
      figures.push_back(with_subject(figure, subject));
    };
    if (const auto lead = lead_figure(rows, ours, fmt::format("lead-{}", number), input_.rule)) {
      add_figure(*lead);
    }
    if (strategies.size() > 1 && std::find(strategies.begin(), strategies.end(), ours) != strategies.end()) {
      add_figure(mfu_difference(rows, ours, fmt::format("difference-{}", number), input_.rule));
    }
    for (std::size_t i = 0; i < strategies.size(); ++i) {
      add_figure(mfu_heatmap(rows, strategies[i], fmt::format("mfu-{}-{}", number, i + 1)));
    }
  }
}

/// Returns the first rows of the printed points: evenly spaced points of the table without scripts, and the
/// point of the verdict.
std::vector<std::size_t> Page::points_on_paper() const {
  const RowTable::Groups points = input_.rows.runs(input_.rows.point_columns());
  std::vector<std::size_t> candidates;
  for (std::size_t i = 0; i + 1 < points.size() && (i == 0 || points[i + 1] <= max_rows); ++i) {
    candidates.push_back(points[i]);
  }
  if (candidates.empty()) {
    return candidates;
  }
  const std::size_t rows_of_point = std::max<std::size_t>(1, points[1] - points[0]);
  std::vector<std::size_t> chosen;
  for (const std::size_t index :
       spread({.count = candidates.size(), .kept = std::max<std::size_t>(1, max_rows_on_paper / rows_of_point)})) {
    chosen.push_back(candidates[index]);
  }
  if (overview_.decisive && std::ranges::find(candidates, overview_.decisive->first) != candidates.end() &&
      std::ranges::find(chosen, overview_.decisive->first) == chosen.end()) {
    const auto near = std::lower_bound(chosen.begin(), chosen.end(), overview_.decisive->first);
    *(near == chosen.end() ? near - 1 : near) = overview_.decisive->first;
  }
  return chosen;
}

void Page::table_section() {
  section("results", "All results");
  add("<p class=\"quiet\">Time = compute + slicing + stretch + local + exposed; exposed = head + bubble + tail "
      "\xe2\x88\x92 local (<a href=\"#words\">definitions</a>). \xe2\x96\xb8 the fastest, \xe2\x89\x88 "
      "<a href=\"#def-tie\">tied</a> for the fastest.</p>\n");
  if (page_rows_.points > 0) {
    add("<p class=\"note\">This page has {} of {} rows, from {} points evenly spaced over {}. The text above the table "
        "covers every point; results.csv has every row, and commfuse-sim results FOLDER --where selects some.</p>\n",
        size_with_commas(page_rows_.rows.size()), size_with_commas(input_.rows.size()),
        size_with_commas(page_rows_.points), size_with_commas(page_rows_.all_points));
  }
  html_ += "<div id=\"all-rows\"></div>\n<div id=\"first-rows\">\n";
  RowLimits limits{.on_screen = max_rows, .on_paper = points_on_paper()};
  std::size_t shown = 0;
  for (const Overview::Setting& setting : overview_.settings) {
    if (limits.on_screen == 0) {
      break;
    }
    limits.first_row = setting.rows.first;
    html_ += results_table(setting.title, rows_of(setting.rows), limits, input_.rule);
    limits.on_screen -= std::min(limits.on_screen, setting.rows.count);
    ++shown;
  }
  if (input_.rows.size() > max_rows_on_paper) {
    html_ += "<p class=\"note paper\">In print, only some evenly spaced points are shown; the page has more.</p>\n";
  }
  if (shown < overview_.settings.size()) {
    const std::size_t more = overview_.settings.size() - shown;
    add("<p class=\"note\">{} more setting{} in the CSV and JSON of these results.</p>\n", more,
        more == 1 ? " is" : "s are");
  }
  if (overview_.settings.empty()) {
    html_ += "<p>There are no results.</p>\n";
  }
  html_ += "</div>\n</section>\n";
}

void Page::input_section() {
  section("inputs", "Inputs");
  html_ += settings_html(settings_);
  html_ +=
      "<h3>What the numbers depend on</h3>\n"
      "<p>Every parameter of the model states its source. Numbers are predictions, only as good as the weakest kind of "
      "source behind them.</p>\n";
  html_ += provenances_html(kinds_of(input_.rows));
  html_ += input_.study && input_.study->explanation
               ? parameters_table(*input_.study->explanation, place_in_words(input_.study->explanation->row))
               : std::string{};
  html_ += digests_html(input_.rows);
  html_ += "</section>\n";
  section("words", "Definitions");
  html_ += definitions_html() + "</section>\n";
}

void Page::command_section() {
  section("again", "Run it again");
  add("<pre tabindex=\"0\"><code>{}</code></pre>\n", escaped(input_.command));
  if (input_.command.find("settings.yaml") != std::string::npos) {
    html_ += "<p class=\"note\">settings.yaml is in the folder of the sweep.</p>\n";
  }
  html_ += "</section>\n";
}

void Page::about_section() {
  html_ += "<div class=\"screen\">\n";  // Paper has the page's footer instead.
  section("about", "About");
  add("<p>Made by {}. This file loads nothing from any network. {}</p>\n", escaped(input_.version),
      no_charts().empty() ? "Charts are drawn by Apache ECharts, with zrender and tslib, which are part of this file; "
                            "commfuse is under the Apache License 2.0. Colours by Okabe and Ito (2008)."
                          : fmt::format("This program was built without the chart library: {}.", no_charts()));
  html_ += no_charts().empty() ? "<details><summary>Licences and notices</summary><pre id=\"licences\" "
                                 "class=\"licences\" tabindex=\"0\">Shown only if scripts run.</pre></details>\n"
                               : "";
  html_ += "</section>\n</div>\n<div id=\"announced\" class=\"unseen\" aria-live=\"polite\"></div>\n";
}

}  // namespace

void write_html_report(const ReportInput& input, const TakeBytes& take) { Page(input).write(take); }

std::string html_report(const ReportInput& input) {
  std::string html;
  write_html_report(input, [&](std::string_view bytes) { html += bytes; });
  return html;
}

ReportFigures report_figures(const ReportInput& input) { return Page(input).figures(); }

}  // namespace commfuse::reports
