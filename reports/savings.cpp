// SPDX-License-Identifier: Apache-2.0
#include "reports/savings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/commas.h"
#include "reports/point_rows.h"

namespace commfuse::reports {

namespace {

bool is_implementation(const ResultRow& row) { return !row.implements.empty() && row.feasible(); }

/// Returns the time of the row divided by the time of serial.
double time_ratio(const ResultRow& row, const ResultRow& serial) {
  const double row_time = contender_of(row).time;
  const double serial_time = contender_of(serial).time;
  return row_time == serial_time ? 1.0 : row_time / serial_time;
}

}  // namespace

PayVerdict pay_verdict(const ResultRow& row, const ResultRow& serial, const ResultRow& fastest,
                       const VerdictRule& rule) {
  const double ratio = time_ratio(row, serial);
  PayVerdict verdict{.overlap = &row, .serial = &serial, .saved = 1.0 - ratio};
  const ResultRow& faster = ratio < 1.0 ? row : serial;
  if (row.beats_serial) {
    verdict.probability = ratio < 1.0 ? *row.beats_serial : 1.0 - *row.beats_serial;
  } else if (contender_of(faster).time == contender_of(fastest).time) {
    verdict.probability = probability_faster(contender_of(faster), contender_of(ratio < 1.0 ? serial : row));
  }
  const bool is_clear =
      std::max(ratio, 1.0 / ratio) - 1.0 > rule.difference && verdict.probability.value_or(1.0) >= rule.probability;
  verdict.pays = !is_clear ? Pays::close : ratio < 1.0 ? Pays::yes : Pays::no;
  return verdict;
}

Implementations implementations_of(std::span<const ResultRow* const> ranking, const ResultRow& serial,
                                   const VerdictRule& rule) {
  Implementations result;
  result.count = static_cast<std::size_t>(
      std::ranges::count_if(ranking, [](const ResultRow* row) { return is_implementation(*row); }));
  for (const ResultRow* row : ranking) {
    if (!is_implementation(*row)) {
      continue;
    }
    if (overlaps_nothing(*row)) {
      const bool is_fastest = result.fastest == nullptr && result.without_overlap == nullptr;
      result.without_overlap = is_fastest ? row : result.without_overlap;
      continue;
    }
    if (result.fastest == nullptr) {
      result.fastest = result.chosen = row;
    }
    if (pay_verdict(*row, serial, *ranking.front(), rule).pays == Pays::yes) {
      result.chosen = row;
      break;
    }
  }
  return result;
}

std::optional<PayVerdict> pay_verdict(std::span<const ResultRow* const> ranking, const VerdictRule& rule) {
  const ResultRow* serial = nullptr;
  const ResultRow* other = nullptr;
  for (const ResultRow* row : ranking) {
    if (overlaps_nothing(*row)) {
      continue;
    }
    const ResultRow*& first = row->strategy == "serial" ? serial : other;
    first = first == nullptr ? row : first;
  }
  if (serial == nullptr || other == nullptr) {
    return std::nullopt;
  }
  const Implementations result = implementations_of(ranking, *serial, rule);
  return pay_verdict(result.chosen == nullptr ? *other : *result.chosen, *serial, *ranking.front(), rule);
}

void SavingTally::add(double saved, Pays pays) {
  saved_.push_back(static_cast<float>(saved));
  ++count_.points;
  ++(pays == Pays::yes ? count_.pays : pays == Pays::no ? count_.loses : count_.close);
}

SavingCount SavingTally::count() {
  if (saved_.empty()) {
    return count_;
  }
  std::ranges::sort(saved_);
  // Interpolates, so that the median of two points lies between them.
  const auto quantile = [&](double share) {
    const double position = share * static_cast<double>(saved_.size() - 1);
    const auto below = static_cast<std::size_t>(std::floor(position));
    const std::size_t above = std::min(below + 1, saved_.size() - 1);
    const double fraction = position - static_cast<double>(below);
    return static_cast<double>(saved_[below]) * (1.0 - fraction) + static_cast<double>(saved_[above]) * fraction;
  };
  count_.median = quantile(0.5);
  count_.low = quantile(0.1);
  count_.high = quantile(0.9);
  count_.best = static_cast<double>(saved_.back());
  return count_;
}

std::string counts_in_words(const SavingCount& count) {
  std::vector<std::string> parts;
  const auto add = [&](const char* verb, std::int64_t points) {
    if (points > 0) {
      parts.push_back(points == static_cast<std::int64_t>(count.points)
                          ? fmt::format("{} at all of them", verb)
                          : fmt::format("{} at {}", verb, with_commas(points)));
    }
  };
  add("pays", static_cast<std::int64_t>(count.pays));
  add("loses", static_cast<std::int64_t>(count.loses));
  add("is too close to call", static_cast<std::int64_t>(count.close));
  return names_in_words(parts);
}

std::string savings_in_words(const SavingCount& count, std::string_view unit, std::string_view baseline) {
  if (count.points < 2) {
    return {};
  }
  const bool saves = count.median >= 0.0;
  const std::string share =
      fmt::format("{:.1f}%", 100.0 * (saves ? count.median : -count.median));  // Both are shares of serial's time.
  return fmt::format("Over {} {} overlap {}: it {}.", with_commas(static_cast<std::int64_t>(count.points)), unit,
                     saves ? fmt::format("saves a median of {} of {}'s time", share, baseline)
                           : fmt::format("takes a median of {} more time than {}", share, baseline),
                     counts_in_words(count));
}

}  // namespace commfuse::reports
