// SPDX-License-Identifier: Apache-2.0
// Tests that a file can state neither more unfused work than its ops compute, nor less than its final contents need.
#include "model/proof/check_written.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "model/program_text/text.h"
#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"

namespace commfuse {
namespace {

/// Rank 0 multiplies two blocks of rows by w, rank 1 one block.
constexpr std::string_view uneven = R"(schema: commfuse.schedule/1
name: uneven
mesh: {tp: 2}
dimensions: {tokens: 3, hidden: 1, ffn: 1}
tensors: {x: {rows: tokens*3, columns: hidden*1}, w: {rows: hidden*1, columns: ffn*1}, y: {product: [x, w]}}
buffers:
  x: {rows: tokens*3, columns: hidden*1}
  w: {rows: hidden*1, columns: ffn*1}
  y: {rows: tokens*3, columns: ffn*1}
initial: [{here: x, tensor: x}, {here: w, tensor: w}]
final: [{here: "y[2*tp]", tensor: y, row: 2*tp}]
unfused: [gemm: {m: tokens*1, n: ffn*1, k: hidden*1}]
ops:
  - {id: 0, op: gemm, a: "x[2*tp]", b: w, out: "y[2*tp]"}
  - {id: 1, op: gemm, where: tp < 1, a: "x[1]", b: w, out: "y[1]"}
)";

/// Returns the sentences about the text with the first `from` replaced.
std::vector<std::string> sentences_with(std::string_view from, std::string_view to) {
  std::string text{uneven};
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  std::vector<std::string> sentences;
  for (const Finding& finding :
       check_written(parse_program(text.replace(at, from.size(), to), "uneven.yaml")).findings) {
    sentences.push_back(finding.sentence);
  }
  return sentences;
}

using Sentences = std::vector<std::string>;

TEST(CheckWritten, PassesWorkThatTheOpsCompute) {
  EXPECT_EQ(sentences_with("", ""), Sentences{});
  EXPECT_EQ(sentences_with("unfused: [gemm", "unfused: [gelu: {rows: tokens*9, columns: ffn*1}, gemm"), Sentences{});
}

TEST(CheckWritten, FindsMoreWorkThanTheAverageRankComputes) {
  // Rank 0 computes two blocks and rank 1 one block.
  EXPECT_EQ(sentences_with("unfused: [gemm: {m: tokens*1", "unfused: [gemm: {m: tokens*2"),
            Sentences{"unfused has 2 blocks of GEMM tokens x ffn x hidden per rank, but the ops compute 1.5; list the "
                      "work of one rank before any cutting"});
  EXPECT_EQ(sentences_with("unfused: [gemm: {m: tokens*1",
                           "unfused: [gemm: {m: tokens*1, n: ffn*1, k: hidden*1}, gemm: "
                           "{m: tokens*1"),
            Sentences{"unfused has 2 blocks of GEMM tokens x ffn x hidden per rank, but the ops compute 1.5; list the "
                      "work of one rank before any cutting"});
}

TEST(CheckWritten, FindsWorkThatNoOpComputes) {
  EXPECT_EQ(sentences_with("n: ffn*1, k: hidden*1}]", "n: hidden*1, k: ffn*1}]"),
            (Sentences{"unfused has 1 block of GEMM tokens x hidden x ffn per rank, but the ops compute 0; list the "
                       "work of one rank before any cutting",
                       "unfused has 0 blocks of GEMM tokens x ffn x hidden per rank, but the final contents need 1; "
                       "list the work of one rank before any cutting"}));
  EXPECT_EQ(sentences_with("out: \"y[2*tp]\"}", "out: \"y[2*tp]\", purpose: local}"),
            Sentences{"unfused has 1 block of GEMM tokens x ffn x hidden per rank, but the ops compute 0.5; list the "
                      "work of one rank before any cutting"});
}

// The ranks end with two blocks of y: one per rank. Rank 0 also computes a block that nobody needs.
TEST(CheckWritten, FindsLessWorkThanTheFinalContentsNeed) {
  EXPECT_EQ(
      sentences_with("unfused: [gemm: {m: tokens*1, n: ffn*1, k: hidden*1}]", "unfused: []"),
      Sentences{"unfused has 0 blocks of GEMM tokens x ffn x hidden per rank, but the final contents need 1; list "
                "the work of one rank before any cutting"});
}

/// Two ranks hold halves of the tokens; z needs all of y, and every rank ends with all of z.
constexpr std::string_view chain = R"(schema: commfuse.schedule/1
name: chain
mesh: {tp: 2}
dimensions: {tokens: 2, hidden: 1, ffn: 1}
tensors:
  x: {rows: tokens*2, columns: hidden*1}
  w: {rows: hidden*1, columns: ffn*1}
  v: {rows: ffn*1, columns: hidden*1}
  y: {product: [x, w]}
  a: {gelu: y}
  z: {product: [a, v]}
buffers:
  x: {rows: tokens*2, columns: hidden*1}
  w: {rows: hidden*1, columns: ffn*1}
  v: {rows: ffn*1, columns: hidden*1}
  y: {rows: tokens*2, columns: ffn*1}
  a: {rows: tokens*2, columns: ffn*1}
  z: {rows: tokens*2, columns: hidden*1}
initial: [{here: x, tensor: x}, {here: w, tensor: w}, {here: v, tensor: v}]
final: [{here: z, tensor: z}]
unfused: [UNFUSED]
ops:
  - {id: 0, op: gemm, a: "x[tp]", b: w, out: "y[tp]"}
  - {id: 1, op: elementwise, function: gelu, in: "y[tp]", out: "a[tp]", waits: [0]}
  - {id: 2, op: gemm, a: "a[tp]", b: v, out: "z[tp]", waits: [1]}
  - {id: 3, op: exchange, shift: 1, send: "z[tp]", receive: "z[(tp+1)%2]", waits: [2]}
)";

