// SPDX-License-Identifier: Apache-2.0
#include "reports/figure/tornado.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/check.h"
#include "model/math/functions.h"
#include "model/text/decimals.h"
#include "reports/figure/ticks.h"
#include "reports/figure/wording.h"
#include "reports/trace_label.h"

namespace commfuse::reports {

namespace {

constexpr std::size_t max_rows = 12;

std::string kind_of(const Hold& hold) {
  return hold.provenance ? std::string{name_of(*hold.provenance)} : std::string{"residual of its fit"};
}

/// Returns the change of the time, in percent.
double change(double effect) { return 100.0 * (math::exp(effect) - 1.0); }

void add_bar(const Hold& hold, double y, Figure& figure) {
  const double up = change(hold.effect);
  const double down = change(-hold.effect);
  const std::string name = op_in_words(hold.name);
  const std::string tip =
      fmt::format("{} ({}): one standard error, {}, changes the time by {}% or {}%", name, kind_of(hold),
                  percent(hold.standard_error), with_minus(with_sign(up, 2)), with_minus(with_sign(down, 2)));
  const auto bar = [&](double to, Role role) {
    figure.marks.emplace_back(RectMark{.from = {std::min(0.0, to), y - 0.35},
                                       .to = {std::max(0.0, to), y + 0.35},
                                       .role = role,
                                       .labels = {},
                                       .tip = tip});
  };
  bar(up, Role::second);
  bar(down, Role::first);
  figure.y.ticks.push_back({y, name});
  figure.description += tip + ". ";
  figure.data.rows.push_back({hold.name, kind_of(hold), hold.source, fmt::format("{}", hold.standard_error),
                              fmt::format("{}", up), fmt::format("{}", down),
                              hold.elasticity ? fmt::format("{}", *hold.elasticity) : ""});
}

}  // namespace

bool has_effects(const Explanation& explanation) {
  return !explanation.holds.empty() && explanation.holds.front().effect != 0.0;
}

Figure tornado_figure(const Explanation& explanation, std::string id) {
  check(has_effects(explanation), "a tornado has a bar");
  Figure figure;
  figure.id = std::move(id);
  const Hold& first = explanation.holds.front();
  figure.title = fmt::format("Largest uncertainty of the time of {}: {}, \u00b1{:.1f}%", label_of(explanation.row),
                             op_in_words(first.name), std::abs(change(first.effect)));
  figure.data.columns = {"what", "kind", "source", "standard_error", "up_percent", "down_percent", "elasticity"};
  double widest = 0.0;
  std::size_t rows = 0;
  for (const Hold& hold : explanation.holds) {
    if (hold.effect != 0.0 && rows < max_rows) {
      add_bar(hold, static_cast<double>(rows++), figure);
      widest = std::max({widest, std::abs(change(hold.effect)), std::abs(change(-hold.effect))});
    }
  }
  figure.height = 26.0 * static_cast<double>(rows);
  figure.x = {.label = "change of the time", .unit = "%", .low = -1.1 * widest, .high = 1.1 * widest, .grid = true};
  figure.x.ticks = round_ticks(figure.x.low, figure.x.high, 7);
  figure.y.low = -0.5;
  figure.y.high = static_cast<double>(rows) - 0.5;
  figure.y.reversed = true;
  figure.legend = {{"+1 standard error", Role::second}, {"\u22121 standard error", Role::first}};
  return figure;
}

}  // namespace commfuse::reports
