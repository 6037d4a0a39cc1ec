// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/render.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "model/config/option_marks.h"
#include "model/text/counted.h"
#include "model/text/quantity.h"
#include "model/wrapped.h"
#include "reports/comparison.h"
#include "reports/crossover.h"
#include "reports/pay_map.h"
#include "reports/point_rows.h"
#include "reports/rows.h"
#include "reports/tails.h"
#include "sim/commands/setting_flags.h"

namespace commfuse::sim {

namespace {

using Rows = std::vector<ResultRow>;

/// Returns lines about unusual settings of a row, which the heading of its table does not state.
std::string heading_of(const ResultRow& row) {
  std::string text;
  for (const std::string& words : reports::unusual(row)) {
    text += words + "\n";
  }
  return text;
}

/// Returns the tables. Points share a table if they differ only in settings that axes vary.
std::string tables(const Rows& rows, const VerdictRule& rule, const reports::ModelWords& words) {
  std::string text;
  for (std::size_t first = 0, i = 1; i <= rows.size(); ++i) {
    if (i == rows.size() || !same_but_for_axes(rows[i], rows[first])) {
      text += (text.empty() ? "" : "\n") + heading_of(rows[first]) +
              reports::comparison_table(std::span(rows).subspan(first, i - first), rule, words);
      first = i;
    }
  }
  return text;
}

std::string infeasible(std::span<const ResultRow> rows) {
  std::vector<std::string> reasons;
  for (const ResultRow& row : rows) {
    if (!row.feasible()) {
      reasons.push_back(row.reason);
    }
  }
  return infeasible_in_words(reasons);
}

/// Returns the line about memory. It is the first line, because a point that does not fit in memory cannot run.
std::string memory_line(std::span<const ResultRow> rows) {
  const std::string sentence = reports::memory_sentence(rows);
  return sentence.empty() ? sentence : wrapped(sentence, "", "  ");
}

std::string table(std::span<const ResultRow> rows_of_run, const VerdictRule& rule, const reports::ModelWords& words) {
  Rows rows;
  std::copy_if(rows_of_run.begin(), rows_of_run.end(), std::back_inserter(rows),
               [](const ResultRow& row) { return row.feasible(); });
  rows = reports::ordered_by_point(std::move(rows));
  std::string text;
  for (const std::string& part :
       {memory_line(rows), tables(rows, rule, words), reports::tails_table(rows), reports::summary(rows, rule),
        reports::scaling_text(reports::scalings_of(rows)), infeasible(rows_of_run)}) {
    text += (text.empty() || part.empty() ? "" : "\n") + part;
  }
  return text;
}

std::string map(std::span<const ResultRow> rows, const VerdictRule& rule, const reports::ModelWords& /*words*/) {
  std::string text = memory_line(rows);
  if (const std::string maps = reports::pay_maps(rows, rule); !maps.empty()) {
    const std::string reasons = infeasible(rows);
    return text + (text.empty() ? "" : "\n") + maps + (reasons.empty() ? "" : "\n") + reasons;
  }
  text += (text.empty() ? "" : "\n") + reports::map_text(reports::maps_of(rows, rule), rule);
  for (const std::string& part : {reports::scaling_text(reports::scalings_of(rows)), infeasible(rows)}) {
    text += (part.empty() ? "" : "\n") + part;
  }
  return text;
}

/// Returns the name of a point among others: "llama-3.1-70b mlp on h100-sxm, ranks 8, batch 1, seq 4K, bf16".
std::string name_of_point(const ResultRow& row) {
  std::string name =
      fmt::format("{} {} on {}, ranks {}, batch {}, seq {}, {}", row.model, row.scope, machine_in_words(row), row.ranks,
                  format_count(row.batch), format_count(row.seq), row.dtype);
  for (const std::string& words : reports::unusual(row)) {
    name += ", " + words;
  }
  return name;
}

/// Returns a paragraph for each point, with the name of the point if there are several.
std::string verdicts(std::span<const ResultRow> rows_of_run, const VerdictRule& rule,
                     const reports::ModelWords& /*words*/) {
  Rows rows;
  std::copy_if(rows_of_run.begin(), rows_of_run.end(), std::back_inserter(rows),
               [](const ResultRow& row) { return row.feasible(); });
  rows = reports::ordered_by_point(std::move(rows));
  const std::vector<std::span<const ResultRow>> points = reports::rows_by_point(rows);
  std::string text = memory_line(rows);
  for (const std::span<const ResultRow> point : points) {
    const std::string heading = points.size() == 1 ? std::string{} : name_of_point(point.front()) + ": ";
    text += wrapped(heading + reports::verdict(point, rule), "", "  ");
  }
  return text + infeasible(rows_of_run);
}

std::string json(std::span<const ResultRow> rows, const VerdictRule& rule, const reports::ModelWords& /*words*/) {
  return reports::to_json(rows, reports::verdict_words(rows, rule));
}
std::string json_lines(std::span<const ResultRow> rows, const VerdictRule& rule, const reports::ModelWords& /*words*/) {
  return reports::to_json_lines(rows, reports::verdict_words(rows, rule));
}
/// Returns the rows with the columns of the store, which have the numbers behind a verdict.
std::string csv(std::span<const ResultRow> rows, const VerdictRule& /*rule*/, const reports::ModelWords& /*words*/) {
  return reports::to_csv(rows);
}

constexpr std::array<std::pair<std::string_view, Render>, 6> layer_formats{
    {{"table", table}, {"json", json}, {"jsonl", json_lines}, {"csv", csv}, {"map", map}, {"verdict", verdicts}}};

}  // namespace

std::string infeasible_in_words(std::span<const std::string> reasons) {
  std::vector<std::pair<std::string, int>> counts;
  for (const std::string& reason : reasons) {
    const auto known = std::ranges::find(counts, reason, &std::pair<std::string, int>::first);
    known == counts.end() ? void(counts.emplace_back(reason, 1)) : void(++known->second);
  }
  std::string text = reasons.empty() ? "" : fmt::format("{} could not be run:\n", counted(reasons.size(), "row"));
  for (const auto& [reason, times] : counts) {
    text += wrapped(fmt::format("{}x {}", times, reason), "  ", "     ");
  }
  return text;
}

bool is_for_programs(std::string_view format) { return format == "csv" || format == "json" || format == "jsonl"; }

void add_output_flag(CLI::App& command, std::string& format) {
  usual(offers_words(command
                         .add_option("-o,--output", format,
                                     "table, json, jsonl, csv; map: winner at each point; verdict: summary only")
                         ->group("Grid and output")
                         ->type_name("FORMAT")
                         ->capture_default_str()
                         ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast),
                     {"table", "json", "jsonl", "csv", "map", "verdict"}));
}

Render renderer(std::string_view format) {
  std::array<std::string_view, layer_formats.size()> names{};
  std::transform(layer_formats.begin(), layer_formats.end(), names.begin(),
                 [](const auto& entry) { return entry.first; });
  require_word("--output", format, names, "format");
  return std::find_if(layer_formats.begin(), layer_formats.end(),
                      [&](const auto& entry) { return entry.first == format; })
      ->second;
}

}  // namespace commfuse::sim
