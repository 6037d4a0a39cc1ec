// SPDX-License-Identifier: Apache-2.0
// Tests schedules from files on real matrices: those that run, those that are refused, and hostile files, which never
// abort the test.
#include "validate/reference/check_file.h"

#include <gtest/gtest.h>

#include <string>

#include "model/config_error.h"
#include "model/program_text/text.h"
#include "model/proof/check_program.h"
#include "tests/schedule_damage.h"
#include "validate/reference/check_point.h"
#include "validate/reference/check_rows.h"
#include "validate/reference/verify.h"

namespace commfuse::validate {
namespace {

/// Two GEMMs in sequence and attention, over dimensions that no model has, on two ranks.
constexpr std::string_view own_schedule = R"(schema: commfuse.schedule/1
name: own
mesh: {tp: 2}
dimensions: {rows: 2, wide: 3, parts: 2, packed: 2, heads: 2, sequences: 1, size: 1}
tensors:
  x: {rows: rows*2, columns: wide*3}
  v: {rows: wide*3, columns: packed*2}
  q: {product: [x, v]}
  a: {attention: q, columns: heads*2, causal: true}
  w: {rows: heads*2, columns: parts*2}
  y: {product: [a, w]}
  g: {gelu: y}
buffers:
  x: {rows: rows*2, columns: wide*3}
  v: {rows: wide*3, columns: packed*1}
  q: {rows: rows*2, columns: packed*1}
  a: {rows: rows*2, columns: heads*1}
  w: {rows: heads*1, columns: parts*2}
  part: {rows: rows*2, columns: parts*2}
  y: {rows: rows*1, columns: parts*2}
  g: {rows: rows*1, columns: parts*2}
initial:
  - {here: x, tensor: x}
  - {here: v, tensor: v, column: tp}
  - {here: w, tensor: w, row: tp}
final: [{here: g, tensor: g, row: tp}]
unfused:
  - gemm: {m: rows*2, n: packed*1, k: wide*3}
  - attention: {queries: rows*2, keys: rows*2, columns: heads*1, qkv: packed*1, batch: sequences, head: size, causal: true}
  - gemm: {m: rows*2, n: parts*2, k: heads*1}
ops:
  - {id: 0, op: gemm, a: x, b: v, out: q}
  - {id: 1, op: attention, batch: sequences, head: size, causal: true, in: [q, q], out: a, waits: [0]}
  - {id: 2, op: gemm, a: a, b: w, out: part, waits: [1]}
  - {id: 3, op: collective, kind: reduce_scatter, in: part, out: y, waits: [2]}
  - {id: 4, op: elementwise, purpose: essential, function: gelu, in: y, out: g, waits: [3]}
)";

/// An all-gather and a GEMM, which cut no sum.
constexpr std::string_view gather_schedule = R"(schema: commfuse.schedule/1
name: gather
mesh: {tp: 2}
dimensions: {tokens: 2, hidden: 1, qkv: 2}
tensors:
  x: {rows: tokens*2, columns: hidden*1}
  w: {rows: hidden*1, columns: qkv*2}
  y: {product: [x, w]}
buffers:
  x: {role: input, rows: tokens*1, columns: hidden*1}
  w: {role: weight, rows: hidden*1, columns: qkv*1}
  gathered: {rows: tokens*2, columns: hidden*1}
  y: {role: output, rows: tokens*2, columns: qkv*1}
initial: [{here: x, tensor: x, row: tp}, {here: w, tensor: w, column: tp}]
final: [{here: y, tensor: y, column: tp}]
unfused: [gemm: {m: tokens*2, n: qkv*1, k: hidden*1}]
ops:
  - {id: 0, op: collective, kind: all_gather, in: x, out: gathered}
  - {id: 1, op: gemm, a: gathered, b: w, out: y, waits: [0]}
)";

/// A gradient of a weight, a sum over more tokens than bf16 can add exactly.
constexpr std::string_view gradient_schedule = R"(schema: commfuse.schedule/1
name: gradient
mesh: {tp: 2}
dimensions: {tokens: 128, hidden: 1, qkv: 2}
tensors:
  x: {rows: tokens*128, columns: hidden*1}
  dy: {rows: tokens*128, columns: qkv*2}
  dw: {product: [x, dy], transpose_a: true}
buffers:
  x: {role: input, rows: tokens*128, columns: hidden*1}
  dy: {role: input, rows: tokens*128, columns: qkv*1}
  dw: {role: output, rows: hidden*1, columns: qkv*1}
initial: [{here: x, tensor: x}, {here: dy, tensor: dy, column: tp}]
final: [{here: dw, tensor: dw, column: tp}]
unfused: [gemm: {m: hidden*1, n: qkv*1, k: tokens*128, transpose_a: true}]
ops: [{id: 0, op: gemm, transpose_a: true, a: x, b: dy, out: dw}]
)";

ScheduleFile file_of(const std::string& text) { return {"own.yaml", parse_program(text, "own.yaml")}; }

