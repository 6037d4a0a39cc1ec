// SPDX-License-Identifier: Apache-2.0
#include "reports/point_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"
#include "model/text/quantity.h"

namespace commfuse::reports {

namespace {

bool is_same_schedule(const ResultRow& a, const ResultRow& b) {
  return a.strategy == b.strategy && a.parameters == b.parameters && a.bound == b.bound &&
         makespan_of(a) == makespan_of(b);
}

}  // namespace

bool same_point(const ResultRow& a, const ResultRow& b) { return compare_points(a, b) == 0; }

std::vector<Rows> rows_by_point(Rows rows) {
  std::vector<Rows> points;
  std::size_t first = 0;
  for (std::size_t i = 1; i <= rows.size(); ++i) {
    if (i == rows.size() || !same_point(rows[i], rows[first])) {
      points.push_back(rows.subspan(first, i - first));
      first = i;
    }
  }
  return points;
}

std::vector<std::size_t> order_by_point(Rows rows) {
  const auto before = [](const ResultRow* a, const ResultRow* b) { return compare_points(*a, *b) < 0; };
  std::map<const ResultRow*, std::size_t, decltype(before)> point_numbers;  // in order of appearance
  std::vector<std::size_t> point(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    point[i] = i > 0 && same_point(rows[i], rows[i - 1])
                   ? point[i - 1]
                   : point_numbers.try_emplace(&rows[i], point_numbers.size()).first->second;
  }
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return point[a] < point[b]; });
  return order;
}

std::vector<ResultRow> ordered_by_point(std::vector<ResultRow> rows) {
  std::vector<std::size_t> order = order_by_point(rows);
  // The permutation is applied in place, cycle by cycle: a sweep has millions of rows, usually in order.
  for (std::size_t first = 0; first < order.size(); ++first) {
    for (std::size_t index = first; order[index] != index;) {
      const std::size_t next = std::exchange(order[index], index);
      if (next != first) {
        std::swap(rows[index], rows[next]);
      }
      index = next;
    }
  }
  return rows;
}

const ResultRow* serial_of(Rows rows) {
  const ResultRow* serial = nullptr;
  for (const ResultRow& row : rows) {
    const bool is_serial = row.strategy == "serial" && row.feasible() && makespan_of(row) > Duration{};
    serial = is_serial && (serial == nullptr || makespan_of(row) < makespan_of(*serial)) ? &row : serial;
  }
  return serial;
}

std::optional<double> against_serial(const ResultRow& row, const ResultRow* serial) {
  if (serial == nullptr || row.strategy == "serial" || !row.feasible()) {
    return std::nullopt;
  }
  return to_seconds(makespan_of(row)) / to_seconds(makespan_of(*serial)) - 1.0;
}

Contender contender_of(const ResultRow& row) {
  return {to_seconds(makespan_of(row)), row.makespan_error, row.win_probability};
}

bool PointVerdict::in_front(const ResultRow& row) const {
  return std::any_of(front.begin(), front.end(), [&](const ResultRow* candidate) {
    return candidate == &row || is_same_schedule(*candidate, row);
  });
}

PointVerdict point_verdict(Rows rows, const VerdictRule& rule) {
  std::vector<const ResultRow*> candidates;
  std::vector<Contender> contenders;
  const bool any_time =
      std::any_of(rows.begin(), rows.end(), [](const ResultRow& row) { return makespan_of(row) > Duration{}; });
  for (const ResultRow& row : rows) {
    const bool is_known = std::any_of(candidates.begin(), candidates.end(),
                                      [&](const ResultRow* other) { return is_same_schedule(*other, row); });
    const bool has_result = row.feasible() && (makespan_of(row) > Duration{} || !any_time);
    if (has_result && can_win(row, rows) && !is_known) {
      candidates.push_back(&row);
      contenders.push_back(contender_of(row));
    }
  }
  PointVerdict result;
  if (candidates.empty()) {
    return result;
  }
  const Verdict verdict = verdict_of(contenders, rule);
  const auto rows_at = [&](const std::vector<std::size_t>& indices, std::vector<const ResultRow*>& to) {
    std::transform(indices.begin(), indices.end(), std::back_inserter(to),
                   [&](std::size_t i) { return candidates[i]; });
  };
  rows_at(verdict.order, result.ranking);
  rows_at(verdict.front, result.front);
  result.probability = verdict.probability;
  return result;
}

std::vector<std::string> verdict_words(Rows rows, const VerdictRule& rule) {
  const std::vector<std::size_t> order = order_by_point(rows);
  std::vector<ResultRow> copies;
  if (!std::is_sorted(order.begin(), order.end())) {
    copies = ordered_by_point({rows.begin(), rows.end()});
  }
  const Rows ordered = copies.empty() ? rows : Rows(copies);
  std::vector<std::string> words(rows.size());
  auto row_index = order.begin();
  for (const Rows point : rows_by_point(ordered)) {
    const PointVerdict verdict = point_verdict(point, rule);
    for (const ResultRow& row : point) {
      std::string& word = words[*row_index++];
      if (row.feasible() && verdict.ranking.size() > 1) {
        word = !can_win(row, point) ? "bound" : !verdict.in_front(row) ? "loses" : verdict.wins() ? "wins" : "ties";
      }
    }
  }
  return words;
}

