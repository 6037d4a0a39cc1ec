// SPDX-License-Identifier: Apache-2.0
#include "reports/html/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/check.h"
#include "model/text/counted.h"
#include "reports/figure/gantt.h"
#include "reports/figure/markup.h"
#include "reports/figure/ticks.h"
#include "reports/figure/wording.h"
#include "reports/html/page_frame.h"
#include "reports/percents.h"

namespace commfuse::reports {

namespace {

Duration longest_of(const std::vector<MeasuredSchedule>& schedules) {
  Duration longest = std::chrono::nanoseconds(1);
  for (const MeasuredSchedule& schedule : schedules) {
    longest =
        std::max({longest, schedule.predicted, schedule.p90, schedule.median ? schedule.median->value : Duration{}});
  }
  return longest;
}

Duration shortest_of(const std::vector<MeasuredSchedule>& schedules) {
  Duration shortest = longest_of(schedules);
  for (const MeasuredSchedule& schedule : schedules) {
    shortest = std::min({shortest, schedule.predicted, schedule.median ? schedule.p10 : schedule.predicted});
  }
  return shortest;
}

std::vector<const MeasuredSchedule*> in_order(const std::vector<MeasuredSchedule>& schedules) {
  std::vector<const MeasuredSchedule*> order;
  for (const MeasuredSchedule& schedule : schedules) {
    order.push_back(&schedule);
  }
  std::ranges::stable_sort(order, {}, [](const MeasuredSchedule* schedule) { return schedule->predicted; });
  return order;
}

/// Returns measured over predicted, minus 1.
double error_of(const MeasuredSchedule& schedule) {
  return to_seconds(schedule.median->value) / std::max(to_seconds(schedule.predicted), 1e-12) - 1.0;
}

std::string figure_title(const std::vector<MeasuredSchedule>& schedules) {
  const MeasuredSchedule* worst = nullptr;
  std::size_t measured = 0;
  for (const MeasuredSchedule& schedule : schedules) {
    measured += schedule.median ? 1 : 0;
    worst = schedule.median && (worst == nullptr || std::abs(error_of(schedule)) > std::abs(error_of(*worst)))
                ? &schedule
                : worst;
  }
  if (worst == nullptr) {
    return "No schedule finished";
  }
  return fmt::format("Measured against predicted: {} at the worst ({}; {} measured)", signed_percent(error_of(*worst)),
                     worst->name, counted(measured, "schedule"));
}

void add_row(const MeasuredSchedule& schedule, double y, const TimeUnit& unit, Figure& figure) {
  constexpr double half = 0.28;
  constexpr double beyond = 0.4;
  const auto upright = [&](Duration time, Role role, bool dashed) {
    figure.marks.emplace_back(LineMark{
        .points = {{unit.value(time), y - beyond}, {unit.value(time), y + beyond}}, .role = role, .dashed = dashed});
  };
  if (schedule.median) {
    const std::string tip =
        fmt::format("{}: median {}, p10 {}, p90 {}; predicted {}", schedule.name, unit.text(schedule.median->value),
                    unit.digits(schedule.p10), unit.digits(schedule.p90), unit.text(schedule.predicted));
    figure.marks.emplace_back(RectMark{.from = {unit.value(schedule.p10), y - half},
                                       .to = {unit.value(schedule.p90), y + half},
                                       .role = Role::communication,
                                       .tip = tip});
    upright(schedule.median->value, Role::ink, false);
  }
  upright(schedule.predicted, Role::exposed, true);
}

class MeasuredPage {
 public:
  explicit MeasuredPage(const MeasuredReport& input) : input_(input), unit_(longest_of(input.schedules)) {}

  std::string write() {
    constexpr std::array links{SectionLink{"verdict", "Verdict"}, SectionLink{"results", "Schedules"},
                               SectionLink{"time", "Op by op"}, SectionLink{"inputs", "What was measured"},
                               SectionLink{"again", "Run it again"}};
    html_ = page_head(input_.title, links);
    html_ += section_head("verdict", "Verdict");
    html_ += fmt::format("<p class=\"lead\">{}</p>\n<p class=\"quiet\">{}</p>\n", escaped(for_page(input_.verdict)),
                         escaped(input_.noise));
    if (!input_.schedules.empty()) {
      html_ += wide_figure(measured_figure(input_.schedules), "Predicted and measured makespans");
    }
    html_ += "</section>\n";
    table_section();
    time_section();
    input_section();
    html_ += page_foot(input_.version);
    return std::move(html_);
  }

 private:
  void table_section();
  void row_of(const MeasuredSchedule& schedule);
  void time_section();
  void input_section();

