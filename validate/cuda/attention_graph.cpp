// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/attention_graph.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace commfuse::validate {

namespace {

using Extents = std::array<std::int64_t, 4>;
using Place = GraphTensor::Place;

GraphType stored_as(DType dtype) { return dtype == DType::fp16 ? GraphType::fp16 : GraphType::bf16; }

Extents packed(const Extents& extents) {
  return {extents[1] * extents[2] * extents[3], extents[2] * extents[3], extents[3], 1};
}

class GraphBuilder {
 public:
  explicit GraphBuilder(const AttentionPieceShape& shape)
      : shape_(shape), scores_{shape.sequences, shape.heads, shape.queries, shape.keys} {}

  AttentionGraph finished() {
    const AttentionPieceShape& shape = shape_;
    const int q = stored({shape.sequences, shape.heads, shape.queries, shape.head},
                         {shape.query_stride, shape.head, shape.batch * shape.query_stride, 1});
    const int k = stored({shape.sequences, shape.kv_heads, shape.head, shape.keys},
                         {shape.key_stride, shape.head, 1, shape.batch * shape.key_stride});
    const int v = stored({shape.sequences, shape.kv_heads, shape.keys, shape.head},
                         {shape.key_stride, shape.head, shape.batch * shape.key_stride, 1});
    const int out = stored({shape.sequences, shape.heads, shape.queries, shape.head},
                           {shape.out_stride, shape.head, shape.batch * shape.out_stride, 1});
    int scores = add({.function = GraphFunction::product, .a = q, .b = k});
    const int scale = number(1.0 / std::sqrt(static_cast<double>(shape.head)), GraphType::fp32);
    scores = add({.function = GraphFunction::multiply, .a = scores, .b = scale});
    const int weights = softmax(shape.causal ? masked(scores) : scores);
    graph_.operations.push_back({.function = GraphFunction::product, .a = weights, .b = v, .out = out});
    return std::move(graph_);
  }

 private:
  /// Lowers the scores of keys that a query does not see so far that their weights are zero. The last query is at the
  /// position of the last key.
  int masked(int scores) {
    const int row = add({.function = GraphFunction::row, .a = scores}, GraphType::int32);
    const int column = add({.function = GraphFunction::column, .a = scores}, GraphType::int32);
    int query_position = row;
    if (shape_.keys != shape_.queries) {
      const int keys = number(static_cast<double>(shape_.keys), GraphType::int32);
      const int queries = number(static_cast<double>(shape_.queries), GraphType::int32);
      query_position = add({.function = GraphFunction::add, .a = row, .b = keys}, GraphType::int32);
      query_position = add({.function = GraphFunction::subtract, .a = query_position, .b = queries}, GraphType::int32);
    }
    const int sees = add({.function = GraphFunction::not_less, .a = query_position, .b = column}, GraphType::boolean);
    const int low = number(std::numeric_limits<float>::lowest(), GraphType::fp32);
    return add({.function = GraphFunction::select, .a = scores, .b = low, .mask = sees});
  }

  int softmax(int scores) {
    const int largest = reduced(GraphFunction::largest, scores);
    const int differences = add({.function = GraphFunction::subtract, .a = scores, .b = largest});
    const int exponentials = add({.function = GraphFunction::exponential, .a = differences});
    const int sum = reduced(GraphFunction::sum, exponentials);
    // These statistics are never read, but without them no engine accepts whole sequences.
    const int logarithm = per_row({.function = GraphFunction::logarithm, .a = sum});
    per_row({.function = GraphFunction::add, .a = largest, .b = logarithm});
    return add({.function = GraphFunction::divide, .a = exponentials, .b = sum}, stored_as(shape_.dtype));
  }

  int stored(const Extents& extents, const Extents& strides) {
    return tensor({.extents = extents, .strides = strides, .type = stored_as(shape_.dtype), .place = Place::memory});
  }
  int number(double value, GraphType type) { return tensor({.type = type, .place = Place::value, .value = value}); }
  int reduced(GraphFunction function, int input) { return per_row({.function = function, .a = input}); }
  int per_row(GraphOperation operation) {
    return add(operation, GraphType::fp32, {shape_.sequences, shape_.heads, shape_.queries, 1});
  }
  int add(GraphOperation operation, GraphType type = GraphType::fp32) { return add(operation, type, scores_); }
  int add(GraphOperation operation, GraphType type, const Extents& extents) {
    operation.out = tensor({.extents = extents, .strides = packed(extents), .type = type});
    graph_.operations.push_back(operation);
    return operation.out;
  }
  int tensor(const GraphTensor& described) {
    graph_.tensors.push_back(described);
    return static_cast<int>(graph_.tensors.size()) - 1;
  }

  AttentionPieceShape shape_;
  Extents scores_;
  AttentionGraph graph_;
};

}  // namespace

AttentionGraph attention_graph(const AttentionPieceShape& shape) { return GraphBuilder(shape).finished(); }

std::string unfit_for_fusing(const AttentionPiece& piece) {
  constexpr std::int64_t vector = 8;  // elements of one load: 16 bytes
  const AttentionPieceShape& shape = piece.shape;
  if ((shape.dtype != DType::bf16 && shape.dtype != DType::fp16) || shape.out_dtype != shape.dtype) {
    return fmt::format("its fused attention does not support {}", name_of(shape.dtype));
  }
  if (shape.causal && piece.first_position + shape.queries != shape.keys) {
    return "the last query is not at the position of the last key";
  }
  const Address addresses = piece.queries | piece.keys | piece.values | piece.out;
  if (shape.head % vector != 0 || (shape.query_stride | shape.key_stride | shape.out_stride) % vector != 0 ||
      addresses % (vector * 2) != 0) {
    return "rows of heads do not begin at multiples of 16 bytes";
  }
  return "";
}

std::string cudnn_in_words(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string refused(const CudnnVersions& versions) {
  constexpr int oldest_usable = 90600;  // older versions require causal slices whose lengths are multiples of 64
  if (versions.library == 0) {
    return "libcudnn.so.9 is not installed";
  }
  const std::string library = "cuDNN " + cudnn_in_words(versions.library);
  if (versions.library / 10000 != versions.header / 10000) {
    return fmt::format("{} is installed, but this build is for {}", library, cudnn_in_words(versions.header));
  }
  if (versions.library < oldest_usable) {
    return fmt::format("{} is older than {}, which supports slices of any length", library,
                       cudnn_in_words(oldest_usable));
  }
  // cudnn-frontend's sdpa_support_surface.h has this condition.
  if (versions.library == 91000 || versions.library == 91001) {
    return fmt::format("{} has a known fault, which 9.10.2 fixes", library);
  }
  return "";
}

std::string in_words(const AttentionUse& use) {
  const std::string why = use.without_cudnn.empty() ? "" : ", because " + use.without_cudnn;
  if (use.cudnn.empty()) {
    return use.cublaslt ? "cuBLASLt" + why : "";
  }
  return use.cublaslt ? fmt::format("cuDNN {} and, in part, cuBLASLt{}", use.cudnn, why) : "cuDNN " + use.cudnn;
}

}  // namespace commfuse::validate
