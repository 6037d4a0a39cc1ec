// SPDX-License-Identifier: Apache-2.0
#include "reports/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "model/analysis/error_tail.h"
#include "model/check.h"
#include "model/math/functions.h"
#include "model/text/decimals.h"
#include "model/wrapped.h"
#include "reports/point_rows.h"
#include "reports/savings.h"

namespace commfuse::reports {

namespace {

/// Returns the ratio of makespans; 1 for two rows that take no time, as for a file without ops.
double ratio(const ResultRow& slower, const ResultRow& faster) {
  if (makespan_of(slower) == makespan_of(faster)) {
    return 1.0;
  }
  return to_seconds(makespan_of(slower)) / to_seconds(makespan_of(faster));
}

/// Returns how much less time `fastest` takes than `row`, whose name is `name`: "8.2% less time than sliced".
std::string saved(const ResultRow& row, const ResultRow& fastest, const std::string& name) {
  return fmt::format("{:.1f}% less time than {}", 100.0 * (1.0 - 1.0 / ratio(row, fastest)), name);
}

/// Returns a sentence about the lowest bound below the fastest row that can win, such as " fused_kernel (bound) takes
/// 7.6% less than commfuse." Returns an empty string without a bound, or if the bound is above that row: a machine's
/// file may contradict itself (wires faster than their nominal rate). Rows of is_no_bound() do not count as bounds.
std::string bound_in_words(Rows rows, const ResultRow& fastest) {
  const ResultRow* lowest = nullptr;
  for (const ResultRow& row : rows) {
    if (!can_win(row, rows) && !is_no_bound(row) && (lowest == nullptr || makespan_of(row) < makespan_of(*lowest))) {
      lowest = &row;
    }
  }
  return lowest == nullptr || makespan_of(*lowest) > makespan_of(fastest)
             ? std::string{}
             : fmt::format(" {} takes {:.1f}% less than {}.", label(*lowest), 100.0 * (1.0 - ratio(*lowest, fastest)),
                           short_label(fastest, rows));
}

/// Formats the winner and its lead over up to three other rows; if there are more, over the next two and the slowest.
std::string lead_in_words(const PointVerdict& point, Rows rows) {
  constexpr std::size_t max_named = 3;
  const std::vector<const ResultRow*>& order = point.ranking;
  std::string text = fmt::format("{} wins{}: ", short_label(*order[0], rows), sure_in_words(point.probability));
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order.size() > max_named + 1 && i == max_named) {
      return text + fmt::format(" and {}.", saved(*order.back(), *order[0],
                                                  fmt::format("the slowest, {}", short_label(*order.back(), rows))));
    }
    text += fmt::format("{}{}", i == 1 ? "" : ", ", saved(*order[i], *order[0], short_label(*order[i], rows)));
  }
  return text + ".";
}

/// Names every row that ties. If a row is further behind than a win requires, adds the probability that falls short.
std::string tie_in_words(const PointVerdict& point, Rows rows, const VerdictRule& rule) {
  std::vector<std::string> names;
  std::vector<Contender> tied;
  for (const ResultRow* row : point.front) {
    names.push_back(short_label(*row, rows));
    tied.push_back(contender_of(*row));
  }
  const double widest = ratio(*point.front.back(), *point.front.front()) - 1.0;
  std::string text = fmt::format("Tie: {} are within {:.1f}%", names_in_words(names), 100.0 * widest);
  const std::optional<double> probability = verdict_of(tied, rule).probability;
  if (widest > rule.difference && probability) {
    text += fmt::format("; {} is the fastest with a probability of {}, and a win needs {:.0f}%", names.front(),
                        probability_in_words(*probability), 100.0 * rule.probability);
  }
  return text + ".";
}

