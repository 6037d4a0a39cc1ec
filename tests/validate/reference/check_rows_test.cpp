// SPDX-License-Identifier: Apache-2.0
// Tests rows of `check` as text, including those of schedules that failed.
#include "validate/reference/check_rows.h"

#include <gtest/gtest.h>

#include <array>

namespace commfuse::validate {
namespace {

CheckResult right() {
  return {
      .point = {&checked_operations()[0], &sliced_strategy, {.slices = 2}, 4, 7},
      .parameters = "k=2",
      .ops = 4,
      .verdict = {
          .integers = {.elements = 100}, .bitwise = Tally{.elements = 50}, .bound = {.elements = 50, .worst = 0.25}}};
}

CheckResult wrong() {
  CheckResult result = right();
  result.verdict.integers.wrong = 3;
  result.verdict.bitwise->wrong = 7;
  result.verdict.bound = {.elements = 50, .wrong = 50, .worst = 12.5};
  return result;
}

CheckResult unproved() {
  CheckResult result = right();
  result.findings = {"op 3 (exchange) never ends, says \"rank 1\""};
  result.verdict = {};
  return result;
}

TEST(CheckRows, PrintATableOfRightSchedules) {
  CheckResult without_bitwise = right();
  without_bitwise.verdict.bitwise.reset();
  const std::array results{right(), without_bitwise};
  EXPECT_EQ(to_table(results),
            "operation   ranks  schedule                  proof  integers  bitwise   bound\n"
            "ag_gemm         4  sliced (k=2)              ok     ok        ok        0.25\n"
            "ag_gemm         4  sliced (k=2)              ok     ok        -         0.25\n"
            "2 schedules correct: 200 integers exact, 50 bitwise, 100 in bound\n");
  EXPECT_EQ(findings_in_words(results), "");
}

TEST(CheckRows, ALongNameHasItsOwnLine) {
  CheckResult result = right();
  result.parameters = "ring both ways, halves";
  EXPECT_EQ(to_table(std::array{result}),
            "operation   ranks  schedule                  proof  integers  bitwise   bound\n"
            "ag_gemm         4  sliced (ring both ways, halves)\n"
            "                                             ok     ok        ok        0.25\n"
            "1 schedule correct: 100 integers exact, 50 bitwise, 50 in bound\n");
}

TEST(CheckRows, PrintATableWithFailures) {
  const std::array results{wrong(), right(), unproved()};
  EXPECT_EQ(to_table(results),
            "operation   ranks  schedule                  proof  integers  bitwise   bound\n"
            "ag_gemm         4  sliced (k=2)              ok     3 wrong   7 wrong   50 wrong\n"
            "ag_gemm         4  sliced (k=2)              ok     ok        ok        0.25\n"
            "ag_gemm         4  sliced (k=2)              no     -         -         -\n"
            "2 of 3 schedules failed\n");
  EXPECT_EQ(findings_in_words(results), "sliced (k=2) ag_gemm, 4 ranks: op 3 (exchange) never ends, says \"rank 1\"\n");
}

TEST(CheckRows, ATableOfAnExecutorNamesTheLevels) {
  CheckResult on_cpu = right();
  on_cpu.executor = "cpu";
  on_cpu.verdict.moved = Tally{.elements = 10};
  on_cpu.verdict.same_order = Tally{.elements = 20};
  const std::array results{on_cpu, on_cpu};
  EXPECT_EQ(to_table(results),
            "operation   ranks  schedule             proof  T0     T1     T-int  T2     T3\n"
            "ag_gemm         4  sliced (k=2)         ok     ok     ok     ok     ok     0.25\n"
            "ag_gemm         4  sliced (k=2)         ok     ok     ok     ok     ok     0.25\n"
            "2 schedules correct on cpu: 40 elements equal to the interpreter's, 20 moved\n  "
            "unchanged, 100 in bound\n");
  on_cpu.verdict.same_order->wrong = 1;
  EXPECT_FALSE(on_cpu.ok());
  CheckResult unproven = unproved();
  unproven.executor = "cpu";
  const std::array failed{on_cpu, unproven};
  EXPECT_EQ(to_table(failed),
            "operation   ranks  schedule             proof  T0     T1     T-int  T2     T3\n"
            "ag_gemm         4  sliced (k=2)         ok     ok     wrong  ok     ok     0.25\n"
            "ag_gemm         4  sliced (k=2)         no     -      -      -      -      -\n"
            "2 of 2 schedules failed\n");
}

TEST(CheckRows, CsvQuotesTextAndLeavesInapplicableCellsEmpty) {
  const std::array results{unproved()};
  EXPECT_EQ(
      to_csv(results),
      "schema,operation,ranks,dtype,seed,strategy,file,slices,sub_slices,form,add_lane,sum,lanes,directions,group,"
      "inner,"
      "attention,shuffles,regather,ops,ok,proved,finding,integer_elements,integer_wrong,bitwise_elements,"
      "bitwise_wrong,bound_elements,bound_wrong,bound_worst,executor,moved_elements,moved_wrong,same_order_elements,"
      "same_order_wrong\r\n"
      "commfuse.check/1,ag_gemm,4,bf16,7,sliced,,2,,,,,,,,,,strided,,4,false,false,\"op 3 (exchange) never ends, says "
      "\"\"rank 1\"\"\",,,,,,,,reference,,,,\r\n");
}

TEST(CheckRows, JsonHasNullForInapplicableCells) {
  const std::array results{right()};
  EXPECT_EQ(
      to_json(results),
      "[\n{\"schema\":\"commfuse.check/1\",\"operation\":\"ag_gemm\",\"ranks\":4,\"dtype\":\"bf16\",\"seed\":7,"
      "\"strategy\":\"sliced\",\"file\":null,\"slices\":2,\"sub_slices\":null,\"form\":null,\"add_lane\":null,\"sum\":"
      "null,"
      "\"lanes\":null,\"directions\":null,\"group\":null,\"inner\":null,\"attention\":null,\"shuffles\":\"strided\","
      "\"regather\":null,\"ops\":4,\"ok\":true,\"proved\":true,\"finding\":null,\"integer_elements\":100,"
      "\"integer_wrong\":0,\"bitwise_elements\":50,\"bitwise_wrong\":0,\"bound_elements\":50,\"bound_wrong\":0,"
      "\"bound_worst\":0.25,\"executor\":\"reference\",\"moved_elements\":null,\"moved_wrong\":null,"
      "\"same_order_elements\":null,\"same_order_wrong\":null}\n]\n");
}

TEST(CheckRows, WordsThatAreNotUtf8StillMakeJson) {
  std::array results{unproved()};
  results[0].findings = {"h\xff.yaml"};
  EXPECT_NE(to_json(results).find("\"finding\":\"h\ufffd.yaml\""), std::string::npos) << to_json(results);
}

}  // namespace
}  // namespace commfuse::validate
