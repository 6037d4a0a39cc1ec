// SPDX-License-Identifier: Apache-2.0
// Tests that computations and moves on the GPU have the bits of the host's reference, on small and irregular shapes.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/validate/cuda/on_device.h"
#include "validate/reference/attention.h"
#include "validate/reference/data.h"
#include "validate/values/arithmetic.h"

namespace commfuse::validate {
namespace {

using test::some_values;
using test::stored_as;

class CudaKernels : public test::OnDevice {};

constexpr std::array stored_dtypes{DType::bf16, DType::fp16, DType::fp32};

struct GemmExtents {
  std::int64_t rows, columns, depth;
};

/// Returns the interpreter's GEMM, added to `before` if the call accumulates, in the stored dtype.
Matrix<float> expected_product(const Matrix<float>& a, const Matrix<float>& b, const ProductCall& call,
                               const Matrix<float>& before) {
  Matrix<float> out = product(factor(a, call.transpose_a), factor(b, call.transpose_b));
  if (call.accumulate) {
    const std::array terms{before, out};
    out = sum(terms);
  }
  return stored_as(call.out.dtype, std::move(out));
}

TEST_F(CudaKernels, ExactGemmsHaveTheInterpretersBits) {
  std::uint64_t seed = 0;
  for (const GemmExtents& extents :
       {GemmExtents{1, 1, 1}, GemmExtents{3, 5, 7}, GemmExtents{64, 64, 16}, GemmExtents{65, 67, 33}}) {
    for (unsigned variant = 0; variant < 8; ++variant) {
      const DType in = stored_dtypes[seed % 3];
      const DType to = stored_dtypes[seed / 3 % 3];
      ProductCall call{
          .transpose_a = (variant & 1U) != 0, .transpose_b = (variant & 2U) != 0, .accumulate = (variant & 4U) != 0};
      const Matrix<float> a = some_values(extents.rows, extents.depth, in, ++seed);
      const Matrix<float> b = some_values(extents.depth, extents.columns, in, ++seed);
      const Matrix<float> left = call.transpose_a ? transposed(a) : a;
      const Matrix<float> right = call.transpose_b ? transposed(b) : b;
      const Matrix<float> before = some_values(extents.rows, extents.columns, to, ++seed);
      call.a = put(left, in, 3);
      call.b = put(right, in);
      call.out = put(before, to, 1);
      driver().product(stream(), call);
      EXPECT_EQ(get(call.out), expected_product(left, right, call, before)) << extents.rows << ' ' << variant;
      EXPECT_TRUE(is_padding_untouched(call.out));
    }
  }
}

struct FunctionCase {
  Function function;
  Functions functions;
  std::int64_t inputs = 1;
};

Matrix<float> expected_function(const FunctionCase& tested, std::int64_t block,
                                const std::vector<Matrix<float>>& inputs) {
  switch (tested.function) {
    case Function::add: return sum(inputs);
    case Function::residual: return residual(tested.functions, inputs[0], inputs[1]);
    default: return apply(tested.function, tested.functions, block, inputs[0]);
  }
}

TEST_F(CudaKernels, FunctionsHaveTheReferencesBits) {
  const std::vector<FunctionCase> cases{
      {Function::add, Functions::real, 1},        {Function::add, Functions::real, 5},
      {Function::copy, Functions::real},          {Function::swiglu, Functions::real},
      {Function::swiglu, Functions::integer},     {Function::gelu, Functions::real},
      {Function::gelu, Functions::integer},       {Function::norm, Functions::real},
      {Function::norm, Functions::integer},       {Function::residual, Functions::real, 2},
      {Function::residual, Functions::integer, 2}};
  std::uint64_t seed = 100;
  for (const FunctionCase& tested : cases) {
    for (const std::int64_t block : {std::int64_t{1}, std::int64_t{8}, std::int64_t{13}}) {
      const DType in = stored_dtypes[++seed % 3];
      const std::int64_t columns = 3 * block;
      FunctionCall call{.function = tested.function, .functions = tested.functions, .block = block};
      std::vector<Matrix<float>> inputs;
      for (std::int64_t i = 0; i < tested.inputs; ++i) {
        const std::int64_t wide = tested.function == Function::swiglu ? 2 * columns : columns;
        inputs.push_back(some_values(5, wide, in, ++seed, tested.functions == Functions::integer));
        call.inputs.push_back(put(inputs.back(), in, block == 8 ? 0 : 2));
      }
      call.out = new_panel(5, columns, in, 1);
      driver().function(stream(), call);
      EXPECT_EQ(get(call.out), stored_as(in, expected_function(tested, block, inputs)))
          << static_cast<int>(tested.function) << ' ' << static_cast<int>(tested.functions) << ' ' << block;
      EXPECT_TRUE(is_padding_untouched(call.out));
    }
  }
}

TEST_F(CudaKernels, AnAddAfterAWireRoundsEveryTermFirst) {
  std::vector<Matrix<float>> terms;
  FunctionCall call{.function = Function::add, .block = 16, .wire = DType::bf16};
  for (std::uint64_t i = 0; i < 4; ++i) {
    const Matrix<float> term = some_values(3, 16, DType::fp32, 7 + i);
    call.inputs.push_back(put(term, DType::fp32));
    terms.push_back(stored_as(DType::bf16, term));
  }
  call.out = new_panel(3, 16, DType::fp32);
  driver().function(stream(), call);
  EXPECT_EQ(get(call.out), sum(terms));
}

// Every combination of input, output and wire dtypes has a kernel; if the inputs differ in dtype, the kernel reads the
// dtype of each.
TEST_F(CudaKernels, AnAddHasTheReferencesBitsInAllDtypes) {
  std::uint64_t seed = 300;
  for (unsigned variant = 0; variant < 81; ++variant) {
    const std::array dtypes{stored_dtypes[variant % 3], stored_dtypes[variant / 3 % 3], stored_dtypes[variant / 9 % 3]};
    const DType wire = stored_dtypes[variant / 27];
    std::vector<Matrix<float>> terms;
    FunctionCall call{.function = Function::add, .block = 19, .wire = wire};
    for (const DType dtype : {dtypes[0], dtypes[1]}) {
      const Matrix<float> term = some_values(2, 19, dtype, ++seed);
      call.inputs.push_back(put(term, dtype, variant % 2 == 0 ? 0 : 5));
      terms.push_back(stored_as(wire, term));
    }
    call.out = new_panel(2, 19, dtypes[2], 3);
    driver().function(stream(), call);
    EXPECT_EQ(get(call.out), stored_as(dtypes[2], sum(terms))) << variant;
    EXPECT_TRUE(is_padding_untouched(call.out));
  }
}

TEST_F(CudaKernels, FunctionsConvertBetweenDtypes) {
  for (const FunctionCase& tested : {FunctionCase{Function::swiglu, Functions::real},
                                     {Function::gelu, Functions::real},
                                     {Function::norm, Functions::real},
                                     {Function::residual, Functions::real, 2}}) {
    FunctionCall call{.function = tested.function, .block = 24};
    std::vector<Matrix<float>> inputs;
    for (std::int64_t i = 0; i < tested.inputs; ++i) {
      inputs.push_back(some_values(3, tested.function == Function::swiglu ? 48 : 24, DType::bf16, 400));
      call.inputs.push_back(put(inputs.back(), DType::bf16));
    }
    call.out = new_panel(3, 24, DType::fp32);
    driver().function(stream(), call);
    EXPECT_EQ(get(call.out), expected_function(tested, 24, inputs)) << static_cast<int>(tested.function);
  }
}

TEST_F(CudaKernels, GemmsOfTwoDtypesHaveTheInterpretersBits) {
  const Matrix<float> a = some_values(5, 9, DType::bf16, 1);
  const Matrix<float> b = some_values(9, 6, DType::fp32, 2);
  ProductCall call{.a = put(a, DType::bf16), .b = put(b, DType::fp32), .out = new_panel(5, 6, DType::fp16)};
  driver().product(stream(), call);
  EXPECT_EQ(get(call.out), expected_product(a, b, call, {}));
}

TEST_F(CudaKernels, AnAddInPlaceAndAZeroWriteTheRightRows) {
  const Matrix<float> before = some_values(4, 9, DType::fp32, 1);
  const Matrix<float> more = some_values(4, 9, DType::fp32, 2);
  const Panel accumulated = put(before, DType::fp32);
  driver().function(stream(),
                    {.function = Function::add, .inputs = {accumulated, put(more, DType::fp32)}, .out = accumulated});
  const std::array terms{before, more};
  EXPECT_EQ(get(accumulated), sum(terms));
  driver().function(stream(), {.function = Function::zero, .out = accumulated});
  EXPECT_EQ(get(accumulated), Matrix<float>(4, 9));
}

TEST_F(CudaKernels, ANormOfAWideRowIsWithinOneRoundingOfTheReference) {
  const Matrix<float> values = some_values(2, 5000, DType::fp32, 3);
  const Panel out = new_panel(2, 5000, DType::fp32);
  driver().function(stream(),
                    {.function = Function::norm, .block = 5000, .inputs = {put(values, DType::fp32)}, .out = out});
  const Matrix<float> result = get(out);
  const Matrix<float> expected = apply(Function::norm, Functions::real, 5000, values);
  for (std::size_t i = 0; i < result.values().size(); ++i) {
    EXPECT_LE(std::abs(result.values()[i] - expected.values()[i]), std::abs(expected.values()[i]) * 0x1p-23F) << i;
  }
}

TEST_F(CudaKernels, FastFunctionsAreCloseToTheReference) {
  for (const Function function : {Function::swiglu, Function::gelu, Function::norm}) {
    const std::int64_t wide = function == Function::swiglu ? 80 : 40;
    const Matrix<float> values = some_values(3, wide, DType::fp32, 17);
    const Panel out = new_panel(3, 40, DType::fp32);
    driver().function(stream(), {.function = function,
                                 .sum_order = SumOrder::blocked,
                                 .block = 40,
                                 .inputs = {put(values, DType::fp32)},
                                 .out = out});
    const Matrix<float> result = get(out);
    const Matrix<float> expected = apply(function, Functions::real, 40, values);
    for (std::size_t i = 0; i < result.values().size(); ++i) {
      EXPECT_NEAR(result.values()[i], expected.values()[i], 1e-5F) << static_cast<int>(function) << ' ' << i;
    }
  }
}

/// Returns the rows of `whole` with the numbers in `at`.
Matrix<float> rows_at(const Matrix<float>& whole, std::span<const std::int64_t> at) {
  Matrix<float> rows(static_cast<std::int64_t>(at.size()), whole.columns());
  for (std::int64_t row = 0; row < rows.rows(); ++row) {
    std::ranges::copy(whole.row(at[static_cast<std::size_t>(row)]), rows.row(row).begin());
  }
  return rows;
}

struct AttentionCase {
  AttentionLayout layout;
  std::int64_t blocks, rows, first, queries;
};

// In each case two query heads share a kv head, there are two sequences, or a slice begins in the middle of a sequence.
const std::vector<AttentionCase> attention_cases{
    {{.qkv = 24, .out = 12, .head = 6, .batch = 1, .causal = true}, 1, 9, 4, 5},
    {{.qkv = 16, .out = 8, .head = 4, .batch = 2, .causal = true}, 2, 12, 3, 7},
    {{.qkv = 16, .out = 8, .head = 4, .batch = 2, .causal = false}, 1, 10, 0, 10},
    {{.qkv = 64, .out = 32, .head = 8, .batch = 1, .causal = false}, 1, 33, 16, 8},
};

class CudaAttention : public test::OnDevice {
 protected:
  /// Returns the device's result for one slice of the queries, and the reference.
  std::pair<Matrix<float>, Matrix<float>> result_and_reference(const AttentionCase& tested, Functions functions,
                                                               SumOrder sum_order, DType dtype,
                                                               AttentionKernel kernel = AttentionKernel::any) {
    const Matrix<float> whole =
        some_values(tested.rows, tested.blocks * tested.layout.qkv, dtype, 11, functions == Functions::integer);
    std::vector<std::int64_t> at(static_cast<std::size_t>(tested.queries));
    std::iota(at.begin(), at.end(), tested.first);
    const Matrix<float> queries = rows_at(whole, at);
    const Panel out = new_panel(tested.queries, tested.blocks * tested.layout.out, dtype, 8);
    driver().attend(stream(), {.layout = tested.layout,
                               .functions = functions,
                               .sum_order = sum_order,
                               .kernel = kernel,
                               .parts = {{put(queries, dtype, 8), tested.first, out}},
                               .keys = put(whole, dtype)});
    Matrix<float> result = get(out);
    return {std::move(result), stored_as(dtype, attention(tested.layout, functions, queries, at, whole))};
  }

