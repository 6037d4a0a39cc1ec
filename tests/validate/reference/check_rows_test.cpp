// SPDX-License-Identifier: Apache-2.0
// Rows of `check` as text, also of schedules that failed.
#include "validate/reference/check_rows.h"

#include <gtest/gtest.h>

#include <array>

namespace commfuse::validate {
namespace {

CheckResult right() {
  return {.point = {&checked_operations()[0], find_strategy("sliced"), {.slices = 2}, 4, 7},
          .parameters = "k=2",
          .ops = 4,
          .verdict = {.integers = {.elements = 100}, .bound = {.elements = 50, .worst = 0.25}}};
}

CheckResult wrong() {
  CheckResult result = right();
  result.verdict.integers.wrong = 3;
  result.verdict.bound = {.elements = 50, .wrong = 50, .worst = 12.5};
  return result;
}

CheckResult unproved() {
  CheckResult result = right();
  result.findings = {"op 3 (exchange) never ends, says \"rank 1\""};
  result.verdict = {};
  return result;
}

TEST(CheckRows, ATableOfSchedulesThatAreRight) {
  const std::array results{right(), right()};
  EXPECT_EQ(to_table(results),
            "operation   ranks  schedule                     proof  integers  bound     worst\n"
            "ag_gemm         4  sliced (k=2)                 ok     ok        ok        0.25\n"
            "ag_gemm         4  sliced (k=2)                 ok     ok        ok        0.25\n"
            "2 schedules right: proved, 200 integers exact, 100 sums in bound\n");
  EXPECT_EQ(findings_in_words(results), "");
}

TEST(CheckRows, ATableWithFailures) {
  const std::array results{wrong(), right(), unproved()};
  EXPECT_EQ(to_table(results),
            "operation   ranks  schedule                     proof  integers  bound     worst\n"
            "ag_gemm         4  sliced (k=2)                 ok     3 wrong   50 wrong  12.50\n"
            "ag_gemm         4  sliced (k=2)                 ok     ok        ok        0.25\n"
            "ag_gemm         4  sliced (k=2)                 no     -         -         -\n"
            "2 of 3 schedules failed\n");
  EXPECT_EQ(findings_in_words(results), "sliced (k=2) ag_gemm, 4 ranks: op 3 (exchange) never ends, says \"rank 1\"\n");
}

TEST(CheckRows, CsvLeavesEmptyWhatDoesNotApplyAndQuotes) {
  const std::array results{unproved()};
  EXPECT_EQ(
      to_csv(results),
      "schema,operation,ranks,dtype,seed,strategy,slices,sub_slices,form,add_lane,sum,lanes,directions,group,inner,"
      "attention,shuffles,regather,ops,ok,proved,finding,integer_elements,integer_wrong,bound_elements,bound_wrong,"
      "bound_worst\r\n"
      "commfuse.check/1,ag_gemm,4,bf16,7,sliced,2,,,,,,,,,,strided,,4,false,false,\"op 3 (exchange) never ends, says "
      "\"\"rank "
      "1\"\"\",,,,,\r\n");
}

TEST(CheckRows, JsonHasNullForWhatDoesNotApply) {
  const std::array results{right()};
  EXPECT_EQ(
      to_json(results),
      "[\n{\"schema\":\"commfuse.check/1\",\"operation\":\"ag_gemm\",\"ranks\":4,\"dtype\":\"bf16\",\"seed\":7,"
      "\"strategy\":\"sliced\",\"slices\":2,\"sub_slices\":null,\"form\":null,\"add_lane\":null,\"sum\":null,"
      "\"lanes\":null,\"directions\":null,\"group\":null,\"inner\":null,\"attention\":null,\"shuffles\":\"strided\","
      "\"regather\":null,\"ops\":4,\"ok\":true,"
      "\"proved\":true,\"finding\":null,\"integer_elements\":100,\"integer_wrong\":0,\"bound_elements\":50,"
      "\"bound_wrong\":0,\"bound_worst\":0.25}\n]\n");
}

}  // namespace
}  // namespace commfuse::validate
