// SPDX-License-Identifier: Apache-2.0
#include "reports/figure/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/check.h"
#include "model/fit/robust_fit.h"
#include "model/text/counted.h"
#include "reports/figure/line_styles.h"
#include "reports/figure/spread.h"
#include "reports/figure/ticks.h"
#include "reports/figure/wording.h"
#include "reports/percents.h"

namespace commfuse::reports {

namespace {

constexpr double near = 0.10;
constexpr double shortest = 1e-6;  // relative to the longest; shorter times, even 0, are drawn at the edge

double error_of(const MeasuredPair& pair) { return to_seconds(pair.median) / to_seconds(pair.predicted) - 1.0; }

std::string agreement_title(std::span<const MeasuredPair> pairs) {
  std::vector<double> errors;
  for (const MeasuredPair& pair : pairs) {
    errors.push_back(std::abs(error_of(pair)));
  }
  const auto inside = std::count_if(errors.begin(), errors.end(), [](double error) { return error <= near; });
  if (errors.size() == 1) {
    return fmt::format("{} was {}measured within 10% of the prediction; the error is {}", pairs.front().name,
                       inside == 1 ? "" : "not ", percent(errors.front()));
  }
  return fmt::format("{} of {} schedules {} measured within 10% of the prediction; the median error is {}", inside,
                     errors.size(), inside == 1 ? "was" : "were", percent(quantile(errors, 0.5)));
}

/// Draws lines from edge to edge of the plot.
void add_guides(double low, double high, Figure& figure) {
  for (const double share : {-near, 0.0, near}) {
    const double from = std::max(low, low / (1.0 + share));
    const double to = std::min(high, high / (1.0 + share));
    figure.marks.emplace_back(LineMark{.points = {{from, from * (1.0 + share)}, {to, to * (1.0 + share)}},
                                       .role = Role::muted,
                                       .dashed = share != 0.0});
  }
  figure.legend.push_back({.text = "equal", .role = Role::muted, .line = true});
  figure.legend.push_back({.text = "10% off", .role = Role::muted, .line = true, .dashes = "5 4"});
}

void add_pair(const MeasuredPair& pair, std::size_t index, const TimeUnit& unit, Figure& figure) {
  const LineStyle style = style_of(index);
  const auto place = [&](Duration time) { return std::max(unit.value(time), figure.x.low); };
  const double x = place(pair.predicted);
  const std::string tip =
      fmt::format("{}, {}: predicted {}, measured {} (p10 to p90: {} to {}, {} rounds), {}", pair.name, pair.point,
                  unit.text(pair.predicted), unit.text(pair.median), unit.digits(pair.p10), unit.text(pair.p90),
                  pair.rounds, signed_percent(error_of(pair)));
  figure.marks.emplace_back(LineMark{.points = {{x, place(pair.p10)}, {x, place(pair.p90)}}, .role = style.role});
  figure.marks.emplace_back(PointsMark{.points = {{x, place(pair.median)}},
                                       .role = style.role,
                                       .symbol = style.symbol,
                                       .size = 6.0,
                                       .name = pair.name,
                                       .tips = {tip}});
  figure.legend.push_back({.text = pair.name, .role = style.role, .symbol = style.symbol});
  figure.description += tip + ". ";
  figure.data.rows.push_back({pair.name, pair.point, fmt::format("{}", to_microseconds(pair.predicted)),
                              fmt::format("{}", to_microseconds(pair.median)),
                              fmt::format("{}", to_microseconds(pair.p10)),
                              fmt::format("{}", to_microseconds(pair.p90)), fmt::format("{}", pair.rounds)});
}

}  // namespace

Figure agreement_figure(std::span<const MeasuredPair> pairs, std::string id) {
  check(!pairs.empty(), "an agreement needs at least one pair");
  Duration least = Duration::max();
  Duration longest{1};
  for (const MeasuredPair& pair : pairs) {
    least = std::min({least, pair.predicted, pair.p10});
    longest = std::max({longest, pair.predicted, pair.p90});
  }
  const TimeUnit unit(longest);
  const double low = std::max(unit.value(least), shortest * unit.value(longest)) / 1.1;
  const double high = unit.value(longest) * 1.1;
  Figure figure;
  figure.id = std::move(id);
  figure.height = 340.0;
  figure.width = 620.0;
  figure.plot_width = 480.0;
  figure.title = agreement_title(pairs);
  figure.x = {.label = "predicted",
              .unit = unit.name(),
              .low = low,
              .high = high,
              .logarithmic = true,
              .grid = true,
              .ticks = log_ticks(low, high)};
  figure.y = {.label = "measured",
              .unit = unit.name(),
              .low = low,
              .high = high,
              .logarithmic = true,
              .grid = true,
              .ticks = log_ticks(low, high)};
  figure.data.columns = {"schedule", "point", "predicted_us", "median_us", "p10_us", "p90_us", "rounds"};
  add_guides(low, high, figure);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    add_pair(pairs[i], i, unit, figure);
  }
  return figure;
}

