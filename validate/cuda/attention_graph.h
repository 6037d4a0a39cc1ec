// SPDX-License-Identifier: Apache-2.0
// Attention as a graph of small operations: the form in which cuDNN 9 recognizes it and fuses it into one kernel. The
// operations and their order are those of NVIDIA's cudnn-frontend (CompositeSDPANode, v1.x): scores, scale, mask,
// softmax with its statistics, and the weighted sum. cuDNN has no engine for an equivalent graph in any other order.
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
    memory,  ///< Memory of the device.
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
  product,      ///< matrix product of a and b over the last two axes; each head of b serves equally many heads of a
  multiply,     ///< a * b; b is one number
  add,          ///< a + b
  subtract,     ///< a - b
  divide,       ///< a / b
  exponential,  ///< exp(a)
  logarithm,    ///< log(a)
  row,          ///< position of every element of a on axis 2
  column,       ///< position of every element of a on axis 3
  not_less,     ///< a >= b
  select,       ///< a where `mask` holds, else b
  largest,      ///< maximum of a over axis 3
  sum,          ///< sum of a over axis 3
};

/// Operands are indices of tensors; -1: none.
struct GraphOperation {
  GraphFunction function = GraphFunction::product;
  int a = -1, b = -1, mask = -1;
  int out = -1;
};

struct AttentionGraph {
  /// The first four are queries, keys (transposed), values and results.
  std::vector<GraphTensor> tensors;
  std::vector<GraphOperation> operations;
};

/// Requires that unfit_for_fusing() returns an empty text for a piece of this shape.
AttentionGraph attention_graph(const AttentionPieceShape& shape);

/// Returns why no fused kernel accepts this piece, as the end of a sentence; empty if one may accept it.
std::string unfit_for_fusing(const AttentionPiece& piece);

struct CudnnVersions {
  int header = 0;   ///< Version with which the module was compiled: 91900 is 9.19.0.
  int library = 0;  ///< Version that it loaded; 0: none.
};
std::string cudnn_in_words(int version);
/// Returns why these versions cannot be used, as the end of a sentence; empty if they can.
std::string refused(const CudnnVersions& versions);

/// Libraries that have computed fast attention so far.
struct AttentionUse {
  std::string cudnn;  ///< "9.19.0", if cuDNN computed some of it.
  bool cublaslt = false;
  std::string without_cudnn;  ///< Why cuDNN was not used, at the first call that allowed any library.
};
/// Returns "cuDNN 9.19.0", "cuBLASLt, because libcudnn.so.9 is not installed", or both; empty if neither was used.
std::string in_words(const AttentionUse& use);

}  // namespace commfuse::validate
