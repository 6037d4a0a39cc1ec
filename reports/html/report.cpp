// SPDX-License-Identifier: Apache-2.0
#include "reports/html/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "model/text/quantity.h"
#include "reports/comparison.h"
#include "reports/crossover.h"
#include "reports/figure/crossing.h"
#include "reports/figure/gantt.h"
#include "reports/figure/heatmap.h"
#include "reports/figure/markup.h"
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
#include "reports/html/study_sections.h"
#include "reports/html/timeline_block.h"
#include "reports/html/winners.h"
#include "reports/point_rows.h"

namespace commfuse::reports {

namespace {

// What stands in the page without scripts, and on paper; the table that scripts make has every row.
constexpr std::size_t most_rows = 400;
constexpr std::size_t most_settings = 8;
constexpr std::size_t most_digests = 60;

class Page {
 public:
  explicit Page(const ReportInput& input)
      : input_(input),
        overview_(input.overview ? *input.overview : own_.emplace(overview_of(input.rows, input.rule))),
        winners_(winners_section(input.rows, overview_, input.rule)) {}

  void write(const TakeBytes& take) {
    sections();
    take(html_);
    take(charts_.blocks());
    if (has_layers()) {
      write_block(
          "rows", [&](const TakeBytes& take_row) { write_rows_block(input_.rows, overview_, take_row); }, take);
    }
    take(page_scripts());
    take(page_foot(fmt::format("{} \u00b7 model version {} \u00b7 rows of form {}", input_.version, model_version,
                               result_schema)));
  }
  std::vector<Figure> figures() {
    sections();
    return charts_.figures();
  }

