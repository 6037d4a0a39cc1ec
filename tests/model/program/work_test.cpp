// SPDX-License-Identifier: Apache-2.0
// Tests which schedules do equal work.
#include "model/program/work.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "model/program/names.h"
#include "model/program_text/text.h"
#include "model/strategies/scope.h"

namespace commfuse {
namespace {

Program generated(Scope scope, bool gated_mlp, std::int32_t ranks, const char* strategy,
                  const StrategyOptions& options = {}) {
  return generate(operation_of(scope, gated_mlp), ranks, *find_strategy(strategy), options);
}

TEST(Work, IsTheSameForEveryStrategyHoweverItCutsTheTokens) {
  for (const Scope scope : all_scopes) {
    for (const std::int32_t ranks : {1, 2, 4}) {
      const std::string work = work_of(generated(scope, true, ranks, "serial"));
      for (const Strategy& strategy : strategies()) {
        for (const StrategyOptions& options : schedules_to_try(strategy, kinds_of(scope), ranks)) {
          const Program program = generate(operation_of(scope, true), ranks, strategy, options);
          EXPECT_EQ(work_of(program), work) << program.name;
        }
      }
    }
  }
}

TEST(Work, DistinguishesScopesMlpsAndNumbersOfRanks) {
  std::map<std::string, std::string> works;
  for (const Scope scope : all_scopes) {
    for (const bool gated : {false, true}) {
      for (const std::int32_t ranks : {2, 4}) {
        works.try_emplace(work_of(generated(scope, gated, ranks, "serial")), name_of(scope));
      }
    }
  }
  // gate_up, mlp, layer, gate_up_backward, mlp_ar and fsdp_gate_up contain the gate; data_parallel has no activation.
  EXPECT_EQ(works.size(), (all_scopes.size() + 6U) * 2U);
}

constexpr std::string_view twice = R"(schema: commfuse.schedule/1
name: twice
mesh: {tp: 2}
dimensions: {tokens: 2, hidden: 1}
tensors:
  x: {rows: tokens*2, columns: hidden*1}
  u: {rows: hidden*1, columns: hidden*1}
  v: {rows: hidden*1, columns: hidden*1}
  spare: {gelu: x}
  a: {product: [x, u]}
  y: {product: [a, v]}
  z: {residual: [y, x]}
buffers: {x: {rows: tokens*1, columns: hidden*1}}
initial: [{here: x, tensor: x, row: tp}]
final: [{here: x, tensor: z, row: tp}]
unfused: []
ops: []
)";

std::string work_with(std::string_view from, std::string_view to) {
  std::string text{twice};
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return work_of(parse_program(text.replace(at, from.size(), to), "twice.yaml"));
}

TEST(Work, IsTheWorkThatTheFinalContentsNeed) {
  EXPECT_EQ(work_with("", ""),
            "0: tokens*1/1 x hidden*1/1\n"
            "1: hidden*1/1 x hidden*1/1\n"
            "2: product 0 1\n"
            "3: hidden*1/1 x hidden*1/1\n"
            "4: product 2 3\n"
            "5: residual 4 0\n"
            "begin with 1/2 of 0\n"
            "end with 1/2 of 5\n");
}

TEST(Work, DoesNotDependOnNamesOrOrder) {
  const std::string work = work_with("", "");
  EXPECT_EQ(work_with("  spare: {gelu: x}\n", ""), work);
  EXPECT_EQ(work_with("name: twice", "name: other"), work);
  EXPECT_EQ(work_with("residual: [y, x]", "residual: [x, y]"), work);
}

TEST(Work, DependsOnOperandsAndOnInitialContents) {
  const std::string work = work_with("", "");
  EXPECT_NE(work_with("product: [a, v]", "product: [a, u]"), work);
  EXPECT_NE(work_with("residual: [y, x]", "residual: [y, a]"), work);
  EXPECT_NE(work_with("initial: [{here: x, tensor: x, row: tp}]", "initial: []"), work);
  EXPECT_NE(work_with("dimensions: {tokens: 2", "dimensions: {tokens: 4"), work);
}

TEST(Work, HasOneLinePerTensorInAThousandNestedTensors) {
  std::string chain = "  v1: {residual: [y, x]}\n";
  for (int i = 2; i <= 1000; ++i) {
    chain +=
        "  v" + std::to_string(i) + ": {residual: [v" + std::to_string(i - 1) + ", v" + std::to_string(i - 1) + "]}\n";
  }
  const std::string work = work_with("  z: {residual: [y, x]}\n", chain + "  z: {copy: v1000}\n");
  EXPECT_EQ(std::count(work.begin(), work.end(), '\n'), 5 + 1000 + 1 + 2);
}

TEST(ProductDtypes, IncludeOnlyGemmsAndAttention) {
  EXPECT_EQ(product_dtypes(generated(Scope::layer, true, 2, "serial")), std::vector{DType::bf16});
  EXPECT_EQ(product_dtypes(generated(Scope::layer, true, 2, "serial", {.dtype = DType::fp8})), std::vector{DType::fp8});
  Program mixed = generated(Scope::mlp, true, 2, "serial");
  std::get<GemmShape>(mixed.unfused.front()).dtype = DType::fp8;
  EXPECT_EQ(product_dtypes(mixed), (std::vector{DType::bf16, DType::fp8}));
}

}  // namespace
}  // namespace commfuse