  void expect_close(const AttentionCase& tested, AttentionKernel kernel) {
    const auto [result, expected] =
        result_and_reference(tested, Functions::real, SumOrder::blocked, DType::bf16, kernel);
    for (std::size_t i = 0; i < result.values().size(); ++i) {
      // Weights and results are rounded to bf16, and values lie in [-1, 1).
      EXPECT_NEAR(result.values()[i], expected.values()[i], 0x1p-6F) << tested.rows << ' ' << i;
    }
  }
};

TEST_F(CudaAttention, InDoubleHasTheBitsOfTheReference) {
  for (const AttentionCase& tested : attention_cases) {
    for (const Functions functions : {Functions::real, Functions::integer}) {
      for (const DType dtype : stored_dtypes) {
        const auto [result, expected] = result_and_reference(tested, functions, SumOrder::ascending, dtype);
        EXPECT_EQ(result, expected) << tested.rows << ' ' << static_cast<int>(functions) << ' ' << name_of(dtype);
      }
    }
  }
}

TEST_F(CudaAttention, ByGemmsIsCloseToTheReference) {
  for (const AttentionCase& tested : attention_cases) {
    expect_close(tested, AttentionKernel::cublaslt);
  }
  EXPECT_EQ(driver().attention_by(), "cuBLASLt");
}

// A thread of the softmax keeps 8, 16 or 32 of a row's keys, or none if the row is longer.
TEST_F(CudaAttention, ByGemmsRowsOfAnyLengthAreCloseToTheReference) {
  for (const std::int64_t keys : {31, 2100, 4500, 8200}) {
    for (const bool causal : {false, true}) {
      expect_close({{.qkv = 24, .out = 8, .head = 8, .batch = 1, .causal = causal}, 1, keys, keys - 3, 2},
                   AttentionKernel::cublaslt);
    }
  }
}

TEST_F(CudaAttention, ByCudnnIsCloseToTheReference) {
  for (const AttentionCase& tested : attention_cases) {
    expect_close(tested, AttentionKernel::any);
  }
  const std::string by = driver().attention_by();
  const bool has_none = by.find("libcudnn") != std::string::npos || by.find("headers of cuDNN") != std::string::npos;
  if (by.starts_with("cuBLASLt") && has_none) {
    GTEST_SKIP() << "computed by " << by;
  }
  EXPECT_TRUE(by.starts_with("cuDNN")) << by;
}

/// Returns the tags that data.cpp gives a tensor, in a program that contains nothing else.
Matrix<float> tags_of_the_host(std::int64_t rows, std::int64_t columns, DType dtype, std::uint64_t seed) {
  Program program;
  program.tensors = {{.name = "x",
                      .rows = {.dimension = static_cast<DimensionId>(0), .blocks = 1},
                      .columns = {.dimension = static_cast<DimensionId>(1), .blocks = 1},
                      .dtype = dtype}};
  return input_data(program, {.block = {rows, columns}}, DataKind::tags, seed).front();
}

TEST_F(CudaKernels, TagsOfAlignedRowsMatchTheHostToo) {
  for (const DType dtype : stored_dtypes) {
    const Matrix<float> whole = tags_of_the_host(3, 24, dtype, 5);
    const Panel panel = new_panel(3, 24, dtype);
    TagCall call{.panel = panel, .state = Random(5).next(), .columns = 24};
    driver().fill_tags(stream(), call);
    EXPECT_EQ(get(panel), whole) << name_of(dtype);
    EXPECT_EQ(driver().count_wrong_tags(stream(), call), 0);
    const std::byte other{0x5a};
    driver().upload(panel.at + 5, {&other, 1});
    EXPECT_EQ(driver().count_wrong_tags(stream(), call), 1) << name_of(dtype);
  }
}

TEST_F(CudaKernels, RandomValuesDependOnlyOnTheirPosition) {
  const auto values_in = [&](DType dtype, std::int64_t padding) {
    const Panel panel = new_panel(5, 21, dtype, padding);
    driver().randomize(stream(), panel, 3);
    Matrix<float> values = get(panel);
    EXPECT_TRUE(is_padding_untouched(panel));
    return values;
  };
  const Matrix<float> values = values_in(DType::fp32, 0);
  EXPECT_EQ(values_in(DType::fp32, 3), values);
  EXPECT_EQ(values_in(DType::bf16, 1), stored_as(DType::bf16, values));
  EXPECT_TRUE(std::ranges::all_of(values.values(), [](float value) { return value >= -1.0F && value < 1.0F; }));
  EXPECT_NE(values.at(0, 1), values.at(1, 0));
}

TEST_F(CudaKernels, TagsMatchTheHost) {
  constexpr std::uint64_t seed = 12;
  for (const DType dtype : stored_dtypes) {
    const Matrix<float> whole = tags_of_the_host(9, 14, dtype, seed);
    const Panel part = new_panel(4, 5, dtype, 3);
    TagCall call{.panel = part, .state = Random(seed).next(), .row = 2, .column = 6, .columns = 14};
    driver().fill_tags(stream(), call);
    const Matrix<float> result = get(part);
    for (std::int64_t row = 0; row < 4; ++row) {
      for (std::int64_t column = 0; column < 5; ++column) {
        EXPECT_EQ(result.at(row, column), whole.at(2 + row, 6 + column)) << name_of(dtype);
      }
    }
    EXPECT_TRUE(is_padding_untouched(part));
    EXPECT_EQ(driver().count_wrong_tags(stream(), call), 0);
    call.column = 7;
    EXPECT_EQ(driver().count_wrong_tags(stream(), call), 20);
  }
}

struct MoveCase {
  std::int64_t rows, columns, padding_from, padding_to;
};

// The cases are whole rows, odd rows, rows that begin in the middle of 16 bytes, and a matrix that several CTAs share.
constexpr std::array move_cases{MoveCase{1, 1, 0, 0}, MoveCase{7, 24, 0, 0}, MoveCase{5, 13, 3, 0},
                                MoveCase{9, 8, 8, 0}, MoveCase{4, 40, 0, 8}, MoveCase{300, 97, 0, 0},
                                MoveCase{3, 12, 4, 4}};

class CudaMoves : public test::OnDevice {
 protected:
  void expect_moved(const DeviceLink& link, DType from, DType wire, DType to) {
    MoveCall call{.wire = wire, .link = link};
    std::vector<Matrix<float>> expected;
    for (int round = 0; round < 6; ++round) {  // more parts than one launch accepts
      for (const MoveCase& tested : move_cases) {
        const Matrix<float> values = some_values(tested.rows, tested.columns, from, 21 + expected.size());
        call.parts.push_back(
            {put(values, from, tested.padding_from), new_panel(tested.rows, tested.columns, to, tested.padding_to)});
        expected.push_back(stored_as(to, stored_as(wire, values)));
      }
    }
    driver().move(stream(), call);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(get(call.parts[i].to), expected[i]) << i << ' ' << name_of(from) << ' ' << name_of(to);
      EXPECT_TRUE(is_padding_untouched(call.parts[i].to));
    }
  }
};

TEST_F(CudaMoves, BytesArriveUnchangedAndNowhereElse) {
  for (const DType dtype : stored_dtypes) {
    expect_moved({.kind = LinkKind::copy, .ctas = 3}, dtype, dtype, dtype);
  }
}

TEST_F(CudaMoves, ValuesAreRoundedToTheWire) {
  expect_moved({.kind = LinkKind::copy, .ctas = 2}, DType::fp32, DType::bf16, DType::fp32);
  expect_moved({.kind = LinkKind::copy, .ctas = 1}, DType::fp32, DType::fp32, DType::fp16);
  expect_moved({.kind = LinkKind::copy, .ctas = 1}, DType::bf16, DType::fp32, DType::fp32);
  expect_moved({.kind = LinkKind::copy, .ctas = 3}, DType::fp32, DType::fp16, DType::bf16);
  expect_moved({.kind = LinkKind::copy, .ctas = 2}, DType::bf16, DType::fp8, DType::bf16);
  expect_moved({.kind = LinkKind::copy, .ctas = 2}, DType::fp32, DType::fp8, DType::fp16);
}

TEST_F(CudaMoves, ValuesArePackedIntoEightBitsAndBack) {
  expect_moved({.kind = LinkKind::copy, .ctas = 2}, DType::bf16, DType::fp8, DType::fp8);
  expect_moved({.kind = LinkKind::copy, .ctas = 3}, DType::fp8, DType::fp8, DType::fp32);
  expect_moved({.kind = LinkKind::copy, .ctas = 1}, DType::fp8, DType::fp8, DType::fp8);
  expect_moved({.kind = LinkKind::bounce}, DType::bf16, DType::fp8, DType::bf16);
}

TEST_F(CudaMoves, PartsOfOneMoveMayChangeTheirDtypesInSeveralWays) {
  const Matrix<float> values = some_values(4, 30, DType::bf16, 2);
  MoveCall call{.parts = {{put(values, DType::bf16), new_panel(4, 30, DType::fp32)},
                          {put(values, DType::fp32), new_panel(4, 30, DType::fp16)},
                          {put(values, DType::bf16), new_panel(4, 30, DType::bf16)}}};
  driver().move(stream(), call);
  for (const MoveCall::Part& part : call.parts) {
    EXPECT_EQ(get(part.to), stored_as(part.to.dtype, values)) << name_of(part.to.dtype);
  }
}

TEST_F(CudaMoves, APacedLinkMovesTheSame) {
  expect_moved({.kind = LinkKind::paced, .ctas = 3, .pace = {std::chrono::microseconds(5), {1e11}}}, DType::bf16,
               DType::bf16, DType::bf16);
}

TEST_F(CudaMoves, APacedLinkIsNeverFasterThanItsPace) {
  const Panel from = put(some_values(64, 512, DType::bf16, 1), DType::bf16);
  const Panel to = new_panel(64, 512, DType::bf16);
  const EventId begin = driver().make_event(true);
  const EventId end = driver().make_event(true);
  const Pace pace{std::chrono::microseconds(100), {64.0 * 512 * 2 * 1000}};  // a millisecond for the whole move
  driver().record(begin, stream());
  driver().move(stream(), {.parts = {{from, to}}, .link = {.kind = LinkKind::paced, .pace = pace}});
  driver().record(end, stream());
  ASSERT_TRUE(driver().finish(patience));
  // The clock of the pace advances in steps of up to 1 us.
  EXPECT_GE(driver().elapsed(begin, end), std::chrono::microseconds(1099));
}

TEST_F(CudaMoves, ABounceThroughTheHostMovesTheSame) {
  const DeviceLink link{.kind = LinkKind::bounce, .ctas = 2};
  expect_moved(link, DType::bf16, DType::bf16, DType::bf16);
  expect_moved(link, DType::fp32, DType::bf16, DType::fp32);
  const Matrix<float> large =
      some_values(3000, 2100, DType::bf16, 5);  // more chunks than fit in the buffer of the link
  const Panel to = new_panel(3000, 2100, DType::bf16);
  driver().move(stream(), {.parts = {{put(large, DType::bf16), to}}, .link = link});
  EXPECT_EQ(get(to), large);
}

}  // namespace
}  // namespace commfuse::validate