 private:
  void sections() {
    open();
    summary_section();
    time_section();
    html_ += input_.study ? study_section(*input_.study, charts_) : std::string{};
    html_ += agreement_section(input_.measured, charts_);
    lead_section();
    html_ += winners_;
    map_section();
    if (has_layers()) {
      table_section();
    }
    html_ += models_section(input_.models, has_layers() ? models_sentence(input_.models, input_.rule) : std::string{},
                            charts_, input_.rule);
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
  void tiles();
  void time_section();
  void lead_section();
  void map_section();
  void maps_of(const Overview::Setting& setting, std::size_t number);
  void table_section();
  void input_section();
  void again_section();
  void asked();
  void digests();
  void about_section();

  /// A page without any rows says that of layers.
  [[nodiscard]] bool has_layers() const { return !input_.rows.empty() || input_.models.empty(); }
  [[nodiscard]] bool has_maps() const {
    return std::ranges::any_of(overview_.settings, [](const Overview::Setting& one) { return one.points > 1; });
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
  std::string winners_;
  Charts charts_;
  std::string html_;
};

void Page::open() {
  std::vector<SectionLink> links{{"verdict", "Verdict"}};
  const auto link = [&](bool there, std::string_view id, std::string_view text) {
    if (there) {
      links.push_back({id, text});
    }
  };
  link(!input_.gantts.empty(), "time", "Where the time goes");
  link(input_.study && !input_.study->runs.empty(), "point", "One point");
  link(!input_.measured.empty(), "measured", "Measured");
  link(!winners_.empty(), "ahead", "Who wins where");
  link(has_maps(), "maps", "MFU maps");
  link(has_layers(), "results", "All results");
  link(!input_.models.empty(), "models", "Whole models");
  link(!input_.fits.empty(), "fits", "Fits");
  link(has_layers(), "inputs", "Inputs");
  link(has_layers(), "words", "Definitions");
  link(true, "again", "Run it again");
  link(true, "about", "About");
  html_ += page_head(input_.title, links, script_sources());
}

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

std::string Page::first_sentence() const {
  if (!has_layers()) {
    return models_sentence(input_.models, input_.rule);
  }
  if (!overview_.largest) {
    return "No point has a result.";
  }
  const std::string text = on_one_line(
      overview_.wins_words.empty() ? verdict(results_of(*overview_.largest), input_.rule) : overview_.wins_words);
  return overview_.memory + (overview_.memory.empty() ? "" : " ") + text;
}

std::string lower_first(std::string text) {
  text.front() = text.front() == 'T' ? 't' : text.front();  // "Tie"; strategies are lower-case already
  return text;
}

/// "commfuse saves 12.3% of the time of serial (95% interval: 10.1% to 14.4%)."
std::string interval_in_words(const SavingInterval& saving, bool wins) {
  const std::string interval = fmt::format("95% interval: {} to {}", percent(saving.low), percent(saving.high));
  return wins ? fmt::format("{} saves {} of the time of {} ({}).", saving.winner, percent(saving.saved), saving.next,
                            interval)
              : fmt::format("{} ties with {}: it saves {} ({}).", saving.winner, saving.next, percent(saving.saved),
                            interval);
}

std::string Page::second_sentence() const {
  if (!overview_.largest) {
    return {};
  }
  const std::vector<ResultRow> rows = rows_of(*overview_.largest);
  const PointView most = view_of(rows, input_.rule);
  if (input_.study && input_.study->saving) {
    return fmt::format("At {}, {}", point_of(rows.front()),
                       interval_in_words(*input_.study->saving, most.front.size() == 1));
  }
  if (overview_.points > 1) {
    return fmt::format("At the largest point, {}, {}", point_of(rows.front()),
                       lower_first(on_one_line(verdict(results_of(*overview_.largest), input_.rule))));
  }
  const ResultRow& best = *most.ranking.front();
  const auto text = [](Duration duration) { return TimeUnit(duration).text(duration); };
  return fmt::format("{} leaves {} of its {} exposed; with free communication it would take {}.", label_of(best),
                     text(best.analysis.critical.exposed), text(makespan_of(best)), text(best.ideal));
}

void Page::summary_section() {
  add("<section aria-labelledby=\"verdict\">\n<h2 id=\"verdict\">Verdict</h2>\n<p class=\"lead\">{} {}</p>\n",
      escaped(first_sentence()), escaped(second_sentence()));
  tiles();
  if (has_layers() && (!input_.study || !input_.study->saving)) {
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

void Page::tiles() {
  if (!overview_.largest) {
    return;
  }
  html_ += "<dl class=\"tiles\">\n";
  const std::vector<ResultRow> rows = rows_of(*overview_.largest);
  const std::vector<Wins>& wins = overview_.wins;
  const bool one = overview_.points == 1;
  tile("Fastest strategy", wins.empty() ? "none wins" : wins.front().strategy,
       one ? point_of(rows.front())
           : fmt::format("wins at {} of {} points", wins.empty() ? 0 : wins.front().points, overview_.points));
  const ResultRow peak = input_.rows[*overview_.highest_mfu];
  tile("Highest MFU", percent(peak.mfu), fmt::format("{}, {}", label_of(peak), point_of(peak)));
  if (const std::optional<Saving>& saving = overview_.saving) {
    const ResultRow fastest = input_.rows[saving->winner];
    tile("Largest saving of time", percent(saving->share),
         fmt::format("{} against {}, {}", fastest.strategy, input_.rows[saving->next].strategy, point_of(fastest)));
  }
  const PointView most = view_of(rows, input_.rule);
  const ResultRow& best = *most.ranking.front();
  const Duration exposed = best.analysis.critical.exposed;
  tile(one ? "Exposed" : "Exposed at the largest point", TimeUnit(exposed).text(exposed),
       fmt::format("{} of the time of {}, {}", percent(to_seconds(exposed) / to_seconds(makespan_of(best))),
                   label_of(best), point_of(best)));
  html_ += "</dl>\n";
}

void Page::time_section() {
  if (input_.gantts.empty()) {
    return;
  }
  section("time", "Where the time goes");
  html_ +=
      "<p class=\"quiet\">Each strategy on the rank whose last op ends last. Hatched: exposed time.<span "
      "class=\"screen\"> A line below a bar: it is on the critical path. With the timeline in focus the wheel zooms, "
      "dragging moves, arrow keys go from op to op.</span></p>\n";
  for (std::size_t i = 0; i < input_.gantts.size(); ++i) {
    const std::vector<TracedRun>& runs = input_.gantts[i];
    if (runs.empty()) {
      continue;
    }
    const ResultRow& row = runs.front().row;
    const std::string point =
        fmt::format("{} {} on {}, {}", row.model, row.scope, machine_in_words(row), point_of(row));
    const Figure figure = gantt_figure(runs, fmt::format("gantt-{}", i + 1), input_.rule);
    add("<h3>{}</h3>\n{}", escaped(point),
        charts_.add_timeline(figure, "Timeline, " + point, timeline_block(runs, figure.id, figure.title)));
    if (!input_.page.empty()) {
      add("<p class=\"screen\"><a href=\"{}\">Change this point in the page</a></p>\n",
          escaped(input_.page + page_hash(row, implementations_of(runs))));
    }
  }
  html_ += "</section>\n";
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

void Page::lead_section() {
  if (winners_.empty()) {
    return;
  }
  section("ahead", "Who wins where");
  std::size_t number = 0;
  for (const Overview::Setting& setting : overview_.settings) {
    if (setting.points < 2 || ++number > most_settings) {
      continue;
    }
    const std::vector<ResultRow> rows = rows_of(setting.rows);
    add("<h3>{}</h3>\n", escaped(setting.title));
    for (const CrossoverMap& map : reports::maps_of(std::span(rows), input_.rule)) {
      html_ += charts_.add(winner_figure(map, fmt::format("winners-map-{}", number)), "Winners, " + setting.title);
    }
    if (const auto figure = lead_figure(rows, "commfuse", fmt::format("lead-{}", number), input_.rule)) {
      html_ += charts_.add(*figure, "How far commfuse is ahead, " + setting.title);
    }
  }
  html_ += "</section>\n";
}

void Page::map_section() {
  if (!has_maps()) {
    return;
  }
  section("maps", "MFU over sequence length and ranks");
  html_ += "<p class=\"quiet\">The maps of a setting share their colours. Crossed: no result.</p>\n";
  std::size_t number = 0;
  for (const Overview::Setting& setting : overview_.settings) {
    if (setting.points > 1 && number < most_settings) {
      maps_of(setting, ++number);
    }
  }
  if (overview_.settings.size() > most_settings) {
    add("<p class=\"note\">Maps of the first {} settings of {}.</p>\n", most_settings, overview_.settings.size());
  }
  html_ += "</section>\n";
}

void Page::maps_of(const Overview::Setting& setting, std::size_t number) {
  const std::vector<ResultRow> rows = rows_of(setting.rows);
  add("<h3>{}</h3>\n<div class=\"maps\">\n", escaped(setting.title));
  const auto put = [&](const Figure& figure) { html_ += charts_.add(figure, figure.title); };
  const std::vector<std::string> strategies = strategies_of(rows);
  const std::string own = "commfuse";
  if (strategies.size() > 1 && std::find(strategies.begin(), strategies.end(), own) != strategies.end()) {
    put(mfu_difference(rows, own, fmt::format("difference-{}", number), input_.rule));
  }
  for (std::size_t i = 0; i < strategies.size(); ++i) {
    put(mfu_heatmap(rows, strategies[i], fmt::format("mfu-{}-{}", number, i + 1)));
  }
  html_ += "</div>\n";
}

void Page::table_section() {
  section("results", "All results");
  add("<p class=\"quiet\">{} is {} + {} + {} + {} + {}, and {} is {} + {} + {} \xe2\x88\x92 {}. \xe2\x96\xb8 fastest; "
      "\xe2\x89\x88 {}.</p>\n",
      defined("time"), defined("compute"), defined("slicing"), defined("stretch"), defined("local"), defined("exposed"),
      defined("exposed"), defined("head"), defined("bubble"), defined("tail"), defined("local"), defined("tie"));
  html_ += "<div id=\"all-rows\"></div>\n<div id=\"first-rows\">\n";
  std::size_t left = most_rows;
  std::size_t shown = 0;
  for (const Overview::Setting& setting : overview_.settings) {
    if (left == 0) {
      break;
    }
    html_ += results_table(setting.title, rows_of(setting.rows), left, input_.rule);
    left -= std::min(left, setting.rows.count);
    ++shown;
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
