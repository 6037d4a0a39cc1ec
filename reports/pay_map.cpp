// SPDX-License-Identifier: Apache-2.0
#include "reports/pay_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/text/decimals.h"
#include "model/text/quantity.h"
#include "model/wrapped.h"
#include "reports/point_rows.h"
#include "reports/savings.h"

namespace commfuse::reports {

namespace {

constexpr std::size_t label_width = 24;
constexpr std::size_t cell_width = 8;

/// Returns how many sequence lengths fit side by side.
std::size_t max_columns() { return (terminal_width() - label_width) / cell_width; }

/// Formats the row's saving against serial as "+21% ", or as "-12%~" if the verdict is close.
std::string cell_of(const ResultRow& row, const ResultRow& serial, const VerdictRule& rule) {
  const PayVerdict verdict = pay_verdict(row, serial, row, rule);
  return fmt::format("{}%{}", with_sign(100.0 * verdict.saved, 0), verdict.pays == Pays::close ? "~" : " ");
}

/// Returns the row of a strategy with a result at a point of a map; null if there is none.
const ResultRow* find(const std::vector<const ResultRow*>& rows, std::string_view strategy, std::int64_t ranks,
                      std::int64_t seq) {
  const auto match = std::ranges::find_if(rows, [&](const ResultRow* row) {
    return row->strategy == strategy && (strategy == "serial") == row->implements.empty() && row->ranks == ranks &&
           row->seq == seq && row->feasible();
  });
  return match == rows.end() ? nullptr : *match;
}

std::string without_last_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

/// Returns what readers must know about the rows of an implementation; empty if nothing.
std::string remarks_on(const std::string& name, const std::vector<const ResultRow*>& rows) {
  const auto any_row = [&](bool (*has_property)(const ResultRow&)) {
    return std::ranges::any_of(rows, [&](const ResultRow* row) { return row->strategy == name && has_property(*row); });
  };
  return std::string{any_row(overlaps_nothing) ? ", which overlaps nothing" : ""} +
         (any_row([](const ResultRow& row) { return !row.unmeasured_on.empty(); }) ? ", not measured on such GPUs"
                                                                                   : "");
}

/// Returns the map of one implementation, in tables of as many sequence lengths as fit side by side.
std::string map_of(const std::string& name, const std::vector<const ResultRow*>& rows, const VerdictRule& rule) {
  std::set<std::int64_t> ranks;
  std::set<std::int64_t> seqs;
  for (const ResultRow* row : rows) {
    ranks.insert(row->ranks);
    seqs.insert(row->seq);
  }
  const std::vector<std::int64_t> columns(seqs.begin(), seqs.end());
  const std::string remarks = remarks_on(name, rows);
  const std::string title = name + ", ranks";
  const bool has_heading = !remarks.empty() || title.size() > label_width;
  std::string text = has_heading ? name + remarks + "\n" : std::string{};
  for (std::size_t first = 0; first < columns.size(); first += max_columns()) {
    const auto shown = std::span(columns).subspan(first, std::min(max_columns(), columns.size() - first));
    std::string line = fmt::format("{:<{}}", has_heading ? "  ranks" : title, label_width);
    for (const std::int64_t seq : shown) {
      line += fmt::format(" {:>6} ", format_count(seq));
    }
    text += (first == 0 ? "" : "\n") + without_last_spaces(std::move(line)) + "\n";
    for (const std::int64_t rank : ranks) {
      line = fmt::format("{:>{}}", rank, label_width);
      for (const std::int64_t seq : shown) {
        const ResultRow* row = find(rows, name, rank, seq);
        const ResultRow* serial = find(rows, "serial", rank, seq);
        line += fmt::format(" {:>7}", row == nullptr || serial == nullptr ? "- " : cell_of(*row, *serial, rule));
      }
      text += without_last_spaces(std::move(line)) + "\n";
    }
  }
  return text;
}

}  // namespace

std::string pay_maps(std::span<const ResultRow> rows, const VerdictRule& rule) {
  std::string text;
  std::vector<const ResultRow*> remaining;
  for (const ResultRow& row : rows) {
    remaining.push_back(&row);
  }
  while (!remaining.empty()) {
    const ResultRow& first = *remaining.front();
    std::vector<const ResultRow*> same_setting;
    std::vector<const ResultRow*> other_settings;
    std::vector<std::string> names;
    for (const ResultRow* row : remaining) {
      (same_but_for_axes(*row, first) ? same_setting : other_settings).push_back(row);
      if (same_but_for_axes(*row, first) && !row->implements.empty() &&
          std::ranges::find(names, row->strategy) == names.end()) {
        names.push_back(row->strategy);
      }
    }
    remaining = std::move(other_settings);
    const bool has_serial =
        std::ranges::any_of(same_setting, [](const ResultRow* row) { return row->strategy == "serial"; });
    if (names.empty() || !has_serial) {
      continue;
    }
    text += (text.empty() ? "" : "\n") + wrapped(setting_heading(first), "", "  ") +
            "time that overlap saves against serial; columns are sequence lengths\n";
    for (const std::string& name : names) {
      text += "\n" + map_of(name, same_setting, rule);
    }
  }
  return text.empty() ? text
                      : text + fmt::format("\n~ is a tie; a win needs {:.3g}% and a probability of {:.3g}%.\n",
                                           100.0 * rule.difference, 100.0 * rule.probability);
}

}  // namespace commfuse::reports