Sentences sentences_of_chain(std::string_view unfused) {
  std::string text{chain};
  text.replace(text.find("UNFUSED"), 7, unfused);
  Sentences sentences;
  for (const Finding& finding : check_written(parse_program(text, "chain.yaml")).findings) {
    sentences.push_back(finding.sentence);
  }
  return sentences;
}

TEST(CheckWritten, CountsTheProductsBehindAFinalTensorOnce) {
  // Both ranks hold z, but it has to be computed once: one block of each GEMM per rank.
  EXPECT_EQ(
      sentences_of_chain("gemm: {m: tokens*1, n: ffn*1, k: hidden*1}, gemm: {m: tokens*1, n: hidden*1, k: ffn*1}"),
      Sentences{});
  EXPECT_EQ(
      sentences_of_chain("gemm: {m: tokens*1, n: hidden*1, k: ffn*1}"),
      Sentences{"unfused has 0 blocks of GEMM tokens x ffn x hidden per rank, but the final contents need 1; list "
                "the work of one rank before any cutting"});
}

TEST(CheckWritten, ReportsOnlyTheFailedProofOfAWrongSchedule) {
  const Sentences sentences =
      sentences_with("  - {id: 0, op: gemm, a: \"x[2*tp]\", b: w, out: \"y[2*tp]\"}\n  - {id: 1", "  - {id: 0");
  ASSERT_FALSE(sentences.empty());
  for (const std::string& sentence : sentences) {
    EXPECT_EQ(sentence.find("unfused has"), std::string::npos) << sentence;
  }
}

TEST(CheckWritten, PassesEveryGeneratedSchedule) {
  for (const Scope scope : all_scopes) {
    for (const Strategy& strategy : strategies()) {
      for (const StrategyOptions& options : schedules_to_prove(strategy, kinds_of(scope), 4)) {
        const Program program = generate(operation_of(scope, true), 4, strategy, options);
        EXPECT_TRUE(check_written(program).ok()) << program.name;
      }
    }
  }
}

}  // namespace
}  // namespace commfuse
