// SPDX-License-Identifier: Apache-2.0
#include "reports/plan/plan_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "model/math/functions.h"
#include "reports/commas.h"
#include "reports/figure/ticks.h"
#include "reports/percents.h"
#include "reports/plan/plan_words.h"

namespace commfuse::reports {

namespace {

constexpr std::array kind_roles{Role::essential, Role::communication, Role::local,
                                Role::exposed,   Role::muted,         Role::ink};

Role role_of(std::size_t kind) { return kind_roles[kind % kind_roles.size()]; }

/// Returns the runs of a kind that are shorter than all runs with fewer GPUs, without runs much longer than the answer.
std::vector<const CapacityRun*> shown_runs(const CapacityPlan& plan, std::size_t kind) {
  const double longest = longest_shown_days(plan);
  std::vector<const CapacityRun*> shown;
  for (const CapacityRun& run : plan.kinds[kind].runs) {
    if (run.days.value <= longest && (shown.empty() || run.days.value < shown.back()->days.value)) {
      shown.push_back(&run);
    }
  }
  return shown;
}

/// Returns the range of the values, extended on both sides by the share `air`.
std::pair<double, double> range_of(const std::vector<double>& values, double air) {
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  const double width = *greatest > *least ? *greatest - *least : std::max(1.0, std::abs(*greatest));
  return {*least - air * width, *greatest + air * width};
}

FigureAxis axis_of(std::string label, std::string unit, std::pair<double, double> range) {
  FigureAxis axis{.label = std::move(label), .unit = std::move(unit), .low = range.first, .high = range.second};
  axis.grid = true;
  axis.ticks = round_ticks(range.first, range.second, 6);
  return axis;
}

/// Returns an axis with ticks at powers of two between both ends, or at round counts if there are fewer than two such
/// powers.
FigureAxis doubling_axis(std::string label, double low, double high) {
  FigureAxis axis{.label = std::move(label), .low = low, .high = high, .logarithmic = true};
  axis.grid = true;
  const int first = static_cast<int>(std::ceil(math::log2(low)));
  const int last = static_cast<int>(std::floor(math::log2(high)));
  for (int power = first; power <= last; ++power) {
    const double at = std::ldexp(1.0, power);
    axis.ticks.push_back({at, fmt::format("{:g}", at)});
  }
  if (axis.ticks.size() < 2) {
    axis.ticks.clear();
    for (const Tick& tick : log_ticks(low, high)) {
      if (tick.at == std::floor(tick.at)) {
        axis.ticks.push_back({tick.at, fmt::format("{:g}", tick.at)});
      }
    }
  }
  return axis;
}

/// Returns a small box around a point.
RectMark dot(const Figure& figure, Place at, Role role, std::string tip) {
  const auto moved = [](const FigureAxis& axis, double value, double share) {
    return axis.logarithmic ? value * math::pow(axis.high / axis.low, share) : value + share * (axis.high - axis.low);
  };
  constexpr double half = 4.0;
  const double wide = figure.width - 100.0;  // approximate width without the axis labels
  return {.from = {moved(figure.x, at.x, -half / wide), moved(figure.y, at.y, -half / figure.height)},
          .to = {moved(figure.x, at.x, half / wide), moved(figure.y, at.y, half / figure.height)},
          .role = role,
          .tip = std::move(tip)};
}

std::string tip_of(const CapacityPlan& plan, const CapacityRun& run) {
  return fmt::format("{} {}: {} days, {}", run.gpus, run.kind, days(run.days.value), money(plan, run.cost.value));
}

void add_kinds_to_legend(const CapacityPlan& plan, Figure& figure) {
  for (std::size_t kind = 0; kind < plan.kinds.size(); ++kind) {
    figure.legend.push_back({plan.kinds[kind].name, role_of(kind)});
  }
}

/// Draws a diamond at a point. Its name is in the legend, where it covers no data.
void mark(Figure& figure, Place at, Role role, std::string text) {
  figure.marks.emplace_back(
      PointsMark{.points = {at}, .role = role, .symbol = Symbol::diamond, .size = 9.0, .tips = {text}});
  figure.legend.push_back({.text = std::move(text), .role = role, .symbol = Symbol::diamond});
}

/// Draws a dot for each run, joined by lines if `joined`, and marks the answer.
template <class PlaceOf>
void add_kinds(const CapacityPlan& plan, Figure& figure, bool joined, const PlaceOf& place_of) {
  for (std::size_t kind = 0; kind < plan.kinds.size(); ++kind) {
    LineMark line{.role = role_of(kind)};
    std::vector<RectMark> dots;
    for (const CapacityRun* run : shown_runs(plan, kind)) {
      line.points.push_back(place_of(*run));
      dots.push_back(dot(figure, place_of(*run), role_of(kind), tip_of(plan, *run)));
    }
    if (joined && !line.points.empty()) {
      figure.marks.emplace_back(std::move(line));
    }
    figure.marks.insert(figure.marks.end(), dots.begin(), dots.end());
  }
  if (const CapacityKind* kind = plan.best_kind()) {
    const CapacityRun& run = *kind->best();
    mark(figure, place_of(run), Role::ink,
         fmt::format("the answer: {} {}, {} days, {}", with_commas(run.gpus), run.kind, days(run.days.value),
                     money(plan, run.cost.value)));
  }
}

std::vector<const CapacityRun*> all_shown(const CapacityPlan& plan) {
  std::vector<const CapacityRun*> runs;
  for (std::size_t kind = 0; kind < plan.kinds.size(); ++kind) {
    const std::vector<const CapacityRun*> shown = shown_runs(plan, kind);
    runs.insert(runs.end(), shown.begin(), shown.end());
  }
  return runs;
}

std::vector<double> values_of(const std::vector<const CapacityRun*>& runs, double (*of)(const CapacityRun&)) {
  std::vector<double> values;
  for (const CapacityRun* run : runs) {
    values.push_back(of(*run));
  }
  return values;
}

double gpus_of(const CapacityRun& run) { return static_cast<double>(run.gpus); }
double days_of(const CapacityRun& run) { return run.days.value; }
double cost_of(const CapacityRun& run) { return run.cost.value; }

/// Adds the band that contains the days of the answer's kind with a probability of 90%.
void add_band(const CapacityPlan& plan, Figure& figure) {
  if (!plan.answer) {
    return;
  }
  BandMark band{.role = role_of(*plan.answer)};
  for (const CapacityRun* run : shown_runs(plan, *plan.answer)) {
    band.low.push_back({gpus_of(*run), run->days.low});
    band.high.push_back({gpus_of(*run), run->days.high});
  }
  figure.marks.emplace_back(std::move(band));
  figure.legend.push_back({.text = fmt::format("{}, 90% of draws", plan.kinds[*plan.answer].name),
                           .role = role_of(*plan.answer),
                           .band = true});
}

/// Returns "the deadline needs about 6144 h100".
std::string need_in_words(std::int64_t needed, const CapacityKind& kind) {
  return fmt::format("the deadline needs about {} {}", with_commas(needed), kind.name);
}

/// Draws, for each kind that misses the deadline, the number of GPUs that would meet it: the line of the kind
/// continues, dashed, down to the deadline.
void add_needs(const CapacityPlan& plan, Figure& figure) {
  for (std::size_t i = 0; i < plan.kinds.size(); ++i) {
    const std::optional<std::int64_t> needed = plan.kinds[i].gpus_for_deadline;
    const std::vector<const CapacityRun*> shown = shown_runs(plan, i);
    if (!needed || shown.empty()) {
      continue;
    }
    const Place at{static_cast<double>(*needed), *plan.deadline_days};
    const std::string text = need_in_words(*needed, plan.kinds[i]);
    if (at.x > figure.x.high) {
      figure.legend.push_back({text, Role::exposed});
      continue;
    }
    figure.marks.emplace_back(
        LineMark{.points = {{gpus_of(*shown.back()), days_of(*shown.back())}, at}, .role = role_of(i), .dashed = true});
    mark(figure, at, Role::exposed, text);
  }
}

/// Returns the finding of the figure.
std::string days_title(const CapacityPlan& plan) {
  if (const CapacityKind* best = plan.best_kind()) {
    return fmt::format("{} {} {} enough: {} days{}", with_commas(best->best()->gpus), best->name,
                       best->best()->gpus == 1 ? "is" : "are", days(best->best()->days.value),
                       plan.deadline_days ? fmt::format(" of {}", days(*plan.deadline_days)) : std::string{});
  }
  const std::string needed = needed_gpus(plan);
  return needed.empty() ? "No number of GPUs meets the limits" : "The deadline needs " + needed;
}

/// Labels the deadline on the axis of days, and removes round labels that it would touch.
void add_deadline_tick(FigureAxis& axis, double deadline) {
  const double near = 0.08 * (axis.high - axis.low);
  std::erase_if(axis.ticks, [&](const Tick& tick) { return tick.at > 0.0 && std::abs(tick.at - deadline) < near; });
  axis.ticks.push_back({deadline, fmt::format("{:.4g}", deadline)});
}

Figure days_figure(const CapacityPlan& plan, const std::vector<const CapacityRun*>& runs, Figure figure) {
  const std::vector<double> gpus = values_of(runs, gpus_of);
  const auto [least, greatest] = std::minmax_element(gpus.begin(), gpus.end());
  std::vector<double> all_days = values_of(runs, days_of);
  all_days.push_back(0.0);
  for (const CapacityRun* run : runs) {
    all_days.push_back(run->days.high);
  }
  if (plan.deadline_days) {
    all_days.push_back(*plan.deadline_days);
  }
  double widest = *greatest;
  for (const CapacityKind& kind : plan.kinds) {
    const auto needed = static_cast<double>(kind.gpus_for_deadline.value_or(0));
    constexpr double far = 8.0;  // A longer axis would squeeze the runs; the legend has the number.
    widest = needed <= far * *greatest ? std::max(widest, needed) : widest;
  }
  figure.id.insert(0, "plan-days");
  figure.title = days_title(plan);
  figure.description =
      "Days of the run against the number of GPUs, one line per kind; the counts table has the numbers.";
  figure.x = doubling_axis("GPUs", 0.8 * *least, 1.25 * widest);
  figure.y = axis_of("time", "days", {0.0, range_of(all_days, 0.12).second});
  add_kinds_to_legend(plan, figure);
  add_band(plan, figure);
  if (plan.deadline_days) {
    add_deadline_tick(figure.y, *plan.deadline_days);
    figure.marks.emplace_back(
        LineMark{.points = {{figure.x.low, *plan.deadline_days}, {figure.x.high, *plan.deadline_days}},
                 .role = Role::ink,
                 .dashed = true});
    figure.legend.push_back({.text = fmt::format("deadline, {} days", days(*plan.deadline_days)),
                             .role = Role::ink,
                             .line = true,
                             .dashes = "5 4"});
  }
  add_needs(plan, figure);
  add_kinds(plan, figure, true, [](const CapacityRun& run) { return Place{gpus_of(run), days_of(run)}; });
  return figure;
}

/// Names the next run of the front that is clearly shorter than the answer.
std::string pareto_title(const CapacityPlan& plan) {
  const CapacityRun* shorter = nullptr;
  const CapacityRun* answer = plan.best_kind() != nullptr ? plan.best_kind()->best() : nullptr;
  for (const RunPlace& place : plan.pareto) {  // shortest first
    const CapacityRun& run = plan.kinds[place.kind].runs[place.run];
    shorter = answer != nullptr && run.days.value < 0.9 * answer->days.value ? &run : shorter;
  }
  if (shorter == nullptr) {
    return "What a shorter run costs";
  }
  const double share = shorter->cost.value / answer->cost.value - 1.0;
  const std::string cost = answer->cost.value > 0.0
                               ? fmt::format(" ({} {})", share_percent(std::abs(share)), share < 0.0 ? "less" : "more")
                               : std::string{};
  return fmt::format("A shorter run: {} {} take{} {} days for {}{}", with_commas(shorter->gpus), shorter->kind,
                     shorter->gpus == 1 ? "s" : "", days(shorter->days.value), money(plan, shorter->cost.value), cost);
}

Figure pareto_figure(const CapacityPlan& plan, const std::vector<const CapacityRun*>& runs, Figure figure) {
  figure.id.insert(0, "plan-pareto");
  figure.title = pareto_title(plan);
  figure.description =
      "Cost of the run against its days, one dot per number of GPUs; the counts table has the numbers.";
  figure.x = axis_of("time", "days", range_of(values_of(runs, days_of), 0.06));
  figure.y = axis_of("cost", "", range_of(values_of(runs, cost_of), 0.15));
  for (Tick& tick : figure.y.ticks) {
    tick.label = tick_money(plan, tick.at);
  }
  LineMark front{.role = Role::muted, .steps = true, .dashes = "2 3"};
  for (const RunPlace& place : plan.pareto) {
    const CapacityRun& run = plan.kinds[place.kind].runs[place.run];
    if (run.days.value <= figure.x.high) {
      front.points.push_back({run.days.value, run.cost.value});
    }
  }
  add_kinds_to_legend(plan, figure);
  figure.legend.push_back(
      {.text = "front: no run is both shorter and cheaper", .role = Role::muted, .line = true, .dashes = "2 3"});
  if (!front.points.empty()) {
    figure.marks.emplace_back(std::move(front));
  }
  add_kinds(plan, figure, false, [](const CapacityRun& run) { return Place{days_of(run), cost_of(run)}; });
  return figure;
}

std::string rates_title(const CapacityPlan& plan) {
  std::string text;
  for (const RateCurve& curve : plan.curves) {
    const double gain = curve.points.back().tokens_per_second / plan.best_kind()->best()->tokens_per_second.value - 1.0;
    text += fmt::format("{}{} x{:g}: {}{}", text.empty() ? "" : "; ",
                        curve.links == "network" ? (text.empty() ? "Network" : "network") : "Links in a node",
                        curve.points.back().factor, signed_percent(gain), text.empty() ? " tokens per second" : "");
  }
  return text;
}

Figure rates_figure(const CapacityPlan& plan, Figure figure) {
  constexpr std::array roles{Role::essential, Role::communication};
  figure.id.insert(0, "plan-rates");
  figure.title = rates_title(plan);
  figure.description = "Tokens per second against the rate of the links, with the best layout at every point.";
  std::vector<double> rates;
  for (const RateCurve& curve : plan.curves) {
    for (const RateCurve::Point& point : curve.points) {
      rates.push_back(point.tokens_per_second);
    }
  }
  figure.x = doubling_axis("rate of the links, times today's", 0.45, 4.4);
  figure.y = axis_of("tokens per second", "", range_of(rates, 0.15));
  for (Tick& tick : figure.y.ticks) {
    tick.label = large(tick.at);
  }
  PointsMark knees{.role = Role::ink, .symbol = Symbol::diamond, .size = 8.0};
  for (std::size_t i = 0; i < plan.curves.size(); ++i) {
    const RateCurve& curve = plan.curves[i];
    const Role role = roles[i % roles.size()];
    LineMark line{.role = role};
    for (const RateCurve::Point& point : curve.points) {
      line.points.push_back({point.factor, point.tokens_per_second});
      figure.marks.emplace_back(dot(figure, line.points.back(), role,
                                    fmt::format("x{:g}: {}", point.factor, large(point.tokens_per_second))));
      if (curve.knee == point.factor) {
        knees.points.push_back(line.points.back());
        knees.tips.push_back(fmt::format("knee, x{:g}", point.factor));
      }
    }
    figure.marks.insert(figure.marks.begin(), Mark(std::move(line)));
    figure.legend.push_back({curve.links == "network" ? "network" : "links in a node", role});
  }
  if (!knees.points.empty()) {
    figure.legend.push_back({.text = "knee: the bend of a curve", .role = Role::ink, .symbol = Symbol::diamond});
    figure.marks.emplace_back(std::move(knees));
  }
  return figure;
}

/// Removes every second label of the x axis until the rest fits on a phone. Labels of the y axis stay.
void thin_ticks(Figure& figure) {
  constexpr double letter = 6.6;  // pixels of a character
  constexpr double gap = 14.0;
  const auto width_of = [](const std::vector<Tick>& ticks, bool summed) {
    double width = 0.0;
    for (const Tick& tick : ticks) {
      const double label_width = letter * static_cast<double>(tick.label.size());
      width = summed ? width + label_width + gap : std::max(width, label_width);
    }
    return width;
  };
  std::vector<Tick>& ticks = figure.x.ticks;
  const double space = figure.width - width_of(figure.y.ticks, false) - 40.0;
  while (ticks.size() > 2 && width_of(ticks, true) > space) {
    std::size_t index = 0;
    std::erase_if(ticks, [&](const Tick&) { return index++ % 2 == 1; });
  }
}

Figure tornado_figure(const CapacityPlan& plan, Figure figure) {
  const std::vector<const Sensitivity*> sorted = by_effect(plan.sensitivities);
  const double base = plan.best_kind()->best()->cost.value;
  std::vector<double> costs{base};
  figure.id.insert(0, "plan-tornado");
  figure.height = 34.0 * static_cast<double>(sorted.size());
  figure.title = fmt::format("{} matters most for the cost", input_in_words(sorted.front()->input));
  figure.title.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(figure.title.front())));
  figure.description = "Cost with one input lower and higher by the same share; the sensitivity table has the numbers.";
  figure.y = {.low = 0.0, .high = static_cast<double>(sorted.size()), .reversed = true};
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double top = static_cast<double>(i);
    const auto bar = [&](double cost, Role role, const std::string& change) {
      costs.push_back(cost);
      figure.marks.emplace_back(
          RectMark{.from = {std::min(base, cost), top + 0.18},
                   .to = {std::max(base, cost), top + 0.82},
                   .role = role,
                   .tip = fmt::format("{} {}: {}", input_in_words(sorted[i]->input), change, money(plan, cost))});
    };
    bar(sorted[i]->cost_low, Role::essential, fmt::format("-{:g}%", 100.0 * plan.change));
    bar(sorted[i]->cost_high, Role::communication, fmt::format("+{:g}%", 100.0 * plan.change));
    figure.y.ticks.push_back({top + 0.5, input_in_words(sorted[i]->input)});
  }
  figure.x = axis_of("cost", "", range_of(costs, 0.06));
  for (Tick& tick : figure.x.ticks) {
    tick.label = tick_money(plan, tick.at);
  }
  figure.marks.emplace_back(
      LineMark{.points = {{base, 0.0}, {base, static_cast<double>(sorted.size())}}, .role = Role::ink});
  figure.legend = {{fmt::format("input {:g}% lower", 100.0 * plan.change), Role::essential},
                   {fmt::format("input {:g}% higher", 100.0 * plan.change), Role::communication}};
  return figure;
}

}  // namespace

std::vector<Figure> plan_figures(const CapacityPlan& plan, FigureWidth width) {
  const bool is_wide = width == FigureWidth::wide;
  // The frame is empty except for its size and the end of its id.
  const auto frame = [&](double height) {
    return is_wide ? Figure{.height = height} : Figure{.id = "-narrow", .width = 360.0, .height = 0.85 * height};
  };
  std::vector<Figure> figures;
  if (const std::vector<const CapacityRun*> runs = all_shown(plan); runs.size() > 1) {
    figures.push_back(days_figure(plan, runs, frame(280.0)));
    figures.push_back(pareto_figure(plan, runs, frame(280.0)));
  }
  if (!plan.curves.empty()) {
    figures.push_back(rates_figure(plan, frame(240.0)));
  }
  if (!plan.sensitivities.empty()) {
    figures.push_back(tornado_figure(plan, frame(280.0)));
  }
  if (!is_wide) {
    for (Figure& figure : figures) {
      thin_ticks(figure);
    }
  }
  return figures;
}

}  // namespace commfuse::reports
