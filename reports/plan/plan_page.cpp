// SPDX-License-Identifier: Apache-2.0
#include "reports/plan/plan_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "model/record/result.h"
#include "reports/commas.h"
#include "reports/figure/markup.h"
#include "reports/html/page_frame.h"
#include "reports/plan/plan_figures.h"
#include "reports/plan/plan_tables.h"
#include "reports/plan/plan_words.h"

namespace commfuse::reports {

namespace {

/// Sections, and which tables and figures stand in them.
struct Section {
  std::string_view id;
  std::string_view title;
  std::vector<std::string_view> figures;
  std::vector<std::string_view> tables;
};

const std::vector<Section>& sections() {
  static const std::vector<Section> all{{"verdict", "Verdict", {}, {"kinds"}},
                                        {"time-and-money", "Time and money", {"plan-days", "plan-pareto"}, {"answer"}},
                                        {"how", "How to run it", {}, {"layout", "schedules"}},
                                        {"what-if-section", "What if", {"plan-rates"}, {"what-if", "rates"}},
                                        {"sure", "Sensitivity", {"plan-tornado"}, {"sensitivity", "doubts"}},
                                        {"all", "All numbers of GPUs", {}, {"counts"}},
                                        {"inputs-section", "Inputs", {}, {"inputs", "hardware"}},
                                        {"formulas", "How it is worked out", {}, {}},
                                        {"again", "Run it again", {}, {}}};
  return all;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> formulas{{
    {"A step", "Predicted for every layout: compute, pipeline bubble, gradients, optimizer, the slowest GPU of all."},
    {"Tokens a second", "Tokens of a step over its time, while nothing fails."},
    {"Goodput",
     "Work over wall time: T / (M exp(R / M) (exp((T + d) / M) - 1)), with M the mean time between failures of all "
     "GPUs, "
     "d a checkpoint, R a restart, T the work between checkpoints (Daly 2006, after Young 1974)."},
    {"Days", "Tokens / (tokens a second x goodput) / 86400."},
    {"GPU-hours", "GPUs x days x 24."},
    {"Cost", "GPU-hours x price, and energy x its price where one is given."},
    {"Energy", "GPUs x power of one x PUE x hours."},
    {"Intervals",
     "Monte Carlo with a seed over the step's time, the price and the rate of failures, each lognormal. The step's "
     "error "
     "is that of the machine's parameters and the model's own on steps it was not fitted to, added as squares."},
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
    const auto found = std::ranges::find(tables_, id, &PlanTable::id);
    return found == tables_.end() ? nullptr : &*found;
  }
  [[nodiscard]] const Figure* figure_of(std::string_view id) const {
    const auto found = std::ranges::find(figures_, id, &Figure::id);
    return found == figures_.end() ? nullptr : &*found;
  }

  [[nodiscard]] bool has_part(const Section& section) const {
    return (section.tables.empty() && section.figures.empty()) ||
           std::ranges::any_of(section.tables, [&](std::string_view id) { return table_of(id) != nullptr; }) ||
           std::ranges::any_of(section.figures, [&](std::string_view id) { return figure_of(id) != nullptr; });
  }

  void body(const Section& section) {
    if (section.id == "verdict") {
      add("<p class=\"lead\">{}</p>\n", escaped(plan_verdict(plan_)));
      tiles();
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
      if (const PlanTable* one = table_of(id)) {
        table(*one);
      }
    }
  }

  void tile(std::string_view name, const std::string& value, const std::string& about) {
    add("<div class=\"tile\"><dt>{}</dt><dd><div class=\"value\">{}</div><div class=\"about\">{}</div></dd></div>\n",
        name, escaped(value), escaped(about));
  }

  /// Where no run keeps the deadline, how many GPUs would.
  void need_tiles() {
    std::string tiles;
    std::swap(tiles, html_);
    for (const CapacityKind& kind : plan_.kinds) {
      const std::optional<std::int64_t> needed = gpus_for_deadline(plan_, kind);
      if (needed) {
        const CapacityRun& shortest =
            *std::ranges::min_element(kind.runs, {}, [](const CapacityRun& run) { return run.days.value; });
        tile("Needs", fmt::format("about {} {}", with_commas(*needed), kind.name),
             fmt::format("for {} days; {} take {} days; guessed from how days fall with more GPUs",
                         days(*plan_.deadline_days), with_commas(shortest.gpus), days(shortest.days.value)));
      }
    }
    std::swap(tiles, html_);
    html_ += tiles.empty() ? tiles : "<dl class=\"tiles\">\n" + tiles + "</dl>\n";
  }

  void tiles() {
    const CapacityKind* kind = plan_.best_kind();
    if (kind == nullptr) {
      need_tiles();
      return;
    }
    const CapacityRun& run = *kind->best();
    html_ += "<dl class=\"tiles\">\n";
    tile("GPUs", fmt::format("{}", run.gpus), fmt::format("{}, {}", kind->name, layout_in_words(run.layout)));
    tile("Days", days(run.days.value),
         fmt::format("{} to {}, nine times in ten", days(run.days.low), days(run.days.high)));
    tile("Cost", money(plan_, run.cost.value),
         fmt::format("{} to {}; {} a million tokens", money(plan_, run.cost.low), money(plan_, run.cost.high),
                     money(plan_, run.cost_per_mtok.value)));
    tile("MFU", share_percent(run.mfu.value),
         fmt::format("goodput {}, a step {} s", share_percent(run.goodput.value), step_seconds(run.step_s.value)));
    html_ += "</dl>\n";
  }

  void words() {
    html_ += "<dl class=\"words\">\n";
    for (const auto& [name, meaning] : formulas) {
      add("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), escaped(meaning));
    }
    html_ += "</dl>\n";
  }

  void table(const PlanTable& table) {
    add("<div class=\"scroll\" role=\"region\" aria-label=\"{0}\" tabindex=\"0\">\n<table>\n<caption>{0}</caption>\n"
        "<thead><tr>",
        escaped(table.title));
    for (const PlanColumn& column : table.columns) {
      add("<th scope=\"col\"{}>{}</th>", to_the_left(column), escaped(column.name));
    }
    html_ += "</tr></thead>\n<tbody>\n";
    for (const std::vector<std::string>& row : table.rows) {
      add("<tr><th scope=\"row\">{}</th>", escaped(row.front()));
      for (std::size_t i = 1; i < row.size(); ++i) {
        add("<td{}>{}</td>", to_the_left(table.columns[i]), escaped(row[i]));
      }
      html_ += "</tr>\n";
    }
    html_ += "</tbody>\n</table>\n</div>\n";
    if (!table.note.empty()) {
      add("<p class=\"note\">{}</p>\n", escaped(table.note));
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
