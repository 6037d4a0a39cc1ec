// SPDX-License-Identifier: Apache-2.0
#include "reports/pay_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "model/text/decimals.h"
#include "model/text/quantity.h"
#include "reports/point_rows.h"
#include "reports/savings.h"

namespace commfuse::reports {

namespace {

/// Formats "+21% " or "-12%~".
std::string cell_of(const ResultRow& row, const ResultRow& serial, const VerdictRule& rule) {
  const PayVerdict verdict = pay_verdict(row, serial, row, rule);
  return fmt::format("{}%{}", with_sign(100.0 * verdict.saved, 0), verdict.pays == Pays::close ? "~" : " ");
}

/// Finds the row of a strategy at a point of a map; null if there is none.
const ResultRow* find(const std::vector<const ResultRow*>& rows, std::string_view strategy, std::int64_t ranks,
                      std::int64_t seq) {
  const auto match = std::ranges::find_if(rows, [&](const ResultRow* row) {
    return row->strategy == strategy && (strategy == "serial") == row->implements.empty() && row->ranks == ranks &&
           row->seq == seq && row->feasible();
  });
  return match == rows.end() ? nullptr : *match;
}

std::string map_of(const std::string& name, const std::vector<const ResultRow*>& rows, const VerdictRule& rule) {
  std::set<std::int64_t> ranks;
  std::set<std::int64_t> seqs;
  for (const ResultRow* row : rows) {
    ranks.insert(row->ranks);
    seqs.insert(row->seq);
  }
  const bool is_unmeasured = std::ranges::any_of(
      rows, [&](const ResultRow* row) { return row->strategy == name && !row->unmeasured_on.empty(); });
  std::string text = is_unmeasured ? name + ", not measured on such GPUs\n" : std::string{};
  text += fmt::format("{:<24}", is_unmeasured ? "  ranks" : name + ", ranks");
  for (const std::int64_t seq : seqs) {
    text += fmt::format(" {:>6} ", format_count(seq));
  }
  text.erase(text.find_last_not_of(' ') + 1);
  text += "\n";
  for (const std::int64_t rank : ranks) {
    std::string line = fmt::format("{:>24}", rank);
    for (const std::int64_t seq : seqs) {
      const ResultRow* row = find(rows, name, rank, seq);
      const ResultRow* serial = find(rows, "serial", rank, seq);
      line += fmt::format(" {:>7}", row == nullptr || serial == nullptr ? "- " : cell_of(*row, *serial, rule));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
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
    if (names.empty()) {
      continue;
    }
    text += fmt::format(
        "{}{} {} on {}, batch {}, {}\ntime that overlap saves against serial; columns are sequence lengths\n",
        text.empty() ? "" : "\n", first.model, first.scope, machine_in_words(first), format_count(first.batch),
        first.dtype);
    for (const std::string& name : names) {
      text += "\n" + map_of(name, same_setting, rule);
    }
  }
  return text.empty() ? text
                      : text + fmt::format("\n~ is a tie; a win needs {:.3g}% and a probability of {:.3g}%.\n",
                                           100.0 * rule.difference, 100.0 * rule.probability);
}

}  // namespace commfuse::reports
