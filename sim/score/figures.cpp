// SPDX-License-Identifier: Apache-2.0
#include "sim/score/figures.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "model/text/plain_text.h"

namespace commfuse::score {

namespace {

std::optional<double> number_in(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size() && value > 0.0 && value < 1e6;
  return is_number ? std::optional(value) : std::nullopt;
}

/// Splits a string at the first space.
std::pair<std::string_view, std::string_view> first_word(std::string_view text) {
  const std::size_t space = text.find(' ');
  return space == std::string_view::npos ? std::pair(text, std::string_view())
                                         : std::pair(text.substr(0, space), trimmed(text.substr(space), " "));
}

double factor_of(double value, bool is_percent) { return is_percent ? 1.0 + value / 100.0 : value; }

/// Reads "13.5 p90" or "max/median p99 1.29".
std::optional<Figure> later_figure(std::string_view part, bool is_percent) {
  const auto [head, rest] = first_word(part);
  if (const std::optional<double> value = number_in(head)) {
    return Figure{with_escapes(rest), factor_of(*value, is_percent)};
  }
  const std::size_t space = part.rfind(' ');
  const std::optional<double> value =
      space == std::string_view::npos ? std::nullopt : number_in(part.substr(space + 1));
  return value ? std::optional(Figure{with_escapes(trimmed(part.substr(0, space), " ")), *value}) : std::nullopt;
}

}  // namespace

std::optional<std::vector<Figure>> figures_in(double value, std::string_view unit) {
  const auto [word, name] = first_word(trimmed(unit.substr(0, unit.find(';')), " "));
  const bool is_percent = word == "pct" || word == "pct,";
  if ((!is_percent && word != "x") || !(value > 0.0 && value < 1e6)) {
    return std::nullopt;
  }
  std::vector<Figure> figures{{with_escapes(name), factor_of(value, is_percent)}};
  for (std::size_t semicolon = unit.find(';'); semicolon != std::string_view::npos;) {
    const std::size_t next = unit.find(';', semicolon + 1);
    const std::string_view part = trimmed(
        unit.substr(semicolon + 1, next == std::string_view::npos ? std::string_view::npos : next - semicolon - 1),
        " ");
    std::optional<Figure> figure = later_figure(part, is_percent);
    if (!figure) {
      return std::nullopt;
    }
    figures.push_back(*std::move(figure));
    semicolon = next;
  }
  return figures;
}

std::optional<std::string_view> why_unpredicted(std::span<const UnpredictedRows> list, std::string_view what) {
  const auto entry =
      std::ranges::find_if(list, [&](const UnpredictedRows& rows) { return what.starts_with(rows.begins); });
  return entry == list.end() ? std::nullopt : std::optional(entry->why);
}

void each_observation(const Table& table, std::string_view place, Tally& tally,
                      const std::function<void(Row& row, const Observed& observed)>& score) {
  const Column what = table.column("what");
  const Column where = table.column(place);
  const Column value = table.column("value");
  const Column unit = table.column("unit");
  const Column trust = table.column("trust");
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const double amount = row.amount(value);
    if (!tally.takes(row, true)) {
      continue;
    }
    if (row.text(trust) == "recalled") {
      tally.skip("written down from memory, so it is not scored");
    } else {
      score(row, {row.text(what), row.text(where), amount, row.text(unit)});
    }
  }
}

}  // namespace commfuse::score
