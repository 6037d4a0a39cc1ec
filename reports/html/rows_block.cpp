// SPDX-License-Identifier: Apache-2.0
#include "reports/html/rows_block.h"

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/text/quantity.h"
#include "reports/figure/wording.h"
#include "reports/html/blocks.h"
#include "reports/html/points.h"
#include "reports/point_rows.h"

namespace commfuse::reports {

namespace {

using Json = nlohmann::ordered_json;

struct WordColumn {
  std::string_view name;
  std::string_view title;
  std::string (*text)(const ResultRow&);
  bool always = false;  // also where all rows agree
};
constexpr std::array word_columns{
    WordColumn{"model", "Model", [](const ResultRow& row) { return row.model; }},
    WordColumn{"hardware", "Hardware", [](const ResultRow& row) { return machine_in_words(row); }},
    WordColumn{"scope", "Scope", [](const ResultRow& row) { return row.scope; }},
    WordColumn{"dtype", "Dtype", [](const ResultRow& row) { return row.dtype; }},
    WordColumn{"jitter", "Jitter", [](const ResultRow& row) { return row.jitter; }},
    WordColumn{"faults", "Faults", [](const ResultRow& row) { return row.faults; }},
    WordColumn{"batch", "Batch", [](const ResultRow& row) { return format_count(row.batch); }},
    WordColumn{"ranks", "Ranks", [](const ResultRow& row) { return format_count(row.ranks); }, true},
    WordColumn{"seq", "Sequence", [](const ResultRow& row) { return format_count(row.seq); }, true},
    WordColumn{"strategy", "Strategy", label_of, true},
    WordColumn{"reason", "Why there is no result", [](const ResultRow& row) { return row.reason; }},
};

struct NumberColumn {
  std::string_view name;
  std::string_view title;
  std::string_view unit;
  std::string_view kind;  // "time": picoseconds; "share"
  double (*value)(const ResultRow&);
};

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view microseconds = "\u00b5s";

template <Duration Breakdown::*Part>
double part(const ResultRow& row) {
  return has_result(row) ? static_cast<double>((row.analysis.critical.*Part).count()) : nothing;
}

template <Estimate Percentiles::*Which>
double percentile_of(const ResultRow& row) {
  return row.tails ? static_cast<double>((row.tails->percentiles.*Which).value.count()) : nothing;
}

constexpr std::array number_columns{
    NumberColumn{"makespan_us", "Time", microseconds, "time", part<&Breakdown::makespan>},
    NumberColumn{"makespan_error", "Error", "%", "share",
                 [](const ResultRow& row) { return row.makespan_error.value_or(nothing); }},
    NumberColumn{"mfu", "MFU", "%", "share", [](const ResultRow& row) { return has_result(row) ? row.mfu : nothing; }},
    NumberColumn{"compute_us", "Compute", microseconds, "time", part<&Breakdown::compute>},
    NumberColumn{"slicing_us", "Slicing", microseconds, "time", part<&Breakdown::slicing>},
    NumberColumn{"stretch_us", "Stretch", microseconds, "time", part<&Breakdown::stretch>},
    NumberColumn{"local_us", "Local", microseconds, "time", part<&Breakdown::local>},
    NumberColumn{"exposed_us", "Exposed", microseconds, "time", part<&Breakdown::exposed>},
    NumberColumn{"head_us", "Head", microseconds, "time", part<&Breakdown::head>},
    NumberColumn{"bubble_us", "Bubble", microseconds, "time", part<&Breakdown::bubble>},
    NumberColumn{"tail_us", "Tail", microseconds, "time", part<&Breakdown::tail>},
    NumberColumn{
        "ideal_us", "Bound", microseconds, "time",
        [](const ResultRow& row) { return has_result(row) ? static_cast<double>(row.ideal.count()) : nothing; }},
    NumberColumn{"p50_us", "p50", microseconds, "time", percentile_of<&Percentiles::p50>},
    NumberColumn{"p99_us", "p99", microseconds, "time", percentile_of<&Percentiles::p99>},
    NumberColumn{"p99_9_us", "p99.9", microseconds, "time", percentile_of<&Percentiles::p99_9>},
};

void add_words(const WordColumn& column, std::span<const ResultRow> rows, ColumnBlock& block, Json& all) {
  std::unordered_map<std::string, std::uint32_t> known;
  std::vector<std::uint32_t> codes;
  Json words = Json::array();
  codes.reserve(rows.size());
  for (const ResultRow& row : rows) {
    std::string text = column.text(row);
    const auto [place, is_new] = known.try_emplace(text, static_cast<std::uint32_t>(words.size()));
    if (is_new) {
      words.push_back(std::move(text));
    }
    codes.push_back(place->second);
  }
  if (column.always || words.size() > 1) {
    block.add(column.name, codes);
    all.push_back({{"name", column.name}, {"title", column.title}, {"words", std::move(words)}});
  }
}

void add_numbers(const NumberColumn& column, std::span<const ResultRow> rows, ColumnBlock& block, Json& all) {
  std::vector<double> values;
  values.reserve(rows.size());
  bool any = false;
  for (const ResultRow& row : rows) {
    values.push_back(column.value(row));
    any = any || !std::isnan(values.back());
  }
  if (any) {
    block.add(column.name, values);
    all.push_back({{"name", column.name}, {"title", column.title}, {"unit", column.unit}, {"kind", column.kind}});
  }
}

/// Time against serial's, which takes the other rows of the point.
void add_against_serial(std::span<const ResultRow> rows, ColumnBlock& block, Json& all) {
  std::vector<double> values;
  values.reserve(rows.size());
  bool any = false;
  for (const Rows point : rows_by_point(rows)) {
    const ResultRow* serial = serial_of(point);
    for (const ResultRow& row : point) {
      values.push_back(has_result(row) ? against_serial(row, serial).value_or(nothing) : nothing);
      any = any || !std::isnan(values.back());
    }
  }
  if (any) {
    block.add("against_serial", values);
    all.push_back({{"name", "against_serial"}, {"title", "vs serial"}, {"unit", "%"}, {"kind", "share"}});
  }
}

std::vector<std::uint8_t> fronts_of(std::span<const ResultRow> rows, const VerdictRule& rule) {
  std::vector<std::uint8_t> fronts;
  fronts.reserve(rows.size());
  for (const PointView& point : points_of(rows, rule)) {
    for (const ResultRow& row : point.rows) {
      fronts.push_back(point.front.size() == 1 && point.in_front(row) ? 1 : 0);
    }
  }
  return fronts;
}

}  // namespace

std::string rows_block(std::span<const ResultRow> rows, const VerdictRule& rule) {
  ColumnBlock block;
  Json columns = Json::array();
  for (const WordColumn& column : word_columns) {
    add_words(column, rows, block, columns);
  }
  for (const NumberColumn& column : number_columns) {
    add_numbers(column, rows, block, columns);
    if (column.name == "makespan_error") {
      add_against_serial(rows, block, columns);
    }
  }
  block.add("front", fronts_of(rows, rule));
  const Json head{{"rows", rows.size()}, {"columns", std::move(columns)}};
  return block.bytes(head.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace commfuse::reports