/// Adds to `sure`, such as " (88% sure)", the interval of the saving of a row that takes `times` times as long as the
/// baseline, or of the loss if the row takes longer: " (90% interval -7 to 40%; 88% sure)". Returns `sure` unchanged if
/// it has another form, or if the row has no saving_error.
std::string with_interval(const std::string& sure, const ResultRow& row, double times) {
  if (!row.saving_error || !sure.starts_with(" (")) {
    return sure;
  }
  const double reach = math::exp(errors_with_share_below(0.95) * *row.saving_error);
  const double sign = times < 1.0 ? 1.0 : -1.0;
  const auto [low, high] = std::minmax({sign * (1.0 - times * reach), sign * (1.0 - times / reach)});
  return fmt::format(" (90% interval {} to {}%; {}", with_decimals(100.0 * low, 0), with_decimals(100.0 * high, 0),
                     sure.substr(2));
}

/// States whether overlap with available implementations beats the baseline, by how much, and with what certainty.
std::string pay_sentence(const Implementations& implementations, const PayVerdict& verdict) {
  const ResultRow& recommended = *verdict.overlap;
  const double times = 1.0 - verdict.saved;
  const std::string by = fmt::format("{:.1f}% {}", 100.0 * std::abs(verdict.saved), times < 1.0 ? "less" : "more");
  const char* lead = verdict.pays == Pays::close ? "Too close to call"
                     : verdict.pays == Pays::yes ? "Overlap pays"
                                                 : "Overlap does not pay";
  std::string text =
      fmt::format("{}: {} time than {}{} with {}", lead, by, verdict.serial->strategy,
                  with_interval(sure_in_words(verdict.probability), recommended, times), recommended.strategy);
  if (implementations.count > 1) {
    text += ", the fastest implementation";
    text += implementations.without_overlap == nullptr ? "" : " that overlaps";
    text += implementations.fastest == &recommended
                ? std::string{}
                : fmt::format(" with a clear win ({} may take less)", implementations.fastest->strategy);
  }
  return text + ".";
}

/// States that the fastest implementation, which overlaps nothing, beats the baseline; empty otherwise.
std::string without_overlap_in_words(const ResultRow* row, const ResultRow& baseline, const VerdictRule& rule) {
  if (row == nullptr || makespan_of(*row) >= makespan_of(baseline)) {
    return {};
  }
  const PayVerdict verdict = pay_verdict(*row, baseline, *row, rule);
  return fmt::format(" {}, which overlaps nothing, takes {:.1f}% less time than {}{}.", row->strategy,
                     100.0 * verdict.saved, baseline.strategy,
                     with_interval(sure_in_words(verdict.probability), *row, 1.0 - verdict.saved));
}

/// Turns "its GEMM 43 us, the cost of its calls 30 us" into "its GEMM (43 us) and the cost of its calls (30 us)".
std::string costs_in_words(std::string_view held_back) {
  constexpr std::string_view between = ", ";
  std::vector<std::string> costs;
  while (!held_back.empty()) {
    const std::size_t end = std::min(held_back.find(between), held_back.size());
    std::string cost{held_back.substr(0, end)};
    const std::size_t number = cost.find_first_of("0123456789");
    if (number != std::string::npos && number > 0 && cost.ends_with(" us")) {
      cost = fmt::format("{}({})", cost.substr(0, number), cost.substr(number));
    }
    costs.push_back(std::move(cost));
    held_back.remove_prefix(std::min(end + between.size(), held_back.size()));
  }
  return names_in_words(costs);
}

/// States how much less time ideal kernels would take, and to what the recommended implementation loses time.
std::string reach_in_words(const ResultRow& recommended, Rows rows) {
  const ResultRow* ideal = nullptr;
  for (const ResultRow& row : rows) {
    const bool is_ideal = row.bound && row.feasible() && row.implements.empty();
    ideal = is_ideal && (ideal == nullptr || makespan_of(row) < makespan_of(*ideal)) ? &row : ideal;
  }
  std::string text;
  if (ideal != nullptr && makespan_of(*ideal) < makespan_of(recommended)) {
    text = fmt::format(" Ideal kernels ({}) would take {}.", ideal->strategy,
                       saved(recommended, *ideal, recommended.strategy));
  }
  return recommended.held_back.empty()
             ? text
             : text + fmt::format(" {} loses time to {}.", recommended.strategy, costs_in_words(recommended.held_back));
}

