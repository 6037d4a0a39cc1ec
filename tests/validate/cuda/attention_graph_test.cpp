// SPDX-License-Identifier: Apache-2.0
// Executes the graph that describes attention to cuDNN, operation by operation: the result must equal the reference.
// cudnn_graph_test.cpp tests whether an engine of cuDNN supports the graph.
#include "validate/cuda/attention_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "tests/validate/cuda/on_device.h"
#include "validate/reference/attention.h"

namespace commfuse::validate {
namespace {

using Extents = std::array<std::int64_t, 4>;
using test::some_values;

/// Memory starting at address 0, in elements of 16 bits; the values are stored without rounding.
using Store = std::vector<double>;

std::size_t offset(const Extents& at, const Extents& strides) {
  return static_cast<std::size_t>(std::inner_product(at.begin(), at.end(), strides.begin(), std::int64_t{0}));
}

/// Executes the operations of a graph one after another.
class GraphInterpreter {
 public:
  GraphInterpreter(const AttentionPiece& piece, Store& store) : graph_(attention_graph(piece.shape)), store_(store) {
    starts_ = {piece.queries / 2, piece.keys / 2, piece.values / 2, piece.out / 2};
    for (const GraphTensor& tensor : graph_.tensors) {
      values_.emplace_back(tensor.place == GraphTensor::Place::inside ? size_of(tensor) : 1, tensor.value);
    }
  }

  void run() {
    for (const GraphOperation& operation : graph_.operations) {
      const Extents& extents = tensor(operation.out).extents;
      Extents at{};
      for (at[0] = 0; at[0] < extents[0]; ++at[0]) {
        for (at[1] = 0; at[1] < extents[1]; ++at[1]) {
          for (at[2] = 0; at[2] < extents[2]; ++at[2]) {
            for (at[3] = 0; at[3] < extents[3]; ++at[3]) {
              element(operation.out, at) = result(operation, at);
            }
          }
        }
      }
    }
  }

 private:
  [[nodiscard]] const GraphTensor& tensor(int index) const { return graph_.tensors[static_cast<std::size_t>(index)]; }
  static std::size_t size_of(const GraphTensor& tensor) {
    return static_cast<std::size_t>(tensor.extents[0] * tensor.extents[1] * tensor.extents[2] * tensor.extents[3]);
  }
  /// Returns an element of a tensor. On an axis where the tensor has one element, that element applies to all
  /// positions.
  double& element(int index, Extents at) {
    const GraphTensor& from = tensor(index);
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      at[axis] = std::min(at[axis], from.extents[axis] - 1);
    }
    const std::size_t position = offset(at, from.strides);
    return from.place == GraphTensor::Place::memory ? store_.at(starts_[static_cast<std::size_t>(index)] + position)
                                                    : values_[static_cast<std::size_t>(index)].at(position);
  }

  double result(const GraphOperation& operation, const Extents& at) {
    const auto a = [&] { return element(operation.a, at); };
    const auto b = [&] { return element(operation.b, at); };
    switch (operation.function) {
      case GraphFunction::product: return product(operation, at);
      case GraphFunction::multiply: return a() * b();
      case GraphFunction::add: return a() + b();
      case GraphFunction::subtract: return a() - b();
      case GraphFunction::divide: return a() / b();
      case GraphFunction::exponential: return std::exp(a());
      case GraphFunction::logarithm: return std::log(a());
      case GraphFunction::row: return static_cast<double>(at[2]);
      case GraphFunction::column: return static_cast<double>(at[3]);
      case GraphFunction::not_less: return a() >= b() ? 1.0 : 0.0;
      case GraphFunction::select: return element(operation.mask, at) != 0.0 ? a() : b();
      case GraphFunction::largest:
      case GraphFunction::sum: return reduced(operation, at);
    }
    return 0.0;
  }
  double product(const GraphOperation& operation, const Extents& at) {
    const std::int64_t shared = tensor(operation.a).extents[1] / tensor(operation.b).extents[1];
    double sum = 0.0;
    for (std::int64_t i = 0; i < tensor(operation.a).extents[3]; ++i) {
      sum += element(operation.a, {at[0], at[1], at[2], i}) * element(operation.b, {at[0], at[1] / shared, i, at[3]});
    }
    return sum;
  }
  double reduced(const GraphOperation& operation, const Extents& at) {
    double value = operation.function == GraphFunction::sum ? 0.0 : -INFINITY;
    for (std::int64_t i = 0; i < tensor(operation.a).extents[3]; ++i) {
      const double addend = element(operation.a, {at[0], at[1], at[2], i});
      value = operation.function == GraphFunction::sum ? value + addend : std::max(value, addend);
    }
    return value;
  }

