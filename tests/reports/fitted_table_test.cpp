// SPDX-License-Identifier: Apache-2.0
#include "reports/fitted_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace commfuse::reports {
namespace {

std::string written(const FittedTable& table, const TableNotes& notes = {}) {
  std::string text;
  table.write(notes, [&](const std::string& lines) { text += lines; });
  return text;
}

/// Returns a table for rows made by row().
FittedTable table_of(const std::vector<std::vector<Value>>& rows, std::size_t width) {
  FittedTable table({{.name = "model", .constant = Constant::stated, .expendable = 1},
                     {.name = "ranks", .constant = Constant::stated, .expendable = 1},
                     {.name = "link", .constant = Constant::stated, .usual = "x1", .expendable = 1},
                     {.name = "seed", .constant = Constant::hidden, .expendable = 1},
                     {.name = "strategy"},
                     {.name = "time_us"},
                     {.name = "mfu", .expendable = 2}},
                    width);
  for (const std::vector<Value>& row : rows) {
    table.add(row);
  }
  return table;
}

std::vector<Value> row(const char* model, std::int64_t ranks, const char* strategy, double time) {
  return {std::string(model), ranks, std::string("x1"), std::int64_t{7}, std::string(strategy), time, 0.5};
}

TEST(FittedTable, ConstantsAreStatedAboveUnlessUsual) {
  const FittedTable table = table_of({row("small", 2, "serial", 100), row("small", 4, "sliced", 62.5)}, 80);
  EXPECT_EQ(written(table),
            "model small\n\n"
            "ranks  strategy  time_us  mfu\n"
            "    2  serial        100  0.5\n"
            "    4  sliced       62.5  0.5\n");
}

TEST(FittedTable, ANoteCanFollowTheRows) {
  const TableNotes notes{.end = "Compared by time_us alone."};
  EXPECT_EQ(written(table_of({row("small", 2, "serial", 100), row("small", 4, "sliced", 62.5)}, 80), notes),
            "model small\n\n"
            "ranks  strategy  time_us  mfu\n"
            "    2  serial        100  0.5\n"
            "    4  sliced       62.5  0.5\n"
            "\n"
            "Compared by time_us alone.\n");
  EXPECT_EQ(written(table_of({}, 80), notes), written(table_of({}, 80)));
}

TEST(FittedTable, AConstantThatBecomesAColumnKeepsItsFirstRows) {
  std::vector<std::vector<Value>> rows(3, row("small", 2, "serial", 100));
  rows.push_back({std::string("large"), std::int64_t{2}, std::string("x0.5"), Value{}, Value{}, Value{}, 0.25});
  EXPECT_EQ(written(table_of(rows, 80)),
            "ranks 2\n\n"
            "model  link  seed  strategy  time_us   mfu\n"
            "small  x1       7  serial        100   0.5\n"
            "small  x1       7  serial        100   0.5\n"
            "small  x1       7  serial        100   0.5\n"
            "large  x0.5     -         -        -  0.25\n");
}

TEST(FittedTable, GapsShrinkBeforeAColumnIsOmitted) {
  const std::vector<std::vector<Value>> rows{row("small", 2, "serial", 100), row("large", 4, "sliced", 62.5)};
  EXPECT_EQ(written(table_of(rows, 36)),
            "model  ranks  strategy  time_us  mfu\n"
            "small      2  serial        100  0.5\n"
            "large      4  sliced       62.5  0.5\n");
  EXPECT_EQ(written(table_of(rows, 35)),
            "model ranks strategy time_us mfu\n"
            "small     2 serial       100 0.5\n"
            "large     4 sliced      62.5 0.5\n");
}

TEST(FittedTable, TheMostExpendableColumnIsOmittedFirstAndNamed) {
  const std::vector<std::vector<Value>> rows{row("small", 2, "serial", 100), row("large", 4, "sliced", 62.5)};
  EXPECT_EQ(written(table_of(rows, 31), {.above = "Two rows", .below = "; see --columns"}),
            "Two rows\n\n"
            "model  ranks  strategy  time_us\n"
            "small      2  serial        100\n"
            "large      4  sliced       62.5\n"
            "\nNot shown for lack of width:\n  mfu; see --columns\n");
  EXPECT_EQ(written(table_of(rows, 20)),
            "strategy  time_us\n"
            "serial        100\n"
            "sliced       62.5\n"
            "\nNot shown for lack\n  of width: mfu,\n  ranks, model\n");
  // Columns that are not expendable stay, however narrow the terminal is.
  EXPECT_NE(written(table_of(rows, 5)).find("strategy  time_us\n"), std::string::npos);
}

TEST(FittedTable, NoLineBreaksBetweenANameAndItsValue) {
  FittedTable table(
      {{.name = "model", .constant = Constant::stated}, {.name = "seq", .constant = Constant::stated}, {.name = "mfu"}},
      14);
  table.add(std::vector<Value>{std::string("small"), std::int64_t{8192}, 0.5});
  EXPECT_EQ(written(table), "model small,\nseq 8192\n\nmfu\n0.5\n");
}

TEST(FittedTable, NumbersAreRightAligned) {
  FittedTable table({{.name = "size", .at_right = true}, {.name = "kernel"}}, 80);
  table.add(std::vector<Value>{std::string("1 KiB"), std::string("ring")});
  table.add(std::vector<Value>{std::string("512 MiB"), std::string("")});
  EXPECT_EQ(written(table),
            "   size  kernel\n"
            "  1 KiB  ring\n"
            "512 MiB\n");
}

TEST(FittedTable, AMultibyteCharacterIsOneColumnWide) {
  FittedTable table({{.name = "model"}, {.name = "mfu"}}, 80);
  table.add(std::vector<Value>{std::string("\u00e9t\u00e9"), 0.5});
  table.add(std::vector<Value>{std::string("small"), 0.5});
  EXPECT_EQ(written(table),
            "model  mfu\n"
            "\u00e9t\u00e9    0.5\n"
            "small  0.5\n");
}

TEST(FittedTable, WithoutRowsPrintsOnlyColumnNames) {
  EXPECT_EQ(written(table_of({}, 80)), "strategy  time_us  mfu\n");
}

}  // namespace
}  // namespace commfuse::reports