  const MeasuredReport& input_;
  TimeUnit unit_;
  std::string html_;
};

void MeasuredPage::table_section() {
  html_ += section_head("results", "Schedule by schedule");
  html_ += fmt::format(
      "<p class=\"quiet\">Makespans in {}, the largest of all ranks; the 95% interval belongs to the median. The last "
      "column lists the checks that compared the schedule's numbers with those of the unfused operation.</p>\n"
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Schedules\"><table><thead><tr><th "
      "scope=\"col\">schedule</th>",
      unit_.name());
  for (const char* column :
       {"predicted", "median", "95% interval", "p10", "p90", "rounds", "difference", "checks passed"}) {
    html_ += fmt::format("<th scope=\"col\">{}</th>", column);
  }
  html_ += "</tr></thead>\n<tbody>\n";
  for (const MeasuredSchedule* schedule : in_order(input_.schedules)) {
    row_of(*schedule);
  }
  html_ += "</tbody></table></div>\n</section>\n";
}

void MeasuredPage::row_of(const MeasuredSchedule& schedule) {
  html_ +=
      fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td>", escaped(schedule.name), unit_.digits(schedule.predicted));
  if (!schedule.median) {
    html_ += fmt::format("<td class=\"none\" colspan=\"7\">failed: {}</td></tr>\n", escaped(schedule.levels));
    return;
  }
  const std::optional<TimeRange>& range = schedule.median->range;
  html_ += fmt::format("<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                       unit_.digits(schedule.median->value),
                       range ? fmt::format("{} to {}", unit_.digits(range->low), unit_.digits(range->high)) : "\u2013",
                       unit_.digits(schedule.p10), unit_.digits(schedule.p90), schedule.rounds,
                       signed_percent(error_of(schedule)),
                       schedule.levels.empty() ? "not compared" : escaped(schedule.levels));
}

void MeasuredPage::time_section() {
  html_ += section_head("time", "Op by op");
  std::size_t number = 0;
  for (const MeasuredSchedule* schedule : in_order(input_.schedules)) {
    if (schedule->timelines.empty()) {
      continue;
    }
    Figure figure = gantt_figure(schedule->timelines, Rank{0}, fmt::format("gantt-{}", ++number));
    figure.title = fmt::format("{}, predicted and in one traced iteration", schedule->name);
    html_ += wide_figure(figure, escaped("Timelines of " + schedule->name));
  }
  html_ += number == 0 ? "<p class=\"quiet\">No iteration was traced; measure with --spans.</p>\n</section>\n"
                       : "<p class=\"quiet\">Timelines of rank 0. An exchange starts when its send or its receive "
                         "starts, whichever is first.</p>\n</section>\n";
}

void MeasuredPage::input_section() {
  html_ += section_head("inputs", "What was measured, and where") + "<dl class=\"words\">\n";
  for (const auto& [name, value] : input_.facts) {
    html_ += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(name), escaped(value));
  }
  html_ += "</dl>\n</section>\n" + section_head("again", "Run it again");
  html_ += fmt::format("<pre tabindex=\"0\"><code>{}</code></pre>\n</section>\n", escaped(input_.command));
}

}  // namespace

Figure measured_figure(const std::vector<MeasuredSchedule>& schedules) {
  check(!schedules.empty(), "a figure of schedules needs at least one");
  const TimeUnit unit(longest_of(schedules));
  const double low = unit.value(shortest_of(schedules));
  const double high = unit.value(longest_of(schedules));
  const double margin = std::max(0.12 * (high - low), 0.001 * high);
  Figure figure{.id = "measured", .title = figure_title(schedules), .description = "Makespans by schedule."};
  figure.x = {.label = "makespan",
              .unit = unit.name(),
              .low = std::max(0.0, low - margin),
              .high = high + margin,
              .grid = true};
  figure.x.ticks = round_ticks(figure.x.low, figure.x.high, 8);
  const std::vector<const MeasuredSchedule*> order = in_order(schedules);
  figure.y = {.low = -0.6, .high = static_cast<double>(order.size()) - 0.4, .reversed = true};
  figure.height = 34.0 * static_cast<double>(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    figure.y.ticks.push_back({static_cast<double>(i), order[i]->name});
    add_row(*order[i], static_cast<double>(i), unit, figure);
    figure.description += fmt::format(
        " {}: predicted {}, {}.", order[i]->name, unit.text(order[i]->predicted),
        order[i]->median ? fmt::format("median measured {}", unit.text(order[i]->median->value)) : "failed");
  }
  figure.legend = {{"measured, p10 to p90", Role::communication},
                   {"measured, median", Role::ink},
                   {"predicted (dashed)", Role::exposed}};
  return figure;
}

std::string html_report(const MeasuredReport& input) { return MeasuredPage(input).write(); }

}  // namespace commfuse::reports