  AttentionGraph graph_;
  Store& store_;
  std::array<std::size_t, 4> starts_{};
  std::vector<Store> values_;
};

struct Case {
  AttentionLayout layout;
  std::int64_t rows;     // all rows of the matrix
  std::int64_t first;    // first row that is queried
  std::int64_t queries;  // number of queried rows
};

// The cases are a whole sequence, a slice in its middle, the last slice of two sequences, a slice with more rows of one
// sequence than of the others, two sequences without a causal mask, and a single row.
constexpr std::array cases{
    Case{{.qkv = 16, .out = 8, .head = 4, .batch = 1, .causal = true}, 6, 0, 6},
    Case{{.qkv = 24, .out = 16, .head = 4, .batch = 1, .causal = true}, 8, 2, 3},
    Case{{.qkv = 24, .out = 16, .head = 4, .batch = 2, .causal = true}, 12, 8, 4},
    Case{{.qkv = 24, .out = 16, .head = 4, .batch = 3, .causal = true}, 15, 4, 7},
    Case{{.qkv = 24, .out = 8, .head = 8, .batch = 2, .causal = false}, 10, 4, 4},
    Case{{.qkv = 12, .out = 4, .head = 4, .batch = 2, .causal = true}, 8, 0, 1},
};
constexpr std::int64_t blocks = 2;

/// Returns a call whose keys extend as far as the queries see; in memory the results follow the whole matrix.
AttentionCall call_of(const Case& tested) {
  const std::int64_t columns = blocks * tested.layout.qkv;
  const std::int64_t keys = tested.layout.causal ? tested.first + tested.queries : tested.rows;
  const Panel whole{0, keys, columns, columns, DType::bf16};
  Panel queries = whole;
  queries.at = static_cast<Address>(tested.first * columns * 2);
  queries.rows = tested.queries;
  const Panel out{static_cast<Address>(tested.rows * columns * 2), tested.queries, blocks * tested.layout.out,
                  blocks * tested.layout.out, DType::bf16};
  return {.layout = tested.layout,
          .sum_order = SumOrder::blocked,
          .parts = {{.queries = queries, .first_row = tested.first, .out = out}},
          .keys = whole};
}

TEST(AttentionGraph, StepByStepComputesTheAttentionOfTheReference) {
  for (const Case& tested : cases) {
    const Matrix<float> qkv = some_values(tested.rows, blocks * tested.layout.qkv, DType::bf16, 7);
    std::vector<std::int64_t> rows(static_cast<std::size_t>(tested.queries));
    std::iota(rows.begin(), rows.end(), tested.first);
    Matrix<float> queries(tested.queries, qkv.columns());
    for (std::int64_t row = 0; row < tested.queries; ++row) {
      std::ranges::copy(qkv.row(tested.first + row), queries.row(row).begin());
    }
    const Matrix<float> expected = attention(tested.layout, Functions::real, queries, rows, qkv);
    for (const bool joined : {false, true}) {
      Store store(qkv.values().begin(), qkv.values().end());
      store.resize(store.size() + expected.values().size(), NAN);
      for (const AttentionPiece& piece : pieces_of(call_of(tested), joined)) {
        GraphInterpreter(piece, store).run();
      }
      for (std::size_t i = 0; i < expected.values().size(); ++i) {
        EXPECT_NEAR(store[qkv.values().size() + i], expected.values()[i], 1e-6)
            << tested.rows << ' ' << joined << ' ' << i;
      }
    }
  }
}

TEST(AttentionPieces, MergeSequencesQueriedAtTheSamePositions) {
  EXPECT_EQ(pieces_of(call_of(cases[2]), true).size(), 2U);   // blocks
  EXPECT_EQ(pieces_of(call_of(cases[2]), false).size(), 4U);  // blocks and sequences
  // Rows 4 to 10 contain two, three and two positions of the three sequences.
  std::vector<std::int64_t> queries;
  for (const AttentionPiece& piece : pieces_of(call_of(cases[3]), true)) {
    queries.push_back(piece.shape.queries);
  }
  EXPECT_EQ(queries, (std::vector<std::int64_t>{2, 2, 3, 3, 2, 2}));
  // A single row belongs to one sequence only.
  EXPECT_EQ(pieces_of(call_of(cases[5]), true).size(), 2U);
}

TEST(AttentionGraph, IsInTheOrderThatEnginesRecognize) {
  std::vector<GraphFunction> order;
  for (const GraphOperation& operation : attention_graph(pieces_of(call_of(cases[1]), true)[0].shape).operations) {
    order.push_back(operation.function);
  }
  using enum GraphFunction;
  EXPECT_EQ(order, (std::vector{product, multiply, row, column, add, subtract, not_less, select, largest, subtract,
                                exponential, sum, logarithm, add, divide, product}));
}

TEST(AttentionGraph, ReportsShapesThatNoFusedKernelSupports) {
  AttentionPiece piece{.shape = {.head = 128,
                                 .queries = 64,
                                 .keys = 256,
                                 .query_stride = 1280,
                                 .key_stride = 1280,
                                 .out_stride = 1024,
                                 .causal = true},
                       .first_position = 192,
                       .queries = 256};
  EXPECT_EQ(unfit_for_fusing(piece), "");
  piece.shape.dtype = DType::fp32;
  EXPECT_EQ(unfit_for_fusing(piece), "its fused attention does not support fp32");
  piece.shape.dtype = DType::fp16;
  piece.shape.out_dtype = DType::fp16;
  piece.values = 8;
  EXPECT_EQ(unfit_for_fusing(piece), "rows of heads do not begin at multiples of 16 bytes");
  piece.values = 0;
  piece.shape.keys = 300;
  EXPECT_EQ(unfit_for_fusing(piece), "the last query is not at the position of the last key");
  piece.shape.causal = false;
  EXPECT_EQ(unfit_for_fusing(piece), "");
}

TEST(CudnnVersions, UnusableOnesAreRefusedWithAReason) {
  constexpr int header = 91900;
  EXPECT_EQ(refused({header, 91900}), "");
  EXPECT_EQ(refused({header, 90600}), "");
  EXPECT_EQ(refused({header, 0}), "libcudnn.so.9 is not installed");
  EXPECT_EQ(refused({header, 100000}), "cuDNN 10.0.0 is installed, but this build is for 9.19.0");
  EXPECT_EQ(refused({header, 90501}), "cuDNN 9.5.1 is older than 9.6.0, which supports slices of any length");
  EXPECT_EQ(refused({header, 91001}), "cuDNN 9.10.1 has a known fault, which 9.10.2 fixes");
  EXPECT_EQ(refused({header, 91002}), "");
}

TEST(AttentionUse, StatesTheKernelAndTheReason) {
  EXPECT_EQ(in_words(AttentionUse{}), "");
  EXPECT_EQ(in_words(AttentionUse{.cudnn = "9.19.0"}), "cuDNN 9.19.0");
  EXPECT_EQ(in_words(AttentionUse{.cublaslt = true}), "cuBLASLt");
  EXPECT_EQ(in_words(AttentionUse{.cublaslt = true, .without_cudnn = refused({91900, 0})}),
            "cuBLASLt, because libcudnn.so.9 is not installed");
  EXPECT_EQ(in_words(AttentionUse{.cudnn = "9.19.0", .cublaslt = true, .without_cudnn = "fp32"}),
            "cuDNN 9.19.0 and, in part, cuBLASLt, because fp32");
}

}  // namespace
}  // namespace commfuse::validate
