// SPDX-License-Identifier: Apache-2.0
// One site of a program under construction: the input of a generator, and the type of its result.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/program/builder.h"

namespace commfuse {

/// Lane of transfers by copy engines, which need no SMs.
inline constexpr Lane copy_lane{LaneKind::copy, 0};

/// Steps from a rank along nested rings; `outer` is 0 on a single ring.
struct RingSteps {
  std::int32_t inner = 0;
  std::int32_t outer = 0;
};

/// Axes of a mesh over which shards are distributed: one ring, or nested rings with a second axis across nodes. Shards
/// are in the order of the ranks' coordinate, or of extent(inner) * outer coordinate + inner coordinate.
struct ShardAxes {
  int inner = 0;
  std::optional<int> outer;

  [[nodiscard]] std::int32_t ranks(const Mesh& mesh) const;
  /// Returns the position of the rank that is `steps` ahead.
  [[nodiscard]] Index place(const Mesh& mesh, const RingSteps& steps = {}) const;
};

/// Adds the op that computes rows of a stage's input, when another op needs them.
using MakeRows = std::function<OpId(const Operand& rows)>;

/// The buffers of one site. Rows are tokens; one rank's shard consists of `cuts` cuts. At a gemm_ar site of a strategy
/// with gemm_ar_cuts_columns, the tokens are one block, and shards and cuts are columns of the weight and the output.
///
///   ag_gemm        input: own shard (cuts x K)          output: all tokens (ranks*cuts) x own columns
///   gemm_rs        input: all tokens x own share of K   output: own shard (cuts x columns), complete sums
///   gemm_ar        input: all tokens x own share of K   output: all tokens x columns, complete sums
///   attention_rs   as gemm_rs; `attend`, if set, makes the input
///   gemm_a2a       input: own shard                     output: all tokens x own columns; weight: all columns
///   attention_a2a  input: all tokens x own share of K; `attend`, if set, makes it
///                                                       output: own shard; weight: all of K
///   mlp_ar         input: all tokens x K, normed        output: all tokens x K, normed, for the next MLP
///
/// Backward pass of y = x w: the input is dy, the output is dx, `saved` is x and `gradient` is dw.
///
///   ag_gemm_backward   input: all tokens x own columns   output: own shard x K, complete sums
///                      saved: own shard x K, or all tokens x K if the gathered x was saved   gradient: K x own columns
///   gemm_rs_backward   input: own shard x columns        output: all tokens x own share of K
///                      saved: all tokens x own share of K                gradient: own share of K x columns
///
/// Under data parallelism every rank has its own tokens, and weights are stored transposed, as torch.nn.Linear keeps
/// them: in `cuts` slices of their columns, each with one shard per rank.
///
///   weight_ag_gemm     input: own tokens x K                output: own tokens x columns
///                      weight: columns x K; initially only the own shards
///   gradient_rs        input: own tokens x columns (dy)     output: own tokens x K (dx)
///                      weight: columns x K     saved: own tokens x K (x)
///                      gradient: own shards of columns x K, complete sums over the tokens of all ranks
struct Stage {
  ProgramBuilder& builder;
  std::string name;          // name of the site; prefix of the buffers that a generator adds
  int axis = 0;              // axis of the ring, or of the inner one of nested rings
  std::optional<int> outer;  // axis of the outer ring of nested rings
  std::int32_t ranks = 1;    // number of ranks on these axes
  std::int32_t cuts = 1;
  std::int32_t grain = 1;  // blocks per cut: 2 if it is two mirrored halves (TokenOrder)
  BufferId input{};
  BufferId weight{};
  BufferId output{};
  BufferId saved{};         // backward: saved by the forward pass
  BufferId gradient{};      // backward: gradient of the weight
  std::vector<OpId> ready;  // ops after which the input exists; empty if it exists from the start or `attend` makes it
  // mlp_ar only; `weight` is the weight of its first GEMM.
  BufferId down{};    // the weight of its second GEMM
  BufferId stream{};  // all tokens x K: the result of the second GEMM is added to it
  // All tokens x K: the stream after that addition; a strategy may fill only the rows that it reads again.
  BufferId added{};
  Function activation = Function::copy;
  // Attention by query slice: adds the attention core, once for every row of the input, with the core's own waits.
  MakeRows attend;

  /// Returns `count` cuts of a buffer from cut `first` on, over all its columns.
  [[nodiscard]] Region rows_of(BufferId buffer, const Index& first, std::int32_t count = 1) const;
  /// Adds a buffer of `count` cuts, as wide as `like` and named after the site.
  [[nodiscard]] BufferId scratch(const std::string& what, std::int32_t count, BufferId like) const;
  [[nodiscard]] BufferId scratch(const std::string& what, std::int32_t count, Extent columns, DType dtype) const;
  /// Adds a GEMM of rows of the input, after the attention core that computes them if there is one.
  OpId multiply(const GemmSpec& spec) const;
  /// Returns the first row, in a buffer of all tokens, of the shard that is `steps` ahead; the first column where
  /// shards are columns.
  [[nodiscard]] Index shard(const RingSteps& steps) const;
  [[nodiscard]] Index shard(std::int32_t steps) const { return shard(RingSteps{.inner = steps}); }
};

/// Returns cut i of every rank's shard, from a buffer with one shard after another.
Operand slice_of_all_shards(const Stage& stage, BufferId buffer, std::int32_t i);

/// Ops after which the output is complete.
using Done = std::vector<OpId>;

}  // namespace commfuse
