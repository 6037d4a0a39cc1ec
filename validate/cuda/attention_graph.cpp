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

class Drawing {
 public:
  explicit Drawing(const AttentionPieceShape& shape)
      : shape_(shape), scores_{shape.sequences, shape.heads, shape.queries, shape.keys} {}

  AttentionGraph drawn() {
    const AttentionPieceShape& of = shape_;
    const int q = stored({of.sequences, of.heads, of.queries, of.head},
                         {of.query_stride, of.head, of.batch * of.query_stride, 1});
    const int k =
        stored({of.sequences, of.kv_heads, of.head, of.keys}, {of.key_stride, of.head, 1, of.batch * of.key_stride});
    const int v =
        stored({of.sequences, of.kv_heads, of.keys, of.head}, {of.key_stride, of.head, of.batch * of.key_stride, 1});
    const int out =
        stored({of.sequences, of.heads, of.queries, of.head}, {of.out_stride, of.head, of.batch * of.out_stride, 1});
    int scores = add({.function = GraphFunction::product, .a = q, .b = k});
    const int scale = number(1.0 / std::sqrt(static_cast<double>(of.head)), GraphType::fp32);
    scores = add({.function = GraphFunction::multiply, .a = scores, .b = scale});
    const int weights = softmax(of.causal ? masked(scores) : scores);
    graph_.operations.push_back({.function = GraphFunction::product, .a = weights, .b = v, .out = out});
    return std::move(graph_);
  }

 private:
  /// Gives keys that a query does not see a score so low that their weight is zero. The last query is at the position
  /// of the last key.
  int masked(int scores) {
    const int row = add({.function = GraphFunction::row, .a = scores}, GraphType::int32);
    const int column = add({.function = GraphFunction::column, .a = scores}, GraphType::int32);
    int stands_at = row;
    if (shape_.keys != shape_.queries) {
      const int keys = number(static_cast<double>(shape_.keys), GraphType::int32);
      const int queries = number(static_cast<double>(shape_.queries), GraphType::int32);
      stands_at = add({.function = GraphFunction::add, .a = row, .b = keys}, GraphType::int32);
      stands_at = add({.function = GraphFunction::subtract, .a = stands_at, .b = queries}, GraphType::int32);
    }
    const int sees = add({.function = GraphFunction::not_less, .a = stands_at, .b = column}, GraphType::boolean);
    const int low = number(std::numeric_limits<float>::lowest(), GraphType::fp32);
    return add({.function = GraphFunction::select, .a = scores, .b = low, .mask = sees});
  }

  int softmax(int scores) {
    const int largest = reduced(GraphFunction::largest, scores);
    const int below = add({.function = GraphFunction::subtract, .a = scores, .b = largest});
    const int grown = add({.function = GraphFunction::exponential, .a = below});
    const int sum = reduced(GraphFunction::sum, grown);
    // These statistics are never read, but without them no engine accepts whole sequences.
    const int logarithm = of_rows({.function = GraphFunction::logarithm, .a = sum});
    of_rows({.function = GraphFunction::add, .a = largest, .b = logarithm});
    return add({.function = GraphFunction::divide, .a = grown, .b = sum}, stored_as(shape_.dtype));
  }

  int stored(const Extents& extents, const Extents& strides) {
    return tensor({.extents = extents, .strides = strides, .type = stored_as(shape_.dtype), .place = Place::memory});
  }
  int number(double value, GraphType type) { return tensor({.type = type, .place = Place::value, .value = value}); }
  int reduced(GraphFunction function, int of) { return of_rows({.function = function, .a = of}); }
  int of_rows(GraphOperation operation) {
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

AttentionGraph attention_graph(const AttentionPieceShape& shape) { return Drawing(shape).drawn(); }

std::string unfit_for_fusing(const AttentionPiece& piece) {
  constexpr std::int64_t vector = 8;  // elements of one load: 16 bytes
  const AttentionPieceShape& shape = piece.shape;
  if ((shape.dtype != DType::bf16 && shape.dtype != DType::fp16) || shape.out_dtype != shape.dtype) {
    return fmt::format("{} is not a dtype of its fused attention", name_of(shape.dtype));
  }
  if (shape.causal && piece.first_position + shape.queries != shape.keys) {
    return "the last query does not stand at the last key";
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
  constexpr int any_slice = 90600;  // in older versions, a causal slice had to be a multiple of 64
  if (versions.library == 0) {
    return "libcudnn.so.9 is not installed";
  }
  const std::string library = "cuDNN " + cudnn_in_words(versions.library);
  if (versions.library / 10000 != versions.header / 10000) {
    return fmt::format("{} is installed, but this build is for {}", library, cudnn_in_words(versions.header));
  }
  if (versions.library < any_slice) {
    return fmt::format("{} is older than {}, which supports slices of any length", library, cudnn_in_words(any_slice));
  }
  // cudnn-frontend's sdpa_support_surface.h has this condition.
  if (versions.library == 91000 || versions.library == 91001) {
    return fmt::format("{} has a known fault, which 9.10.2 fixes", library);
  }
  return "";
}

std::string in_words(const AttentionUse& use) {
  const std::string why = use.without_cudnn.empty() ? "" : ", for " + use.without_cudnn;
  if (use.cudnn.empty()) {
    return use.cublaslt ? "cuBLASLt" + why : "";
  }
  return use.cublaslt ? fmt::format("cuDNN {} and some by cuBLASLt{}", use.cudnn, why) : "cuDNN " + use.cudnn;
}

}  // namespace commfuse::validate
