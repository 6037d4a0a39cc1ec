// SPDX-License-Identifier: Apache-2.0
// Attention as a graph of small operations: the form in which cuDNN 9 knows it and fuses it into one kernel. Which
// operations in which order its engines recognise is that of NVIDIA's cudnn-frontend (CompositeSDPANode, v1.x): scores,
// scale, mask, softmax with its statistics, and the weighted sum. Any other order means the same and finds no engine.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "validate/cuda/attention_pieces.h"

namespace commfuse::validate {

enum class GraphType : std::uint8_t { bf16, fp16, fp32, int32, boolean };

struct GraphTensor {
  enum class Place : std::uint8_t {
    memory,  ///< Of the device.
    inside,  ///< Never stored.
    value,   ///< One number, `value`.
  };
  std::array<std::int64_t, 4> extents{1, 1, 1, 1};
  std::array<std::int64_t, 4> strides{1, 1, 1, 1};
  GraphType type = GraphType::fp32;
  Place place = Place::inside;
  double value = 0.0;
};

enum class GraphFunction : std::uint8_t {
  product,      ///< a times b, of the last two axes; b has a head for an equal run of heads of a
  multiply,     ///< a * b; one b for all
  add,          ///< a + b
  subtract,     ///< a - b
  divide,       ///< a / b
  exponential,  ///< of a
  logarithm,    ///< of a
  row,          ///< The position of every element of a on axis 2
  column,       ///< The same on axis 3
  not_less,     ///< a >= b
  select,       ///< a where `mask` holds, else b
  largest,      ///< of a over axis 3
  sum,          ///< of a over axis 3
};

/// Operands are positions among the tensors; -1: none.
struct GraphOperation {
  GraphFunction function = GraphFunction::product;
  int a = -1, b = -1, mask = -1;
  int out = -1;
};

struct AttentionGraph {
  /// The first four are queries, keys (columns first), values and results.
  std::vector<GraphTensor> tensors;
  std::vector<GraphOperation> operations;
};

/// Requires that unfit_for_fusing() says nothing of a piece of this shape.
AttentionGraph attention_graph(const AttentionPieceShape& shape);

/// Why no fused kernel takes this piece, as the end of a sentence; empty: one may.
std::string unfit_for_fusing(const AttentionPiece& piece);

struct CudnnVersions {
  int header = 0;   ///< What the module was compiled with: 91900 is 9.19.0.
  int library = 0;  ///< What it found; 0: nothing.
};
std::string cudnn_in_words(int version);
/// Why these versions cannot be used, as the end of a sentence; empty when they can.
std::string refused(const CudnnVersions& versions);

/// What computed fast attention so far.
struct AttentionUse {
  std::string cudnn;  ///< "9.19.0", where it did some.
  bool cublaslt = false;
  std::string without_cudnn;  ///< Why cuBLASLt did it first, where it was not asked for.
};
/// "cuDNN 9.19.0", "cuBLASLt, for there is no libcudnn.so.9 here", or both; empty: nothing did.
std::string in_words(const AttentionUse& use);

}  // namespace commfuse::validate
