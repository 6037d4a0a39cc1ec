// SPDX-License-Identifier: Apache-2.0
#include "sim/score/table.h"

#include <gtest/gtest.h>

#include <string>

#include "model/config_error.h"
#include "sim/score/row.h"

namespace commfuse::score {
namespace {

TEST(ScoreTable, ReadsCommentsHeaderAndRowsWithTheirLines) {
  const Table table(
      "# source: somewhere\r\n# hardware: 8x H100\n\nop,bytes,note\nall_gather, 512 ,\"one, two\"\n# late\nx,1,\n");
  ASSERT_EQ(table.rows(), 2U);
  EXPECT_EQ(table.header_line(), 4);
  EXPECT_EQ(table.line_of(0), 5);
  EXPECT_EQ(table.line_of(1), 7);
  EXPECT_EQ(table.cell(0, table.column("bytes")), "512");
  EXPECT_EQ(table.cell(0, table.column("note")), "one, two");
  EXPECT_EQ(table.cell(1, table.column("note")), "");
  EXPECT_FALSE(table.column("time_us").exists());
  EXPECT_EQ(table.comment("hardware"), "8x H100");
  EXPECT_EQ(table.comment("software"), "");
  EXPECT_TRUE(table.comments_say("LATE"));
}

TEST(ScoreTable, StaysReadableWhenItMoves) {
  Table first("a,b\n1,2\n");
  const Table second(std::move(first));
  EXPECT_EQ(second.cell(0, second.column("b")), "2");
}

std::string fault_of_time(const std::string& cells) {
  const Table table("m,time_us\n" + cells + "\n");
  Row row(table, 0);
  row.count(table.column("m"));
  row.amount(table.column("time_us"));
  return row.fault();
}

TEST(ScoreTable, AHeaderReportsItsMistakesWithTheLine) {
  const auto refusal = [](const std::string& header) {
    try {
      const Table table("# hw: a\n" + header + "\n8,1\n");
    } catch (const ConfigError& mistake) {
      return std::string(mistake.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal("m,\"time_us\""), "accepted");
  EXPECT_EQ(refusal("m,\"time_us"), "line 2: the quote of a cell is not closed on its line; close it");
  EXPECT_EQ(refusal("m,\"time\"_us"),
            "line 2: text follows the closing quote of a cell; enclose the whole cell in quotes");
}

TEST(ScoreTable, ARowReportsItsMistakes) {
  EXPECT_EQ(fault_of_time("8,1.5"), "");
  EXPECT_EQ(fault_of_time("8,nan"), "time_us is nan; a measurement must be a finite number above 0");
  EXPECT_EQ(fault_of_time("8,-3"), "time_us is -3; a measurement must be a finite number above 0");
  EXPECT_EQ(fault_of_time("8,0"), "time_us is 0; a measurement must be a finite number above 0");
  EXPECT_EQ(fault_of_time("8,inf"), "time_us is inf; a measurement must be a finite number above 0");
  EXPECT_EQ(fault_of_time("8,"), "time_us is missing");
  EXPECT_EQ(fault_of_time("8,1.2ms"), "time_us is '1.2ms', which is not a number (the column is in us)");
  EXPECT_EQ(fault_of_time("8"), "the row has 1 cell, but the header has 2 columns; it is truncated");
  EXPECT_EQ(fault_of_time("8,1,2"), "the row has 3 cells, but the header has 2 columns");
  EXPECT_EQ(fault_of_time("\"8\",\"1.5\" "), "");
  EXPECT_EQ(fault_of_time("8,\"1\"5"), "text follows the closing quote of a cell; enclose the whole cell in quotes");
  EXPECT_EQ(fault_of_time("\"8\" x,1"), "text follows the closing quote of a cell; enclose the whole cell in quotes");
  for (const std::string cells : {"8,\"1.5", "\"8,1.5", "8,\"1.5\"\"", "8,\""}) {
    EXPECT_EQ(fault_of_time(cells), "the quote of a cell is not closed on its line; close it") << cells;
  }
  EXPECT_EQ(fault_of_time("0,1"), "m is 0; it must be between 1 and 16777216");
  EXPECT_EQ(fault_of_time("8.5,1"), "m is '8.5', which is not a whole number from 1 to 16777216");
  EXPECT_EQ(fault_of_time("99999999999999999999,1"),
            "m is '99999999999999999999', which is not a whole number from 1 to 16777216");
}

}  // namespace
}  // namespace commfuse::score