/// Returns the text with the first `from` replaced.
std::string with(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string refusal(const std::string& text) {
  try {
    require_runnable(file_of(text));
    sizes_for(file_of(text), 1);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(CheckFile, AScheduleOverItsOwnDimensionsIsRight) {
  const CheckResult result = check_point(point_of(file_of(std::string{own_schedule}), 1));
  EXPECT_EQ(result.findings, std::vector<std::string>{});
  EXPECT_TRUE(result.ok()) << to_json({&result, 1});
  EXPECT_EQ(result.ops, 5);
}

TEST(CheckFile, ATensorInAFinerBufferNeedNotHaveTheUnfusedBits) {
  const std::string text{gather_schedule};
  const CheckResult plain = check_point(point_of(file_of(text), 1));
  EXPECT_TRUE(plain.ok()) << to_json({&plain, 1});
  EXPECT_TRUE(plain.verdict.bitwise.has_value());
  // Tensor y is bf16, so the unfused operation rounds it more than this buffer does.
  const CheckResult finer = check_point(
      point_of(file_of(with(text, "columns: qkv*1}\ninitial", "columns: qkv*1, dtype: fp32}\ninitial")), 1));
  EXPECT_TRUE(finer.ok()) << to_json({&finer, 1});
  EXPECT_FALSE(finer.verdict.bitwise.has_value());
}

TEST(CheckFile, ABufferThatRoundsAnInputStaysInTheBound) {
  std::string text = with(std::string{gather_schedule}, "x: {rows: tokens*2, columns: hidden*1}",
                          "x: {rows: tokens*2, columns: hidden*1, dtype: fp32}");
  text = with(text, "x: {role: input, rows: tokens*1, columns: hidden*1}",
              "x: {role: input, rows: tokens*1, columns: hidden*1, dtype: fp32}");
  text = with(text, "columns: qkv*1}\ninitial", "columns: qkv*1, dtype: fp32}\ninitial");
  const CheckResult result = check_point(point_of(file_of(text), 1));  // the buffer `gathered` is bf16
  EXPECT_TRUE(result.ok()) << to_json({&result, 1});
  EXPECT_FALSE(result.verdict.bitwise.has_value());
  EXPECT_GT(result.verdict.bound.worst, 0.1);
}

TEST(CheckFile, AWrongScheduleFailsItsProofAndIsNotRun) {
  const CheckResult result = check_point(point_of(file_of(with(std::string{own_schedule}, ", waits: [2]", "")), 1));
  EXPECT_FALSE(result.ok());
  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(result.verdict.integers.elements, 0);
}

TEST(CheckFile, RowsNameFileAndProgram) {
  const CheckResult result = check_point(point_of(file_of(std::string{own_schedule}), 1));
  const std::string csv = to_csv({&result, 1});
  EXPECT_NE(csv.find("\ncommfuse.check/1,file,2,bf16,1,own,own.yaml,,,"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",,5,true,true,,"), std::string::npos) << csv;
  EXPECT_NE(to_table({&result, 1}).find("\nfile            2  own (own.yaml)            ok     ok        -"),
            std::string::npos)
      << to_table({&result, 1});
}

TEST(CheckFile, ContractedDimensionsAreShortenedUntilIntegersStayExact) {
  // y, at most 2, times heads of 2 x 4 is contracted with 6 elements per block of 40: 240 x 8 is beyond bf16's 256.
  std::string text = with(std::string{own_schedule}, "dimensions: {rows: 2", "dimensions: {more: 40, rows: 2");
  text = with(text, "  g: {gelu: y}\n",
              "  u: {rows: parts*2, columns: more*40}\n  z: {product: [y, u]}\n  t: {rows: more*40, columns: size*1}\n"
              "  s: {product: [z, t]}\n  g: {gelu: y}\n");
  const ScheduleFile file = file_of(text);
  std::vector<Sizes> plain = checked_sizes(file.program);
  EXPECT_FALSE(integers_stay_exact(file.program, plain[1], 1));
  for (const Sizes& sizes : sizes_for(file, 1)) {
    EXPECT_TRUE(integers_stay_exact(file.program, sizes, 1));
    EXPECT_EQ(sizes.block[4], plain[0].block[4]);  // packed holds heads and keeps its size
  }
}

TEST(CheckFile, RowsThatATransposedProductContractsAreShortened) {
  // Four pairs of integers in nine have a product of 1 or -1: 455 of 128 x 8 tokens, beyond bf16's 256.
  const ScheduleFile file = file_of(std::string{gradient_schedule});
  const std::vector<Sizes> plain = checked_sizes(file.program);
  EXPECT_FALSE(integers_stay_exact(file.program, plain[1], 1));
  const std::vector<Sizes> sizes = sizes_for(file, 1);
  ASSERT_EQ(sizes.size(), plain.size());
  EXPECT_TRUE(integers_stay_exact(file.program, sizes[1], 1));
  EXPECT_LT(sizes[1].block[0], plain[1].block[0]);  // tokens
  EXPECT_EQ(sizes[1].block[1], plain[1].block[1]);  // hidden
  const CheckResult result = check_point(point_of(file, 1));
  EXPECT_TRUE(result.ok()) << to_json({&result, 1});
}

TEST(CheckFile, UnsupportedSchedulesAreRefusedWithARemedy) {
  const std::string text{own_schedule};
  EXPECT_EQ(refusal(text), "");
  EXPECT_EQ(refusal(with(text, "final: [{here: g, tensor: g, row: tp}]", "final: []")),
            "own.yaml: it has no final contents, so there is nothing to compare; list under 'final' what every rank "
            "holds at the end");
  EXPECT_EQ(refusal(with(text, "x: {rows: rows*2, columns: wide*3}\n  v",
                         "x: {rows: rows*2, columns: wide*3, dtype: "
                         "fp8}\n  v")),
            "own.yaml: the reference does not store fp8; choose bf16, fp16 or fp32");
  EXPECT_EQ(refusal(with(text, "out: y, waits: [2]", "out: y, wire: fp8, waits: [2]")), "");
  EXPECT_EQ(
      refusal(with(text, "out: y, waits: [2]", "out: y, wire: fp16, waits: [2]")),
      "own.yaml: it rounds to bf16 and fp16, but no error bound covers both; use only one of them in addition to fp32");
  EXPECT_EQ(
      refusal(with(text, "  x: {rows: rows*2, columns: wide*3}", "  x: {rows: rows*2, columns: wide*3, dtype: fp32}")),
      "own.yaml: tensor x is fp32, but buffer x holds it in bf16; give both the same dtype");
  EXPECT_EQ(refusal(with(text, "out: y, waits: [2]", "out: y, wire: fp32, waits: [2]")), "");
  EXPECT_EQ(
      refusal(with(text, "in: [q, q], out: a", "in: [\"q[0]\", q], out: \"a[0]\"")),
      "own.yaml: op 1 (attention) has only some rows as queries, but the reference supports only all rows; give it the "
      "same rows as queries and keys");
  EXPECT_EQ(refusal(with(text, "  - attention: {", "  - norm: {rows: rows*1, columns: size*1}\n  - attention: {")), "");
  EXPECT_EQ(refusal(with(text, "size, causal: true}\n  - gemm", "size, causal: false}\n  - gemm")),
            "own.yaml: tensor a is attention, but 'unfused' does not list it; add it there");
  EXPECT_EQ(
      refusal(commfuse::test::replaced_everywhere(with(text, ", heads: 2", ""), "heads*", "packed*")),
      "own.yaml: one dimension has two sizes in its attention; use separate dimensions for q, k and v, the output, "
      "the head and the batch");
  EXPECT_EQ(refusal(commfuse::test::replaced_everywhere(with(text, "{tp: 2}", "{tp: 65}"), "*2", "*65")).substr(0, 45),
            "own.yaml: it has 65 ranks, but the reference ");
  EXPECT_EQ(refusal(commfuse::test::replaced_everywhere(
                commfuse::test::replaced_everywhere(text, "wide: 3", "wide: 3000000"), "wide*3", "wide*3000000")),
            "own.yaml: its matrices are too large to be run element by element; cut its dimensions into fewer blocks");
}

TEST(CheckFile, SumsThatNeverStayExactAreRefused) {
  std::string text = commfuse::test::replaced_everywhere(
      commfuse::test::replaced_everywhere(std::string{own_schedule}, "wide: 3", "wide: 300"), "wide*3", "wide*300");
  text = with(text, "  g: {gelu: y}\n",
              "  u: {rows: packed*2, columns: wide*300}\n  z: {product: [q, u]}\n"
              "  s: {product: [z, v]}\n  g: {gelu: y}\n");
  EXPECT_EQ(
      refusal(text),
      "own.yaml: the sums of its GEMMs exceed the integers that its dtype represents exactly; choose fp32, or cut the "
      "contracted dimensions into fewer blocks");
}

const std::vector<std::vector<std::string>> words{
    {"rows*", "wide*", "parts*", "packed*", "heads*", "sequences*", "size*"},
    {"batch: sequences", "batch: size", "batch: rows"},
    {"head: size", "head: sequences"},
    {"*1", "*2", "*3", "*4"},
    {": 1", ": 2", ": 3", ": 4"},
    {"true", "false"},
    {"gelu", "norm", "copy", "swiglu", "add"},
    {"reduce_scatter", "all_reduce", "all_gather", "all_to_all"},
    {"}\n", ", dtype: fp16}\n", ", dtype: fp32}\n", ", dtype: fp8}\n", ", where: tp < 1}\n", ", waits: []}\n"},
};

TEST(CheckFile, AnyHandWrittenScheduleIsRightOrRefused) {
  commfuse::test::Dice dice;
  int right = 0;
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string text{own_schedule};
    for (std::size_t damages = dice.below(4) + 1; damages > 0; --damages) {
      commfuse::test::damage(text, words, dice);
    }
    try {
      const CheckResult result = check_point(point_of(file_of(text), 1));
      if (result.findings.empty()) {
        EXPECT_TRUE(result.ok()) << text << to_json({&result, 1});
        ++right;
      }
    } catch (const ConfigError&) {
      ++refused;
    }
  }
  EXPECT_GT(right, 50);
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace commfuse::validate
