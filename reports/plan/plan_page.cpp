// SPDX-License-Identifier: Apache-2.0
#include "reports/plan/plan_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "model/record/model_version.h"
#include "reports/commas.h"
#include "reports/figure/markup.h"
#include "reports/html/page_frame.h"
#include "reports/plan/plan_figures.h"
#include "reports/plan/plan_tables.h"
#include "reports/plan/plan_words.h"

namespace commfuse::reports {

namespace {

/// A section with its tables and figures.
struct Section {
  std::string_view id;
  std::string_view title;
  std::vector<std::string_view> figures;
  std::vector<std::string_view> tables;
};

const std::vector<Section>& sections() {
  static const std::vector<Section> known{
      {"verdict", "Verdict", {}, {"kinds"}},
      {"time-and-money", "Time and money", {"plan-days", "plan-pareto"}, {"answer"}},
      {"how", "How to run it", {}, {"layout", "schedules"}},
      {"what-if-section", "What if", {"plan-rates"}, {"what-if", "rates"}},
      {"sure", "Sensitivity", {"plan-tornado"}, {"sensitivity", "doubts"}},
      {"all", "Numbers of GPUs", {}, {"counts"}},
      {"inputs-section", "Inputs", {}, {"inputs", "hardware"}},
      {"formulas", "How it is calculated", {}, {}},
      {"again", "Run it again", {}, {}}};
  return known;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> formulas{{
    {"Step",
     "Predicted for every layout: compute, pipeline bubble, gradients, optimizer, and the wait for the slowest "
     "GPU."},
    {"Tokens per second", "Tokens of a step over its time, while nothing fails."},
    {"Goodput",
     "Work over wall time: T / (M exp(R / M) (exp((T + d) / M) - 1)), with M the mean time between failures of all "
     "GPUs, d the time of a checkpoint, R of a restart, T the work between checkpoints (Daly 2006, after Young 1974)."},
    {"Days", "Tokens / (tokens per second x goodput) / 86400."},
    {"GPU-hours", "GPUs x days x 24."},
    {"Cost", "GPU-hours x price, and energy x its price where one is given."},
    {"Energy", "GPUs x power per GPU x PUE x hours."},
    {"Intervals",
     "Seeded Monte Carlo over the step's time, the price and the rate of failures, each lognormal. The step's error "
     "combines, in quadrature, the error of the machine's parameters and the model's own error; the note below the "
     "answer states the evidence for the latter."},
}};

std::string_view to_the_left(const PlanColumn& column) { return column.is_text ? " class=\"prose\"" : ""; }

class Page {
 public:
  explicit Page(const PlanPageInput& input)
      : input_(input),
        plan_(input.plan),
        tables_(plan_tables(plan_)),
        figures_(plan_figures(plan_)),
        narrow_figures_(plan_figures(plan_, FigureWidth::narrow)) {}

  std::string write() {
    std::vector<SectionLink> links;
    for (const Section& section : sections()) {
      if (has_part(section)) {
        links.push_back({section.id, section.title});
      }
    }
    html_ = page_head(plan_.title, links);
    for (const Section& section : sections()) {
      if (has_part(section)) {
        html_ += section_head(section.id, section.title);
        body(section);
        html_ += "</section>\n";
      }
    }
    html_ += page_foot(fmt::format("{} \u00b7 model version {} \u00b7 {}. Prices are the user's inputs.",
                                   input_.version, model_version, capacity_schema));
    return std::move(html_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(html_), format, std::forward<Args>(args)...);
  }

  [[nodiscard]] const PlanTable* table_of(std::string_view id) const {
    const auto table = std::ranges::find(tables_, id, &PlanTable::id);
    return table == tables_.end() ? nullptr : &*table;
  }
  [[nodiscard]] const Figure* figure_of(std::string_view id) const {
    const auto figure = std::ranges::find(figures_, id, &Figure::id);
    return figure == figures_.end() ? nullptr : &*figure;
  }

  [[nodiscard]] bool has_part(const Section& section) const {
    return section.id == "verdict" || (section.tables.empty() && section.figures.empty()) ||
           std::ranges::any_of(section.tables, [&](std::string_view id) { return table_of(id) != nullptr; }) ||
           std::ranges::any_of(section.figures, [&](std::string_view id) { return figure_of(id) != nullptr; });
  }

  void body(const Section& section) {
    if (section.id == "verdict") {
      add("<p class=\"quiet\">{}</p>\n<p class=\"lead\">{}</p>\n", escaped(subject()), escaped(plan_headline(plan_)));
      tiles();
      add("<p>{}</p>\n", escaped(plan_reasons(plan_)));
    } else if (section.id == "formulas") {
      words();
    } else if (section.id == "again") {
      add("<pre tabindex=\"0\"><code>{}</code></pre>\n", escaped(input_.command));
    }
    for (const std::string_view id : section.figures) {
      if (const Figure* figure = figure_of(id)) {
        const auto narrow = std::ranges::find(narrow_figures_, std::string(id) + "-narrow", &Figure::id);
        html_ += figure_in_two_widths(*figure, *narrow, escaped(figure->title));
      }
    }
    for (const std::string_view id : section.tables) {
      if (const PlanTable* plan_table = table_of(id)) {
        table(*plan_table);
      }
    }
  }

  void tile(std::string_view name, const std::string& value, const std::string& about) {
    add("<div class=\"tile\"><dt>{}</dt><dd><div class=\"value\">{}</div><div class=\"about\">{}</div></dd></div>\n",
        name, escaped(value), escaped(about));
  }

  /// Returns the plan's subject, because the user's title may not state it.
  [[nodiscard]] std::string subject() const {
    std::string text = fmt::format("{}, {} tokens", plan_.model, large(plan_.tokens));
    text += plan_.deadline_days ? ", deadline " + deadline_in_words(plan_) : std::string{};
    text += plan_.budget ? ", budget " + money(plan_, *plan_.budget) : std::string{};
    for (const CapacityKind& kind : plan_.kinds) {
      text += fmt::format("; {} at {} per GPU-hour, {}", kind.name, money(plan_, kind.price), available_in_words(kind));
    }
    return text + ".";
  }

  /// Adds the tiles of a kind in a plan without an answer: GPUs that the deadline needs, and the run closest to the
  /// limits.
  void missed_tiles(const CapacityKind& kind) {
    if (kind.gpus_for_deadline) {
      tile("Needs", fmt::format("about {} {}", with_commas(*kind.gpus_for_deadline), kind.name),
           fmt::format("smallest number that meets the deadline; {} {} available", with_commas(kind.available),
                       kind.available == 1 ? "is" : "are"));
    }
    if (kind.runs.empty()) {
      return;
    }
    const auto days_of = [](const CapacityRun& run) { return run.days.value; };
    const auto cost_of = [](const CapacityRun& run) { return run.cost.value; };
    const CapacityRun& shortest = *std::ranges::min_element(kind.runs, {}, days_of);
    if (plan_.deadline_days && (shortest.days.value > *plan_.deadline_days || !plan_.budget)) {
      tile("Shortest run", days(shortest.days.value) + " days",
           fmt::format("{} {}, {}; {} days are allowed", with_commas(shortest.gpus), kind.name,
                       money(plan_, shortest.cost.value), days(*plan_.deadline_days)));
      return;
    }
    const CapacityRun& cheapest = *std::ranges::min_element(kind.runs, {}, cost_of);
    const auto is_late = [&](const CapacityRun& run) {
      return plan_.deadline_days && run.days.value > *plan_.deadline_days;
    };
    if (is_late(cheapest)) {
      const CapacityRun* in_time = nullptr;
      for (const CapacityRun& run : kind.runs) {
        in_time = !is_late(run) && (in_time == nullptr || cost_of(run) < cost_of(*in_time)) ? &run : in_time;
      }
      cost_tile("Cheapest in time", kind, *in_time, "");
    }
    cost_tile("Cheapest run", kind, cheapest, is_late(cheapest) ? " and misses the deadline" : "");
  }

  void cost_tile(std::string_view name, const CapacityKind& kind, const CapacityRun& run, std::string_view missed) {
    tile(name, money(plan_, run.cost.value),
         fmt::format("{} {}, takes {} days{}{}", with_commas(run.gpus), kind.name, days(run.days.value), missed,
                     plan_.budget ? fmt::format("; {} is allowed", money(plan_, *plan_.budget)) : ""));
  }

  void tiles() {
    const CapacityKind* kind = plan_.best_kind();
    const bool has_runs = std::ranges::any_of(plan_.kinds, [](const CapacityKind& any) { return !any.runs.empty(); });
    html_ += has_runs ? "<dl class=\"tiles\">\n" : "";
    if (kind == nullptr) {
      for (const CapacityKind& missed : plan_.kinds) {
        missed_tiles(missed);
      }
      html_ += has_runs ? "</dl>\n" : "";
      return;
    }
    const CapacityRun& run = *kind->best();
    tile("GPUs", with_commas(run.gpus),
         fmt::format("{} on {} node{}", kind->name, with_commas(run.nodes), run.nodes == 1 ? "" : "s"));
    tile("Days", days(run.days.value),
         fmt::format("{} to {} in 90% of draws", days(run.days.low), days(run.days.high)));
    tile("Cost", money(plan_, run.cost.value),
         fmt::format("{} to {}; {} per million tokens", money(plan_, run.cost.low), money(plan_, run.cost.high),
                     money(plan_, run.cost_per_mtok.value)));
    if (has_limits(plan_)) {
      limits_tile(run);
    }
    html_ += "</dl>\n";
  }

  void limits_tile(const CapacityRun& run) {
    std::string limits = plan_.deadline_days ? fmt::format("at most {} days", days(*plan_.deadline_days)) : "";
    limits +=
        plan_.budget ? fmt::format("{}{}", limits.empty() ? "at most " : " and ", money(plan_, *plan_.budget)) : "";
    tile(fmt::format("Chance of meeting {}", limits_in_words(plan_)), likelihood(run.confidence), limits);
  }

  void words() {
    html_ += "<dl class=\"words\">\n";
    for (const auto& [name, meaning] : formulas) {
      add("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), escaped(meaning));
    }
    html_ += "</dl>\n";
  }

  void table(const PlanTable& table) {
    add("<div class=\"scroll plan\" role=\"region\" aria-label=\"{0}\" "
        "tabindex=\"0\">\n<table>\n<caption><span>{0}</span></caption>\n",
        escaped(table.title));
    const bool is_named =
        std::ranges::any_of(table.columns, [](const PlanColumn& column) { return !column.name.empty(); });
    if (is_named) {
      html_ += "<thead><tr>";
      for (const PlanColumn& column : table.columns) {
        add("<th scope=\"col\"{}>{}</th>", to_the_left(column), escaped(column.name));
      }
      html_ += "</tr></thead>\n";
    }
    html_ += "<tbody>\n";
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      html_ += table.answer_row == row ? "<tr class=\"fastest\">" : "<tr>";
      cells(table, table.rows[row]);
      html_ += "</tr>\n";
    }
    html_ += "</tbody>\n</table>\n</div>\n";
    if (!table.note.empty()) {
      add("<p class=\"note\">{}</p>\n", escaped(table.note));
    }
  }

  void cells(const PlanTable& table, const std::vector<std::string>& row) {
    const std::string& name = row.front();
    constexpr std::size_t long_name = 17;  // A longer name next to three numbers does not fit on a phone.
    const char* look = name.starts_with("  ") ? (name.size() > long_name ? " class=\"part long\"" : " class=\"part\"")
                                              : (name.size() > long_name ? " class=\"long\"" : "");
    add("<th scope=\"row\"{}>{}</th>", look, escaped(name.substr(std::min(name.find_first_not_of(' '), name.size()))));
    for (std::size_t i = 1; i < row.size(); ++i) {
      add("<td{}>{}</td>", to_the_left(table.columns[i]), escaped(row[i]));
    }
  }

  const PlanPageInput& input_;
  const CapacityPlan& plan_;
  std::vector<PlanTable> tables_;
  std::vector<Figure> figures_;
  std::vector<Figure> narrow_figures_;
  std::string html_;
};

}  // namespace

std::string plan_page(const PlanPageInput& input) { return Page(input).write(); }

}  // namespace commfuse::reports
