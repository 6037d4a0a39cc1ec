// SPDX-License-Identifier: Apache-2.0
#include "reports/html/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

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
#include "reports/point_rows.h"
#include "reports/savings.h"
#include "reports/step_rows.h"

namespace commfuse::reports {

namespace {

// What stands in the page without scripts, and on paper; the table that scripts make has every row.
constexpr std::size_t most_rows = 400;
constexpr std::size_t most_rows_on_paper = 42;
constexpr std::size_t most_settings = 4;
constexpr std::size_t most_digests = 60;

class Page {
 public:
  explicit Page(const ReportInput& input)
      : input_(input),
        overview_(input.overview ? *input.overview : own_.emplace(overview_of(input.rows, input.rule))),
        page_rows_(page_rows(input.rows)),
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
    take(page_foot(fmt::format("{} \u00b7 model version {} \u00b7 rows of form {}", input_.version, model_version,
                               result_schema)));
  }
  /// Returns the figures of the page, then those that only `plot` shows.
  std::vector<Figure> figures() {
    sections();
    std::vector<Figure> figures = charts_.figures();
    add_more(figures);
    return figures;
  }

 private:
  void sections() {
    open();
    summary_section();
    map_section();
    time_section();
    html_ += input_.study ? study_section(*input_.study, charts_) : std::string{};
    html_ += agreement_section(input_.measured, charts_);
    if (has_layers()) {
      table_section();
    }
    html_ += models_section(input_.models, has_layers(), charts_, input_.rule);
    html_ += fits_section(input_.fits, charts_);
    if (has_layers()) {
      input_section();
    }
    again_section();
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
  [[nodiscard]] std::string where(const ResultRow& row) const;
  [[nodiscard]] bool has_interval() const;
  void tiles();
  void saving_tiles();
  void model_tiles();
  void winner_tile();
  void exposed_tile();
  void time_section();
  void map_section();
  void maps_of(const Overview::Setting& setting, std::size_t number);
  [[nodiscard]] std::vector<const Overview::Setting*> shown_settings() const;
  void add_more(std::vector<Figure>& figures) const;
  void table_section();
  void input_section();
  void again_section();
  void asked();
  void digests();
  void about_section();

  /// A page without any rows says that of layers.
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
  std::optional<Overview> own_;
  const Overview& overview_;
  PageRows page_rows_;
  std::string winners_;
  Charts charts_;
  std::string html_;
};

void Page::open() {
  std::vector<SectionLink> links{{"verdict", "Verdict"}};
  const auto link = [&](bool is_there, std::string_view id, std::string_view text) {
    if (is_there) {
      links.push_back({id, text});
    }
  };
  link(has_maps(), "ahead", overview_.savings.points > 0 ? "Where it pays" : "Who wins where");
  link(!input_.gantts.empty(), "time", "Where the time goes");
  link(input_.study && !input_.study->runs.empty(), "point", "One point");
  link(!input_.measured.empty(), "measured", "Measured");
  link(has_layers(), "results", "All results");
  link(!input_.models.empty(), "models", "Whole models");
  link(!input_.fits.empty(), "fits", "Fits");
  link(has_layers(), "inputs", "Inputs");
  link(has_layers(), "words", "Definitions");
  link(true, "again", "Run it again");
  link(true, "about", "About");
  html_ += page_head(input_.title, links, script_sources());
}

std::string number(std::size_t count) { return with_commas(static_cast<std::int64_t>(count)); }

/// Without the line breaks that a terminal wants.
std::string on_one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

/// "flux,te": those beside the schedules of a point.
std::string implementations_of(const std::vector<TracedRun>& runs) {
  std::string names;
  for (const TracedRun& run : runs) {
    names += run.row.implements.empty() ? "" : (names.empty() ? "" : ",") + run.row.strategy;
  }
  return names;
}

/// The point that decides most, else the largest one. Requires a point with a result.
const RowRange& Page::shown_point() const { return overview_.decisive ? *overview_.decisive : *overview_.largest; }

/// The setting too where there are several.
std::string Page::where(const ResultRow& row) const {
  return overview_.settings.size() == 1
             ? point_of(row)
             : fmt::format("{} {} on {}, {}", row.model, row.scope, machine_in_words(row), point_of(row));
}

/// "overlap saves 22.9% of serial's time": of ideal schedules, whose verdict compares them with each other.
std::string saving_in_words(const PayVerdict& verdict) {
  const std::string share = percent(std::abs(verdict.saved));
  const std::string text = verdict.saved < 0.0 ? fmt::format("overlap takes {} more time than serial", share)
                                               : fmt::format("overlap saves {} of serial's time", share);
  return verdict.pays == Pays::close ? text + ", too close to call" : text;
}

/// What does not fit, then what `run -o verdict` says of the point that decides most.
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
    return memory + fmt::format("At {} {}. {}", where(rows.front()), saving_in_words(*pays), text);
  }
  return memory + (overview_.points == 1 ? text : fmt::format("At {}: {}", where(rows.front()), text));
}

