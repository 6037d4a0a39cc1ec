// SPDX-License-Identifier: Apache-2.0
#include "model/record/row_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace commfuse {
namespace {

using namespace std::chrono_literals;

TEST(NarrowColumn, ReturnsItsValuesAcrossBlocks) {
  const std::vector<std::int64_t> corners{
      0, -1, 255, 256, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  NarrowColumn column;
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < 5000; ++i) {
    // The first block has equal values, the second small differences, the third the times of layers, and the rest all
    // magnitudes.
    values.push_back(i < 1024   ? 7
                     : i < 2048 ? 1'000'000 + i
                     : i < 3072 ? 100'000'000'000 + i * i * i * i % 99'999'999'999
                                : corners[static_cast<std::size_t>(i) % corners.size()]);
    column.push_back(values.back());
  }
  ASSERT_EQ(column.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(column[i], values[i]) << i;
  }
  EXPECT_FALSE(column.is_constant());
}

TEST(NarrowColumn, IsConstantWhileItsValuesAreEqual) {
  NarrowColumn column;
  EXPECT_TRUE(column.is_constant());
  for (int i = 0; i < 3000; ++i) {
    column.push_back(-5);
  }
  EXPECT_TRUE(column.is_constant());
  column.push_back(-4);
  EXPECT_FALSE(column.is_constant());
}

TEST(WordColumn, NumbersWordsInOrderOfFirstUse) {
  WordColumn column;
  for (const char* word : {"b", "a", "b", "b", "", "a"}) {
    column.push_back(word);
  }
  EXPECT_EQ(column[4], "");
  EXPECT_EQ(column[5], "a");
  EXPECT_EQ(column.numbers()[3], 0);
  EXPECT_EQ(column.numbers()[5], 1);
}

/// Returns a row with a different value in every member.
ResultRow full_row() {
  ResultRow row;
  std::int64_t next = 1;
  for (std::string ResultRow::*member : std::initializer_list<std::string ResultRow::*>{
           &ResultRow::model, &ResultRow::hardware, &ResultRow::link_bandwidth, &ResultRow::network_bandwidth,
           &ResultRow::all_reduce_kernel, &ResultRow::scope, &ResultRow::dtype, &ResultRow::strategy,
           &ResultRow::implements, &ResultRow::held_back, &ResultRow::unmeasured_on, &ResultRow::parameters,
           &ResultRow::schedule_sha256, &ResultRow::warnings, &ResultRow::evaluator, &ResultRow::provenances}) {
    row.*member = "word " + std::to_string(next++);
  }
  for (const RepeatedSetting& setting : repeated_settings) {
    row.*setting.member = "word " + std::to_string(next++);
  }
  for (const PriceSetting& setting : price_settings) {
    row.*setting.member = "word " + std::to_string(next++);
  }
  row.link_rate = 450e9;
  row.network_rate = 50e9;
  row.ranks = 8;
  row.batch = 3;
  row.seq = 4096;
  row.seed = ~std::uint64_t{0};
  row.bound = true;
  row.options = {.slices = 8, .form = Form::direct, .dtype = DType::fp8};
  row.relevant = {Option::slices, Option::form};
  row.buffers = Bytes{12345};
  row.makespan_error = 0.031;
  row.win_probability = 0.75;
  row.beats_serial = 0.85;
  row.saving_error = 0.07;
  row.ideal = 11ns;
  row.link = 12ns;
  row.mfu = 0.512345;
  row.analysis = {.critical_rank = 3,
                  .critical = {21ns, 22ns, 23ns, -24ns, 25ns, 26ns, 27ns, 28ns, 29ns, 30ns},
                  .mean_exposed = 31ns,
                  .max_exposed = 32ns};
  row.tails.emplace();
  row.tails->percentiles.samples = 100;
  for (const auto member :
       {&Percentiles::mean, &Percentiles::p50, &Percentiles::p95, &Percentiles::p99, &Percentiles::p99_9}) {
    row.tails->percentiles.*member = {Duration{41'000 + next}, TimeRange{Duration{40'000}, Duration{42'000 + next}}};
    ++next;
  }
  row.tails->causes = {.samples = 2, .rank_on_path = {1.0, 0.5}, .rank_time_on_path = {5ns, 6ns}};
  return row;
}

void expect_same_row(const ResultRow& a, const ResultRow& b) {
  EXPECT_EQ(values_of(a), values_of(b));
  EXPECT_EQ(a.parameters, b.parameters);
  EXPECT_EQ(a.bound, b.bound);
  EXPECT_EQ(a.options, b.options);
  EXPECT_EQ(a.relevant, b.relevant);
  EXPECT_EQ(a.ideal, b.ideal);
  EXPECT_EQ(a.analysis.critical.busy, b.analysis.critical.busy);
  EXPECT_EQ(a.tails.has_value(), b.tails.has_value());
}

/// If you add a column of results, add its member to the table and to the row above.
TEST(RowTable, IsTestedWithAValueInEveryColumn) {
  const ResultRow row = full_row();
  for (const ResultColumn& column : result_columns()) {
    if (column.put != nullptr && column.name != "reason" && !option_named(column.name)) {
      EXPECT_NE(column.value(row), column.value(ResultRow{})) << column.name;
    }
  }
}

TEST(RowTable, ReturnsEveryMemberOfARow) {
  ResultRow infeasible;
  infeasible.model = "m";
  infeasible.reason = "the ranks do not divide it";
  const std::vector<ResultRow> rows{full_row(), infeasible, full_row()};
  const RowTable table(rows);
  ASSERT_EQ(table.size(), 3U);
  ResultRow reused = full_row();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    expect_same_row(table[i], rows[i]);
    table.read(i, reused);  // Overwrites the values of the previous row.
    expect_same_row(reused, rows[i]);
  }
  EXPECT_EQ(table[0].tails->causes.worst_rank(), 1);
  EXPECT_EQ(table.rows(1, 2).size(), 2U);
  expect_same_row(table.rows(1, 2)[1], rows[2]);
}

TEST(RowTable, JoinedTablesEqualOneTable) {
  // Blocks have 1024 values: the first table ends within a block, at its end, or is empty.
  for (const std::size_t first : {0, 1, 1000, 1024, 2048, 2500}) {
    std::vector<ResultRow> rows;
    for (std::size_t i = 0; i < 2500; ++i) {
      rows.push_back(full_row());
      rows.back().seq = static_cast<std::int64_t>(i / 2);
      rows.back().strategy = i % 3 == 0 ? "serial" : "commfuse";
      rows.back().warnings = "warning " + std::to_string((i / 600) % 3);
      rows.back().options.slices = static_cast<int>(i % 5);
      if (i % 7 == 0) {
        rows.back().tails.reset();
      }
    }
    const RowTable whole(rows);
    RowTable joined{std::span<const ResultRow>(rows).first(first)};
    RowTable other{std::span<const ResultRow>(rows).subspan(first)};
    joined.append(std::move(other));
    ASSERT_EQ(joined.size(), whole.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      expect_same_row(joined[i], rows[i]);
      EXPECT_EQ(joined.columns().warnings.numbers()[i], whole.columns().warnings.numbers()[i]);
      EXPECT_EQ(joined.columns().options[i], whole.columns().options[i]);
    }
    EXPECT_EQ(joined.runs(joined.point_columns()), whole.runs(whole.point_columns()));
    joined.push_back(full_row());
    expect_same_row(joined[rows.size()], full_row());
  }
}

TEST(RowTable, DistinguishesTheSamePointsAsTheColumnsOfResults) {
  const RowTable table(std::vector{full_row()});
  // The nine columns are model, hardware, both bandwidths, all_reduce_kernel, scope, dtype, faults and batch. The
  // settings that change prices follow, and then two axes.
  EXPECT_EQ(table.setting_columns().size(), 9U + price_settings.size());
  EXPECT_EQ(table.point_columns().size(), 11U + price_settings.size());
}

ResultRow row_at(std::int64_t seq, const char* strategy) {
  ResultRow row;
  row.model = "m";
  row.seq = seq;
  row.strategy = strategy;
  return row;
}

TEST(RowTable, PutsRowsOfAPointTogether) {
  RowTable table(std::vector{row_at(4, "serial"), row_at(2, "serial"), row_at(4, "commfuse"), row_at(8, "commfuse"),
                             row_at(2, "commfuse")});
  EXPECT_EQ(table.groups({&table.columns().seq}), (RowTable::Groups{0, 1, 0, 2, 1}));
  EXPECT_EQ(table.groups({&table.columns().seq, &table.columns().strategy.numbers()}),
            (RowTable::Groups{0, 1, 2, 3, 4}));
  table.order_by_point();
  EXPECT_EQ(table.runs(table.point_columns()), (RowTable::Groups{0, 2, 4, 5}));
  EXPECT_EQ(table.runs(table.setting_columns()), (RowTable::Groups{0, 5}));
  EXPECT_EQ(table[0].strategy + table[1].strategy, "serialcommfuse");
  EXPECT_EQ(table[1].seq, 4);
  EXPECT_EQ(table[2].seq, 2);
  EXPECT_EQ(table[4].seq, 8);
}

TEST(RowTable, SettingsOfAnInnerAxisAreBroughtTogetherInTheirOrder) {
  RowTable table;
  for (const std::int64_t seq : {2, 4}) {
    for (const char* model : {"a", "b"}) {
      ResultRow row = full_row();
      row.model = model;
      row.seq = seq;
      table.push_back(row);
    }
  }
  EXPECT_EQ(table.runs(table.setting_columns()).size(), 5U);
  table.order_by_point();
  table.order_by_setting();
  EXPECT_EQ(table.runs(table.setting_columns()), (RowTable::Groups{0, 2, 4}));
  EXPECT_EQ(table[0].model + table[1].model + table[2].model, "aab");
  EXPECT_EQ(table[1].seq, 4);
  EXPECT_EQ(table.place_of(1), 2U);
}

TEST(RowTable, IsEmptyWithoutRows) {
  RowTable table;
  table.order_by_point();
  table.order_by_setting();
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.runs(table.point_columns()), RowTable::Groups{0});
}

}  // namespace
}  // namespace commfuse