bool can_win(const ResultRow& row, Rows rows) {
  return !row.bound ||
         std::all_of(rows.begin(), rows.end(), [](const ResultRow& other) { return other.bound || !other.feasible(); });
}

/// Attention in a bound's kernels waits for all keys; schedules that process queries one by one may be faster.
bool is_no_bound(const ResultRow& row) {
  const std::optional<Scope> scope = scope_named(row.scope);
  return row.bound && scope && has_attention(*scope);
}

bool overlaps_nothing(const ResultRow& row) { return row.implements == serial_strategy.name; }

std::string label(const ResultRow& row) {
  if (is_no_bound(row)) {
    return fmt::format("{} (no {})", row.strategy, row.parameters);
  }
  const Strategy* strategy = find_strategy(row.strategy);
  if (row.bound && strategy != nullptr && !strategy->bound) {  // Next to implementations, such a row is a bound.
    return fmt::format("{} (ideal{}{})", row.strategy, row.parameters.empty() ? "" : ", ", row.parameters);
  }
  return row.parameters.empty() ? row.strategy : fmt::format("{} ({})", row.strategy, row.parameters);
}

std::string short_label(const ResultRow& row, Rows rows) {
  const auto same_strategy =
      std::count_if(rows.begin(), rows.end(), [&](const ResultRow& r) { return r.strategy == row.strategy; });
  return same_strategy > 1 ? label(row) : row.strategy;
}

std::string probability_in_words(double probability) {
  constexpr double highest = 0.995;  // Effects outside the model leave some doubt.
  return probability >= highest ? std::string{"over 99%"} : fmt::format("{:.0f}%", 100.0 * probability);
}

std::string sure_in_words(const std::optional<double>& probability) {
  return probability ? fmt::format(" ({} sure)", probability_in_words(*probability))
                     : std::string{", probability unknown (--uncertainty off)"};
}

namespace {

/// Turns attention_kernel into "attention kernel".
std::string key_in_words(std::string_view key) {
  std::string words{key};
  std::ranges::replace(words, '_', ' ');
  return words;
}

}  // namespace

std::vector<std::string> unusual(const ResultRow& row) {
  std::vector<std::string> words;
  if (row.interference != "static" || row.launch != "stream") {
    words.push_back(fmt::format("interference {}, launch {}", row.interference, row.launch));
  }
  if (row.all_reduce_kernel != "nccl") {
    words.push_back(fmt::format("all-reduce of {}", row.all_reduce_kernel));
  }
  for (const PriceSetting& setting : price_settings) {
    const bool is_already_named = setting.member == &PricedAs::interference || setting.member == &PricedAs::launch;
    const std::string& word = row.*setting.member;
    if (!is_already_named && !word.empty() && word != setting.preset) {
      words.push_back(fmt::format("{} {}", key_in_words(setting.key), word));
    }
  }
  if (!row.faults.empty() && row.faults != "none") {
    words.push_back(fmt::format("faults {}", row.faults));
  }
  return words;
}

std::string setting_heading(const ResultRow& row) {
  std::string text = fmt::format("{} {} on {}, batch {}, {}", row.model, row.scope, machine_in_words(row),
                                 format_count(row.batch), row.dtype);
  for (const std::string& words : unusual(row)) {
    text += ", " + words;
  }
  return text;
}

std::vector<std::string> warnings_in(std::string_view cell) {
  constexpr std::string_view between = "; ";
  std::vector<std::string> warnings;
  while (!cell.empty()) {
    const std::size_t end = std::min(cell.find(between), cell.size());
    warnings.emplace_back(cell.substr(0, end));
    cell.remove_prefix(std::min(end + between.size(), cell.size()));
  }
  return warnings;
}

std::vector<std::string> warnings_of(Rows rows) {
  std::vector<std::string> warnings;
  for (const ResultRow& row : rows) {
    for (std::string& warning : warnings_in(row.warnings)) {
      if (!is_memory_warning(warning) && std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) {
        warnings.push_back(std::move(warning));
      }
    }
  }
  return warnings;
}

void add_need(const ResultRow& row, LargestNeed& need) {
  std::optional<std::string> warning;
  for (std::string& text : warnings_in(row.warnings)) {
    if (is_memory_warning(text)) {
      warning = std::move(text);
    }
  }
  need.add(static_cast<double>(row.buffers.count), std::move(warning));
}

std::string memory_sentence(Rows rows) {
  LargestNeed need;
  for (const ResultRow& row : rows) {
    add_need(row, need);
  }
  return need.sentence();
}

namespace {

Duration longest_of(Rows rows) {
  Duration longest{};
  for (const ResultRow& row : rows) {
    longest = std::max(longest, makespan_of(row));
  }
  return longest;
}

}  // namespace

Unit::Unit(Rows rows) : scale(time_scale(longest_of(rows))) {}

}  // namespace commfuse::reports
