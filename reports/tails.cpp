// SPDX-License-Identifier: Apache-2.0
#include "reports/tails.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "model/check.h"
#include "model/text/counted.h"
#include "model/text/decimals.h"
#include "model/text/quantity.h"
#include "model/wrapped.h"
#include "reports/point_rows.h"

namespace commfuse::reports {

namespace {

constexpr const char* tail_line = "{:<27} {:>8} {:>8} {:>8} {:>17} {:>7}\n";
constexpr std::size_t tail_label_width = 27;  // a longer label has a separate line

const Estimate& p99(const ResultRow& row) { return row.tails->percentiles.p99; }

std::string range_in_words(const Estimate& estimate, const Unit& unit) {
  return estimate.range ? fmt::format("{}..{}", unit.text(estimate.range->low), unit.text(estimate.range->high))
                        : "too few samples";
}

std::string rounded_percent(double share) { return fmt::format("{:.0f}%", 100.0 * share); }

double path_seconds(const P99Causes& causes) {
  Duration sum{};
  for (const Duration duration : causes.time_on_path) {
    sum += duration;
  }
  return std::max(to_seconds(sum), 1e-12);
}

/// Describes the delay against an undisturbed run, its causes, and the ops of the critical paths.
std::string causes_in_words(const ResultRow& row, Rows rows, const Unit& unit) {
  const P99Causes& causes = row.tails->causes;
  const Breakdown& undisturbed = row.analysis.critical;
  std::vector<std::pair<const char*, Duration>> grown{{"stretch", causes.mean.stretch - undisturbed.stretch},
                                                      {"head", causes.mean.head - undisturbed.head},
                                                      {"bubble", causes.mean.bubble - undisturbed.bubble},
                                                      {"tail", causes.mean.tail - undisturbed.tail}};
  std::stable_sort(grown.begin(), grown.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  const Duration delay = causes.mean.makespan - undisturbed.makespan;  // below 0 if measured factors are below 1
  std::string text = fmt::format("{}: {} {}", short_label(row, rows),
                                 with_sign(unit.scale.value(delay), unit.scale.decimals), unit.name());
  std::string parts;
  for (const auto& [name, duration] : grown) {
    if (duration > Duration{}) {
      parts += fmt::format("{}{} +{}", parts.empty() ? "" : ", ", name, unit.text(duration));
    }
  }
  text += parts.empty() ? "" : fmt::format(" ({})", parts);
  text += "; critical path:";
  for (const auto& [kind, name] :
       {std::pair(PathKind::essential, " essential ops "), std::pair(PathKind::local, ", adds and copies "),
        std::pair(PathKind::communication, ", communication "), std::pair(PathKind::issue, ", host ")}) {
    const auto kind_index = static_cast<std::size_t>(kind);
    text += fmt::format("{}{} ({})", name,
                        rounded_percent(to_seconds(causes.time_on_path[kind_index]) / path_seconds(causes)),
                        rounded_percent(causes.on_path[kind_index]));
  }
  if (causes.rank_on_path.size() > 1) {
    const Rank worst = causes.worst_rank();
    text += fmt::format("; most on rank {}: {} ({})", worst, rounded_percent(causes.share_of_path(worst)),
                        rounded_percent(causes.rank_on_path[static_cast<std::size_t>(worst)]));
  }
  return text + ".";
}

/// Returns the rows of a point that ran under jitter, grouped by jitter, number of runs and seed, which may be axes.
std::vector<std::vector<ResultRow>> rows_by_jitter(Rows point) {
  const auto settings_of = [](const ResultRow& row) {
    return std::tuple(row.jitter, row.tails->percentiles.samples, row.seed);
  };
  std::vector<std::vector<ResultRow>> groups;
  for (const ResultRow& row : point) {
    if (row.tails) {
      const auto group = std::ranges::find_if(
          groups, [&](const std::vector<ResultRow>& rows) { return settings_of(rows.front()) == settings_of(row); });
      (group == groups.end() ? groups.emplace_back() : *group).push_back(row);
    }
  }
  return groups;
}

/// Returns the table, the verdict and the causes for one group of rows_by_jitter().
std::string block(Rows rows) {
  const Unit unit(rows);
  std::string text = fmt::format(tail_line, fmt::format("ranks {}, seq {}", rows[0].ranks, format_count(rows[0].seq)),
                                 fmt::format("p50/{}", unit.name()), "p95", "p99", "its 95% interval", "p99.9");
  std::string causes;
  for (const ResultRow& row : rows) {
    const Percentiles& percentiles = row.tails->percentiles;
    std::string name = "  " + label(row);
    if (name.size() > tail_label_width) {
      text += name + "\n";
      name.clear();
    }
    text += fmt::format(tail_line, name, unit.text(percentiles.p50.value), unit.text(percentiles.p95.value),
                        unit.text(percentiles.p99.value), range_in_words(percentiles.p99, unit),
                        unit.text(percentiles.p99_9.value));
    causes += wrapped(causes_in_words(row, rows, unit), "    ", "      ");
  }
  return text + wrapped(tail_verdict(rows), "  ", "  ") +
         "  Causes of the p99: runs between p98.5 and p99.5 against one without jitter;\n"
         "  shares of the time on their critical paths (in parentheses: share of runs that\n"
         "  have such ops there).\n" +
         causes;
}

}  // namespace

std::string tail_verdict(Rows rows) {
  std::vector<const ResultRow*> order;
  for (const ResultRow& row : rows) {
    if (row.tails && can_win(row, rows)) {
      order.push_back(&row);
    }
  }
  check(!order.empty(), "a verdict needs at least one row");
  std::stable_sort(order.begin(), order.end(),
                   [](const ResultRow* a, const ResultRow* b) { return p99(*a).value < p99(*b).value; });
  const ResultRow& best = *order.front();
  if (order.size() == 1) {
    return fmt::format("{} has a p99 of {} {}.", label(best), Unit(rows).text(p99(best).value), Unit(rows).name());
  }
  const ResultRow& next = *order[1];
  const bool are_equal = p99(best).value == p99(next).value;
  const double saved = are_equal ? 0.0 : 1.0 - to_seconds(p99(best).value) / to_seconds(p99(next).value);
  const bool have_ranges = p99(best).range && p99(next).range;
  const bool are_disjoint = have_ranges && p99(best).range->high < p99(next).range->low;
  return fmt::format("Lowest p99: {}, {:.1f}% below {}; {}.", short_label(best, rows), 100.0 * saved,
                     short_label(next, rows),
                     are_disjoint  ? "their intervals do not overlap"
                     : have_ranges ? "their intervals overlap, so the samples do not decide which is lower"
                                   : "too few samples to decide which is lower");
}

std::string tails_table(Rows rows) {
  const auto has_tails = [](const ResultRow& row) { return row.tails.has_value(); };
  const auto known = std::ranges::find_if(rows, has_tails);
  const bool has_several_settings = std::ranges::any_of(
      rows, [&](const ResultRow& row) { return has_tails(row) && !same_but_for_axes(row, *known); });
  std::string text;
  for (const Rows point : rows_by_point(rows)) {
    for (const std::vector<ResultRow>& rows_of_jitter : rows_by_jitter(point)) {
      const ResultRow& first = rows_of_jitter.front();
      const std::size_t samples = first.tails->percentiles.samples;
      text += text.empty() ? "" : "\n";
      text += has_several_settings ? wrapped(setting_heading(first), "", "  ") : "";
      text += fmt::format("Under jitter '{}', {}, seed {}\n", first.jitter, counted(samples, "run"), first.seed);
      text += block(rows_of_jitter);
    }
  }
  return text;
}

}  // namespace commfuse::reports