/// Returns the sentences of pays_in_words() for a ranking of the rows that can win, fastest first.
std::string pay_sentences(std::span<const ResultRow* const> ranking, Rows rows, const ResultRow& baseline,
                          const VerdictRule& rule) {
  const Implementations implementations = implementations_of(ranking, baseline, rule);
  return implementations.chosen == nullptr
             ? std::string{}
             : pay_sentence(implementations, pay_verdict(*implementations.chosen, baseline, *ranking.front(), rule)) +
                   without_overlap_in_words(implementations.without_overlap, baseline, rule) +
                   reach_in_words(*implementations.chosen, rows);
}

constexpr std::size_t max_ties = 4;  // groups of tied strategies that a summary names

}  // namespace

std::string pays_in_words(Rows rows, const ResultRow& baseline, const VerdictRule& rule) {
  return pay_sentences(point_verdict(rows, rule).ranking, rows, baseline, rule);
}

std::string verdict(Rows rows, const VerdictRule& rule) {
  check(!rows.empty(), "a verdict needs at least one row");
  const PointVerdict point = point_verdict(rows, rule);
  check(!point.ranking.empty(), "a verdict needs at least one row that can win");
  const ResultRow& fastest = *point.ranking.front();
  if (const ResultRow* const serial = serial_of(rows)) {
    if (std::string pays = pay_sentences(point.ranking, rows, *serial, rule); !pays.empty()) {
      return pays;
    }
  }
  const std::string bound = bound_in_words(rows, fastest);
  if (point.ranking.size() == 1) {
    const Unit unit(rows);
    return fmt::format("{} takes {} {}.{}", label(fastest), unit.text(makespan_of(fastest)), unit.name(), bound);
  }
  return (point.wins() ? lead_in_words(point, rows) : tie_in_words(point, rows, rule)) + bound;
}

std::string rule_in_words(const VerdictRule& rule) {
  return fmt::format("more than {:.3g}% and a probability of {:.3g}%", 100.0 * rule.difference,
                     100.0 * rule.probability);
}

void VerdictCount::add(std::vector<std::string> front) {
  check(!front.empty(), "a verdict names at least one strategy");
  if (front.size() == 1) {
    ++wins_[front.front()];
    return;
  }
  std::sort(front.begin(), front.end());
  front.erase(std::unique(front.begin(), front.end()), front.end());
  ++ties_[names_in_words(front)];
}

std::string VerdictCount::in_words() const {
  std::string text;
  for (const auto& [strategy, count] : wins_) {
    text += fmt::format("{}{} wins {}", text.empty() ? "" : ", ", strategy, count);
  }
  std::vector<std::pair<std::string, int>> ties(ties_.begin(), ties_.end());
  std::stable_sort(ties.begin(), ties.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  int ties_in_total = 0;
  int rest = 0;
  std::string names;
  for (std::size_t i = 0; i < ties.size(); ++i) {
    ties_in_total += ties[i].second;
    i < max_ties ? void(names += fmt::format("{}{} {}", i == 0 ? "" : "; ", ties[i].first, ties[i].second))
                 : void(rest += ties[i].second);
  }
  names += rest > 0 ? fmt::format("; others {}", rest) : "";
  return fmt::format("{}{}{} tie{}", text, text.empty() ? "" : ", ", ties_in_total,
                     ties_in_total > 0 ? fmt::format(" ({})", names) : "");
}

std::string summary(Rows rows, const VerdictRule& rule) {
  const std::vector<Rows> points = rows_by_point(rows);
  if (points.size() < 2) {
    return {};
  }
  VerdictCount count;
  for (const Rows point : points) {
    std::vector<std::string> names;
    for (const ResultRow* row : point_verdict(point, rule).front) {
      names.push_back(row->strategy);
    }
    count.add(std::move(names));
  }
  return summary_in_words(points.size(), count, rule);
}

std::string summary_in_words(std::size_t points, const VerdictCount& count, const VerdictRule& rule) {
  return wrapped(fmt::format("Of {} points, {}. A win needs {}.", points, count.in_words(), rule_in_words(rule)), "",
                 "");
}

}  // namespace commfuse::reports
