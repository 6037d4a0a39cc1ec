// SPDX-License-Identifier: Apache-2.0
#include "reports/html/rows_block.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/text/quantity.h"
#include "reports/figure/spread.h"
#include "reports/figure/wording.h"

namespace commfuse::reports {

namespace {

using Json = nlohmann::ordered_json;

struct WordsOfPage {
  std::string_view name;
  std::string_view title;
  std::string (*text)(const ResultRow&);
  /// Columns that determine the text.
  RowTable::Columns (*columns)(const RowColumns&);
  bool always = false;  // kept even if all rows agree
};

template <auto member>
RowTable::Columns only(const RowColumns& columns) {
  if constexpr (std::is_same_v<decltype(member), WordColumn RowColumns::*>) {
    return {&(columns.*member).numbers()};
  } else {
    return {&(columns.*member)};
  }
}

/// Returns the index of a setting in repeated_settings; repeated_settings.size() if the setting is absent.
constexpr std::size_t index_among_repeated(std::string_view name) {
  std::size_t index = 0;
  while (index < repeated_settings.size() && repeated_settings[index].name != name) {
    ++index;
  }
  return index;
}

template <std::size_t index>
RowTable::Columns only_repeated(const RowColumns& columns) {
  static_assert(index < repeated_settings.size(), "rows repeat this setting");
  return {&columns.repeated[index].numbers()};
}

RowTable::Columns machine_columns(const RowColumns& columns) {
  return {&columns.hardware.numbers(), &columns.link_bandwidth.numbers(), &columns.network_bandwidth.numbers()};
}

RowTable::Columns label_columns(const RowColumns& columns) {
  return {&columns.strategy.numbers(), &columns.parameters.numbers()};
}

constexpr std::array words_of_page{
    WordsOfPage{"model", "Model", [](const ResultRow& row) { return row.model; }, only<&RowColumns::model>},
    WordsOfPage{"hardware", "Hardware", [](const ResultRow& row) { return machine_in_words(row); }, machine_columns},
    WordsOfPage{"scope", "Scope", [](const ResultRow& row) { return row.scope; }, only<&RowColumns::scope>},
    WordsOfPage{"dtype", "Dtype", [](const ResultRow& row) { return row.dtype; }, only<&RowColumns::dtype>},
    WordsOfPage{"jitter", "Jitter", [](const ResultRow& row) { return row.jitter; },
                only_repeated<index_among_repeated("jitter")>},
    WordsOfPage{"faults", "Faults", [](const ResultRow& row) { return row.faults; },
                only_repeated<index_among_repeated("faults")>},
    WordsOfPage{"batch", "Batch", [](const ResultRow& row) { return format_count(row.batch); },
                only<&RowColumns::batch>},
    WordsOfPage{"ranks", "Ranks", [](const ResultRow& row) { return format_count(row.ranks); },
                only<&RowColumns::ranks>, true},
    WordsOfPage{"seq", "Sequence", [](const ResultRow& row) { return format_count(row.seq); }, only<&RowColumns::seq>,
                true},
    WordsOfPage{"strategy", "Strategy", label_of, label_columns, true},
    WordsOfPage{"reason", "Reason for no result", [](const ResultRow& row) { return row.reason; },
                only<&RowColumns::reason>},
};

struct NumbersOfPage {
  std::string_view name;
  std::string_view title;
  std::string_view unit;
  std::string_view kind;  // "time": picoseconds; "share"
  double (*value)(const RowTable&, std::size_t row);
};

constexpr double absent = std::numeric_limits<double>::quiet_NaN();
constexpr std::string_view microseconds = "\u00b5s";

template <NarrowColumn RowColumns::*column>
std::int64_t value_at(const RowTable& rows, std::size_t row) {
  return (rows.columns().*column)[rows.place_of(row)];
}

bool has_time(const RowTable& rows, std::size_t row) { return value_at<&RowColumns::makespan>(rows, row) > 0; }

template <auto member>
std::int64_t outcome_at(const RowTable& rows, std::size_t row) {
  return rows.columns().outcome[outcome_place(member)][rows.place_of(row)];
}

/// Returns a column of picoseconds.
template <NarrowColumn RowColumns::*column>
double time_of(const RowTable& rows, std::size_t row) {
  return has_time(rows, row) ? static_cast<double>(value_at<column>(rows, row)) : absent;
}

template <Estimate Percentiles::*which>
double percentile_of(const RowTable& rows, std::size_t row) {
  const Tails* tails = rows.tails(row);
  return tails == nullptr ? absent : static_cast<double>((tails->percentiles.*which).value.count());
}

double error_of(const RowTable& rows, std::size_t row) {
  return number_of_bits(value_at<&RowColumns::makespan_error>(rows, row));
}

double ideal_of(const RowTable& rows, std::size_t row) {
  return has_time(rows, row) ? static_cast<double>(outcome_at<&Outcome::ideal>(rows, row)) : absent;
}

double mfu_of(const RowTable& rows, std::size_t row) {
  return has_time(rows, row) ? number_of_bits(outcome_at<&Outcome::mfu>(rows, row)) : absent;
}

constexpr std::array numbers_of_page{
    NumbersOfPage{"makespan_us", "Time", microseconds, "time", time_of<&RowColumns::makespan>},
    NumbersOfPage{"makespan_error", "Error", "%", "share", error_of},
    NumbersOfPage{"mfu", "MFU", "%", "share", mfu_of},
    NumbersOfPage{"compute_us", "Compute", microseconds, "time", time_of<&RowColumns::compute>},
    NumbersOfPage{"slicing_us", "Slicing", microseconds, "time", time_of<&RowColumns::slicing>},
    NumbersOfPage{"stretch_us", "Stretch", microseconds, "time", time_of<&RowColumns::stretch>},
    NumbersOfPage{"local_us", "Local", microseconds, "time", time_of<&RowColumns::local>},
    NumbersOfPage{"exposed_us", "Exposed", microseconds, "time", time_of<&RowColumns::exposed>},
    NumbersOfPage{"head_us", "Head", microseconds, "time", time_of<&RowColumns::head>},
    NumbersOfPage{"bubble_us", "Bubble", microseconds, "time", time_of<&RowColumns::bubble>},
    NumbersOfPage{"tail_us", "Tail", microseconds, "time", time_of<&RowColumns::tail>},
    NumbersOfPage{"ideal_us", "Bound", microseconds, "time", ideal_of},
    NumbersOfPage{"p50_us", "p50", microseconds, "time", percentile_of<&Percentiles::p50>},
    NumbersOfPage{"p99_us", "p99", microseconds, "time", percentile_of<&Percentiles::p99>},
    NumbersOfPage{"p99_9_us", "p99.9", microseconds, "time", percentile_of<&Percentiles::p99_9>},
};

void add_words(const WordsOfPage& column, const RowTable& rows, const std::vector<std::size_t>& rows_kept,
               ColumnBlock& block, Json& columns) {
  const RowTable::Groups groups = rows.groups(column.columns(rows.columns()));
  std::unordered_map<std::string, std::uint32_t> known;
  std::unordered_map<std::uint32_t, std::uint32_t> code_of_group;
  NarrowColumn codes;
  Json words = Json::array();
  for (const std::size_t row : rows_kept) {
    const auto [code, is_new_group] = code_of_group.try_emplace(groups[row]);
    if (is_new_group) {
      const std::string text = column.text(rows[row]);
      const auto [entry, is_new] = known.try_emplace(text, static_cast<std::uint32_t>(words.size()));
      if (is_new) {
        words.push_back(text);
      }
      code->second = entry->second;
    }
    codes.push_back(code->second);
  }
  if (column.always || words.size() > 1) {
    block.add_u32(column.name, rows_kept.size(),
                  [codes = std::move(codes)](std::size_t row) { return static_cast<std::uint32_t>(codes[row]); });
    columns.push_back({{"name", column.name}, {"title", column.title}, {"words", std::move(words)}});
  }
}

/// Omits a column if no row has a number.
void add_numbers(const NumbersOfPage& column, const std::vector<std::size_t>& rows_kept,
                 const std::function<double(std::size_t)>& value, ColumnBlock& block, Json& columns) {
  if (std::ranges::all_of(rows_kept, [&](std::size_t row) { return std::isnan(value(row)); })) {
    return;
  }
  block.add_f64(column.name, rows_kept.size(),
                [&rows_kept, value](std::size_t index) { return value(rows_kept[index]); });
  columns.push_back({{"name", column.name}, {"title", column.title}, {"unit", column.unit}, {"kind", column.kind}});
}

}  // namespace

PageRows page_rows(const RowTable& rows) {
  PageRows page;
  if (rows.size() <= max_page_rows) {
    page.rows.resize(rows.size());
    std::iota(page.rows.begin(), page.rows.end(), std::size_t{0});
    return page;
  }
  const RowTable::Groups points = rows.runs(rows.point_columns());
  page.all_points = points.size() - 1;
  // At least the first and the last point remain; a point with more rows than a page holds is cut.
  const std::size_t max_points = std::max<std::size_t>(2, max_page_rows * page.all_points / rows.size());
  for (const std::size_t point : spread({.count = page.all_points, .kept = max_points})) {
    for (std::size_t row = points[point]; row < points[point + 1] && page.rows.size() < max_page_rows; ++row) {
      page.rows.push_back(row);
    }
  }
  page.points = std::min(max_points, page.all_points);
  return page;
}

void write_rows_block(const RowTable& rows, const PageRows& page, const Overview& overview, const TakeBytes& take) {
  ColumnBlock block;
  Json columns = Json::array();
  for (const WordsOfPage& column : words_of_page) {
    add_words(column, rows, page.rows, block, columns);
  }
  for (const NumbersOfPage& column : numbers_of_page) {
    add_numbers(
        column, page.rows, [&rows, value = column.value](std::size_t row) { return value(rows, row); }, block, columns);
    if (column.name == "makespan_error") {
      add_numbers(
          {"against_serial", "vs serial", "%", "share"}, page.rows,
          [&overview](std::size_t row) { return number_of_bits(overview.against_serial[row]); }, block, columns);
    }
  }
  std::vector<std::uint8_t> front;
  for (const std::size_t row : page.rows) {
    front.push_back(overview.front[row]);
  }
  block.add("front", std::move(front));
  const Json head{{"rows", page.rows.size()}, {"columns", std::move(columns)}};
  block.write(head.dump(-1, ' ', false, Json::error_handler_t::replace), take);
}

}  // namespace commfuse::reports