/// Returns the sentence on all points together.
std::string Page::second_sentence() const {
  if (!has_layers()) {
    return models_sum(input_.models, input_.rule);
  }
  const std::string savings = savings_in_words(overview_.savings);
  return savings.empty() ? on_one_line(overview_.wins_words) : savings;
}

/// "commfuse saves 12.3% of the time of serial (95% interval: 10.1% to 14.4%)."
std::string interval_in_words(const SavingInterval& saving) {
  return fmt::format("{} saves {} of the time of {} (95% interval: {} to {}).", saving.winner, percent(saving.saved),
                     saving.next, percent(saving.low), percent(saving.high));
}

/// How sure the point that is taken apart is; of one point alone without an interval, what it leaves exposed.
std::string Page::point_sentence() const {
  if (!overview_.largest) {
    return {};
  }
  if (input_.study && input_.study->saving && !input_.study->runs.empty()) {
    return fmt::format("At {}, {}", where(input_.study->runs.front().row), interval_in_words(*input_.study->saving));
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

/// Of implementations the verdict has one.
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

void Page::summary_section() {
  section("verdict", "Verdict");
  const std::string memory = has_layers() ? std::string{} : memory_sentence(input_.models);
  for (const std::string& sentence : {first_sentence(), second_sentence(), memory}) {
    html_ += sentence.empty() ? "" : fmt::format("<p class=\"lead\">{}</p>\n", escaped(sentence));
  }
  tiles();
  const auto quiet = [&](const std::string& sentence) {
    html_ += sentence.empty() ? "" : fmt::format("<p class=\"quiet\">{}</p>\n", escaped(sentence));
  };
  quiet(point_sentence());
  html_ += savings_tables(overview_, input_.rule);
  if (has_layers() && !has_interval()) {
    html_ += "<p class=\"note\">No interval: it is made of the errors of the parameters, with uncertainty on.</p>\n";
  }
  for (const std::string& note : input_.notes) {
    add("<p class=\"note\">{}</p>\n", escaped(note));
  }
  if (!no_charts().empty()) {
    add("<p class=\"note\">The figures of this report are still pictures, but for timelines and the table: {}.</p>\n",
        no_charts());
  }
  html_ += "</section>\n";
}

/// "loses at 2, too close to call at 4".
std::string rest_in_words(const SavingCount& count) {
  return fmt::format("{}{}{}", count.loses > 0 ? fmt::format("loses at {}", number(count.loses)) : "",
                     count.loses > 0 && count.close > 0 ? ", " : "",
                     count.close > 0 ? fmt::format("too close to call at {}", number(count.close)) : "");
}

/// What overlap saves, in numbers that people repeat.
void Page::saving_tiles() {
  const SavingCount& count = overview_.savings;
  const std::vector<ResultRow> rows = results_of(shown_point());
  const PointView point = view_of(rows, input_.rule);
  const std::optional<PayVerdict> shown = pay_verdict(point.ranking, input_.rule);
  if (count.points > 1) {
    tile("Saved in the median", percent(count.median),
         fmt::format("of serial's time; {} to {} at eight of ten points", percent(count.low), percent(count.high)));
  }
  if (shown) {
    const char* name = count.points == 1 ? "Saved against serial" : "Saved at best";
    tile(shown->saved < 0.0 ? "Lost against serial" : name, percent(std::abs(shown->saved)),
         fmt::format("of serial's time by {}, {}", label_of(*shown->overlap), point_of(*shown->overlap)));
  }
  if (count.points > 1) {
    tile("Overlap pays", fmt::format("{} of {}", number(count.pays), number(count.points)),
         count.pays == count.points ? "points" : fmt::format("points; {}", rest_in_words(count)));
  }
}

void Page::winner_tile() {
  const std::vector<Wins>& wins = overview_.wins;
  tile("Fastest strategy", wins.empty() ? "none wins" : wins.front().strategy,
       overview_.points == 1
           ? point_of(input_.rows[overview_.largest->first])
           : fmt::format("wins at {} of {} points", wins.empty() ? 0 : wins.front().points, overview_.points));
}

void Page::exposed_tile() {
  const std::vector<ResultRow> rows = rows_of(shown_point());
  const ResultRow& best = *view_of(rows, input_.rule).ranking.front();
  const Duration exposed = best.analysis.critical.exposed;
  tile("Exposed", TimeUnit(exposed).text(exposed),
       fmt::format("{} of the time of {}, {}", percent(to_seconds(exposed) / to_seconds(makespan_of(best))),
                   label_of(best), point_of(best)));
}

/// The same of whole models: each plan with its own baseline.
void Page::model_tiles() {
  const PlanSavings savings = plan_savings(input_.models, input_.rule);
  if (!savings.decisive) {
    return;
  }
  const auto plans = plans_of(input_.models);
  const PlanSaving shown = *plan_saving(plans[*savings.decisive], input_.rule);
  const SavingCount& count = savings.count;
  const std::string of = fmt::format("of {}'s time", savings.baseline);
  html_ += "<dl class=\"tiles\">\n";
  if (count.points > 1) {
    tile("Saved in the median", percent(count.median),
         fmt::format("{}; {} to {} at eight of ten plans", of, percent(count.low), percent(count.high)));
  }
  tile(shown.saved < 0.0  ? "Lost"
       : count.points > 1 ? "Saved at best"
                          : "Saved",
       percent(std::abs(shown.saved)),
       fmt::format("{} by {}, {} GPUs, seq {}", of, shown.overlap->text("strategy"), shown.overlap->count("gpus"),
                   format_count(shown.overlap->count("seq"))));
  if (count.points > 1) {
    tile("Overlap pays", fmt::format("{} of {}", number(count.pays), number(count.points)),
         count.pays == count.points ? "plans" : fmt::format("plans; {}", rest_in_words(count)));
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
  tile("Highest MFU", percent(peak.mfu), fmt::format("{}, {}", label_of(peak), point_of(peak)));
  html_ += "</dl>\n";
}

void Page::time_section() {
  if (input_.gantts.empty()) {
    return;
  }
  section("time", "Where the time goes");
  html_ +=
      "<p class=\"quiet\">Each strategy on the rank whose last op ends last. Hatched: exposed time.<span "
      "class=\"screen\"> Click a timeline, then the wheel zooms, dragging moves, and arrow keys go from op to "
      "op.</span></p>\n";
  for (std::size_t i = 0; i < input_.gantts.size(); ++i) {
    const std::vector<TracedRun>& runs = input_.gantts[i];
    if (runs.empty()) {
      continue;
    }
    const ResultRow& row = runs.front().row;
    const std::string point =
        fmt::format("{} {} on {}, {}", row.model, row.scope, machine_in_words(row), point_of(row));
    const Figure figure = gantt_figure(runs, fmt::format("gantt-{}", i + 1), input_.rule);
    add("<div{}>\n<h3>{}</h3>\n{}", i == 0 ? "" : " class=\"screen\"", escaped(point),
        charts_.add_timeline(figure, "Timeline, " + point, timeline_block(runs, figure.id, figure.title)));
    if (!input_.page.empty()) {
      add("<p class=\"screen\"><a href=\"{}\">Change this point in the page</a></p>\n",
          escaped(input_.page + page_hash(row, implementations_of(runs))));
    }
    html_ += "</div>\n";
  }
  html_ += "</section>\n";
}

/// Those with a map; of many some that are evenly spread from the largest saving to the least, in the order of the
/// rows.
std::vector<const Overview::Setting*> Page::shown_settings() const {
  std::vector<const Overview::Setting*> able;
  for (const Overview::Setting& setting : overview_.settings) {
    if (setting.points > 1) {
      able.push_back(&setting);
    }
  }
  std::vector<const Overview::Setting*> sorted = able;
  std::ranges::stable_sort(sorted, std::ranges::greater{},
                           [](const Overview::Setting* setting) { return setting->savings.median; });
  std::vector<const Overview::Setting*> shown;
  for (const std::size_t place : spread(sorted.size(), most_settings)) {
    shown.push_back(sorted[place]);
  }
  std::ranges::sort(shown, {}, [](const Overview::Setting* setting) { return setting->rows.first; });
  return shown;
}

void Page::map_section() {
  if (!has_maps()) {
    return;
  }
  section("ahead", overview_.savings.points > 0 ? "Where overlap pays" : "Who wins where");
  html_ += "<p class=\"quiet\">Grey: too close to call. Crossed: no result.</p>\n";
  std::size_t number = 0;
  const std::vector<const Overview::Setting*> shown = shown_settings();
  for (const Overview::Setting* setting : shown) {
    // Paper has room for two.
    add("<div{}>\n", ++number > 2 ? " class=\"screen\"" : "");
    maps_of(*setting, number);
    html_ += "</div>\n";
  }
  const auto able = static_cast<std::size_t>(
      std::ranges::count_if(overview_.settings, [](const Overview::Setting& setting) { return setting.points > 1; }));
  if (shown.size() < able) {
    add("<p class=\"note\">{} settings of {}, evenly spread from the largest saving to the least.</p>\n", shown.size(),
        able);
  }
  html_ += winners_;
  html_ += "</section>\n";
}

void Page::maps_of(const Overview::Setting& setting, std::size_t number) {
  const std::vector<ResultRow> rows = rows_of(setting.rows);
  add("<h3>{}</h3>\n<div class=\"maps\">\n", escaped(setting.title));
  const bool has_savings = setting.savings.points > 0;
  if (has_savings) {
    const Figure figure = saving_map(rows, fmt::format("saving-{}", number), input_.rule);
    html_ += charts_.add(figure, "What overlap saves, " + setting.title);
  }
  for (const CrossoverMap& map : reports::maps_of(std::span(rows), input_.rule)) {
    if (map.strategies.size() > 1 || !has_savings) {
      html_ += charts_.add(winner_figure(map, fmt::format("winners-map-{}", number)), "Winners, " + setting.title);
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

void Page::add_more(std::vector<Figure>& figures) const {
  if (input_.study && input_.study->roofline && !input_.study->roofline->products.empty()) {
    figures.push_back(roofline_figure(*input_.study->roofline));
  }
  const std::string own = "commfuse";
  std::size_t number = 0;
  for (const Overview::Setting* setting : shown_settings()) {
    ++number;
    const std::vector<ResultRow> rows = rows_of(setting->rows);
    const std::vector<std::string> strategies = strategies_of(rows);
    if (const auto lead = lead_figure(rows, own, fmt::format("lead-{}", number), input_.rule)) {
      figures.push_back(*lead);
    }
    if (strategies.size() > 1 && std::find(strategies.begin(), strategies.end(), own) != strategies.end()) {
      figures.push_back(mfu_difference(rows, own, fmt::format("difference-{}", number), input_.rule));
    }
    for (std::size_t i = 0; i < strategies.size(); ++i) {
      figures.push_back(mfu_heatmap(rows, strategies[i], fmt::format("mfu-{}-{}", number, i + 1)));
    }
  }
}

void Page::table_section() {
  section("results", "All results");
  add("<p class=\"quiet\">{} is {} + {} + {} + {} + {}, and {} is {} + {} + {} \xe2\x88\x92 {}. \xe2\x96\xb8 fastest; "
      "\xe2\x89\x88 {}.</p>\n",
      defined("time"), defined("compute"), defined("slicing"), defined("stretch"), defined("local"), defined("exposed"),
      defined("exposed"), defined("head"), defined("bubble"), defined("tail"), defined("local"), defined("tie"));
  if (page_rows_.points > 0) {
    add("<p class=\"note\">This page holds {} of {} rows: those of {} points, evenly spread over {}. What stands above "
        "the "
        "table counts every point; results.csv has every row, and commfuse-sim results FOLDER --where finds "
        "some.</p>\n",
        number(page_rows_.rows.size()), number(input_.rows.size()), number(page_rows_.points),
        number(page_rows_.all_points));
  }
  html_ += "<div id=\"all-rows\"></div>\n<div id=\"first-rows\">\n";
  RowLimits left{.on_screen = most_rows, .on_paper = most_rows_on_paper};
  std::size_t shown = 0;
  for (const Overview::Setting& setting : overview_.settings) {
    if (left.on_screen == 0) {
      break;
    }
    html_ += results_table(setting.title, rows_of(setting.rows), left, input_.rule);
    left.on_screen -= std::min(left.on_screen, setting.rows.count);
    left.on_paper -= std::min(left.on_paper, setting.rows.count);
    ++shown;
  }
  if (input_.rows.size() > most_rows_on_paper) {
    html_ += "<p class=\"note paper\">Paper shows the first points; the page itself has more.</p>\n";
  }
  if (shown < overview_.settings.size()) {
    add("<p class=\"note\">{} more settings are in the CSV and JSON of these results.</p>\n",
        overview_.settings.size() - shown);
  }
  if (overview_.settings.empty()) {
    html_ += "<p>There are no results.</p>\n";
  }
  html_ += "</div>\n</section>\n";
}

/// Each different text once, in the order of first appearance; `columns` are what it is made of.
std::vector<std::string> distinct(const RowTable& rows, const RowTable::Columns& columns,
                                  const std::function<std::string(const ResultRow&)>& text) {
  std::set<std::string> known;
  std::vector<std::string> values;
  const RowTable::Groups groups = rows.groups(columns);
  std::uint32_t next = 0;
  for (std::size_t row = 0; row < groups.size(); ++row) {
    if (groups[row] == next) {
      ++next;
      if (std::string value = text(rows[row]); known.insert(value).second) {
        values.push_back(std::move(value));
      }
    }
  }
  return values;
}

std::string joined(const std::vector<std::string>& values, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < values.size() && i < most; ++i) {
    text += (i == 0 ? "" : ", ") + values[i];
  }
  return values.size() > most ? fmt::format("{} and {} more", text, values.size() - most) : text;
}

void Page::asked() {
  struct Field {
    const char* name;
    RowTable::Columns columns;
    std::string (*text)(const ResultRow&);
  };
  const RowColumns& of = input_.rows.columns();
  const std::array<Field, 11> fields{{
      {"Model", {&of.model.numbers()}, [](const ResultRow& row) { return row.model; }},
      {"Hardware",
       {&of.hardware.numbers(), &of.link_bandwidth.numbers(), &of.network_bandwidth.numbers()},
       [](const ResultRow& row) { return machine_in_words(row); }},
      {"Scope", {&of.scope.numbers()}, [](const ResultRow& row) { return row.scope; }},
      {"Ranks", {&of.ranks}, [](const ResultRow& row) { return fmt::format("{}", row.ranks); }},
      {"Batch", {&of.batch}, [](const ResultRow& row) { return format_count(row.batch); }},
      {"Sequence length", {&of.seq}, [](const ResultRow& row) { return format_count(row.seq); }},
      {"Dtype", {&of.dtype.numbers()}, [](const ResultRow& row) { return row.dtype; }},
      {"Strategies", {&of.strategy.numbers(), &of.parameters.numbers()}, label_of},
      {"Evaluator", {&of.evaluator.numbers()}, [](const ResultRow& row) { return row.evaluator; }},
      {"Interference",
       {&of.priced_as[price_place(&PricedAs::interference)].numbers()},
       [](const ResultRow& row) { return row.interference; }},
      {"Launch",
       {&of.priced_as[price_place(&PricedAs::launch)].numbers()},
       [](const ResultRow& row) { return row.launch; }},
  }};
  html_ += "<dl class=\"words\">\n";
  for (const Field& field : fields) {
    add("<div><dt>{}</dt><dd>{}</dd></div>\n", field.name,
        escaped(joined(distinct(input_.rows, field.columns, field.text), 24)));
  }
  html_ += "</dl>\n";
}

/// The kinds in "prior+fitted" of all rows.
std::vector<std::string> kinds_of(const RowTable& rows) {
  std::vector<std::string> kinds;
  for (const std::string& all :
       distinct(rows, {&rows.columns().leans_on.numbers()}, [](const ResultRow& row) { return row.leans_on; })) {
    for (std::size_t from = 0; from < all.size();) {
      const std::size_t to = std::min(all.find('+', from), all.size());
      kinds.push_back(all.substr(from, to - from));
      from = to + 1;
    }
  }
  return kinds;
}

void Page::digests() {
  const RowColumns& of = input_.rows.columns();
  const std::vector<std::string> all = distinct(
      input_.rows, {&of.strategy.numbers(), &of.parameters.numbers(), &of.ranks, &of.schedule_sha256.numbers()},
      [](const ResultRow& row) {
        return fmt::format("{}, {} ranks: {}", label_of(row), row.ranks, row.schedule_sha256);
      });
  add("<details><summary>SHA-256 of the schedules ({})</summary>\n<ul>\n", all.size());
  for (std::size_t i = 0; i < all.size() && i < most_digests; ++i) {
    add("<li><code>{}</code></li>\n", escaped(all[i]));
  }
  html_ += all.size() > most_digests ? "<li>the others are in the CSV and JSON</li>\n</ul></details>\n"
                                     : "</ul></details>\n";
}

void Page::input_section() {
  section("inputs", "Inputs, and how sure they are");
  asked();
  html_ +=
      "<h3>What the numbers depend on</h3>\n<p>Every parameter of the model says where it comes from. Numbers are "
      "predictions; "
      "they are as good as the weakest kind behind them.</p>\n";
  html_ += provenances_html(kinds_of(input_.rows));
  html_ += input_.study && input_.study->explanation ? parameters_table(*input_.study->explanation) : std::string{};
  digests();
  html_ += "</section>\n";
  section("words", "How the numbers are defined");
  html_ += definitions_html() + "</section>\n";
}

void Page::again_section() {
  section("again", "Run it again");
  add("<pre tabindex=\"0\"><code>{}</code></pre>\n</section>\n", escaped(input_.command));
}

void Page::about_section() {
  section("about", "About this report");
  add("<p>Made by {}. The page asks nothing of any network, and only its own scripts run. Colours are those of Okabe "
      "and "
      "Ito (2008).</p>\n",
      escaped(input_.version));
  html_ += no_charts().empty()
               ? "<p>Charts are drawn by Apache ECharts, with zrender and tslib, which are part of this file; commfuse "
                 "itself is under the Apache License 2.0.</p>\n<details><summary>Licences and notices</summary><pre "
                 "id=\"licences\" class=\"licences\" tabindex=\"0\">They are shown where scripts run.</pre></details>\n"
               : fmt::format("<p>This program holds no chart library: {}.</p>\n", no_charts());
  html_ += "</section>\n<div id=\"announced\" class=\"unseen\" aria-live=\"polite\"></div>\n";
}

}  // namespace

void write_html_report(const ReportInput& input, const TakeBytes& take) { Page(input).write(take); }

std::string html_report(const ReportInput& input) {
  std::string html;
  write_html_report(input, [&](std::string_view bytes) { html += bytes; });
  return html;
}

std::vector<Figure> report_figures(const ReportInput& input) { return Page(input).figures(); }

}  // namespace commfuse::reports