namespace {

constexpr double farthest = 0.5;         // larger residuals are drawn at the edge
constexpr std::size_t max_marks = 1500;  // marks per fit; the data have every row

double residual_of(const FitResidual& residual) { return residual.predicted_us / residual.measured_us - 1.0; }

std::string residual_title(const FitCheck& fit) {
  std::vector<double> fitted;
  std::vector<double> held_out;
  for (const FitResidual& residual : fit.residuals) {
    (residual.held_out ? held_out : fitted).push_back(std::abs(residual_of(residual)));
  }
  if (fitted.empty()) {
    return fmt::format("{}: median error over {} held out: {}", fit.name, counted(held_out.size(), "row"),
                       percent(quantile(held_out, 0.5)));
  }
  const std::string text = fmt::format("{}: median error of the fit over {}: {}", fit.name,
                                       counted(fitted.size(), "row"), percent(quantile(fitted, 0.5)));
  return held_out.empty()
             ? text
             : text + fmt::format(", over {} held out: {}", held_out.size(), percent(quantile(held_out, 0.5)));
}

PointsMark residual_points(const FitCheck& fit, bool held_out) {
  PointsMark mark{.role = held_out ? Role::second : Role::first,
                  .symbol = held_out ? Symbol::diamond : Symbol::circle,
                  .size = 3.5,
                  .name = held_out ? "held out" : "fitted"};
  for (const std::size_t index : spread({.count = fit.residuals.size(), .kept = max_marks})) {
    const FitResidual& residual = fit.residuals[index];
    if (residual.held_out == held_out) {
      const double error = std::clamp(residual_of(residual), -farthest, farthest);
      mark.points.push_back({residual.measured_us, 100.0 * error});
      mark.tips.push_back(fmt::format("measured {:.1f} \u00b5s, fitted {:.1f} \u00b5s, {}{}", residual.measured_us,
                                      residual.predicted_us, signed_percent(residual_of(residual)),
                                      held_out ? ", held out" : ""));
    }
  }
  return mark;
}

}  // namespace

Figure residual_figure(const FitCheck& fit, std::string id) {
  check(!fit.residuals.empty(), "a figure of residuals needs at least one residual");
  double low = fit.residuals.front().measured_us;
  double high = low;
  double widest = 0.05;
  Figure figure;
  for (const FitResidual& residual : fit.residuals) {
    low = std::min(low, residual.measured_us);
    high = std::max(high, residual.measured_us);
    widest = std::max(widest, std::min(std::abs(residual_of(residual)), farthest));
    figure.data.rows.push_back({fmt::format("{}", residual.measured_us), fmt::format("{}", residual.predicted_us),
                                residual.held_out ? "1" : "0"});
  }
  figure.id = std::move(id);
  figure.height = 200.0;
  figure.title = residual_title(fit);
  figure.description = fmt::format("{}. Fitted from {}.", figure.title, fit.source);
  figure.data.columns = {"measured_us", "fitted_us", "held_back"};
  figure.x = {.label = "measured time",
              .unit = "\u00b5s",
              .low = low / 1.2,
              .high = high * 1.2,
              .logarithmic = true,
              .grid = true};
  figure.x.ticks = log_ticks(figure.x.low, figure.x.high);
  figure.y = {
      .label = "fitted / measured \u2212 1", .unit = "%", .low = -110.0 * widest, .high = 110.0 * widest, .grid = true};
  figure.y.ticks = round_ticks(figure.y.low, figure.y.high, 5);
  figure.marks.emplace_back(LineMark{.points = {{figure.x.low, 0.0}, {figure.x.high, 0.0}}, .role = Role::muted});
  for (const bool held_out : {false, true}) {
    if (PointsMark mark = residual_points(fit, held_out); !mark.points.empty()) {
      figure.legend.push_back({mark.name, mark.role});
      figure.marks.emplace_back(std::move(mark));
    }
  }
  return figure;
}

}  // namespace commfuse::reports
