// SPDX-License-Identifier: Apache-2.0
// One place of overlap inside a program under construction: what a generator is given and what it gives back.
#pragma once

#include <string>
#include <vector>

#include "model/schedule/builder.h"

namespace commfuse {

/// The buffers of one site. Rows are tokens; `cuts` blocks of them make one rank's shard.
///
///   ag_gemm   input: own shard (cuts x K)          output: all tokens (ranks*cuts) x own columns
///   gemm_rs   input: all tokens x own share of K   output: own shard (cuts x columns), complete sums
///
/// Backward, of a product y = x w: the input is dy, the output dx, `saved` is x and `gradient` dw.
///
///   ag_gemm_backward   input: all tokens x own columns   output: own shard x K, complete sums
///                      saved: own shard x K, or all tokens where x was saved gathered   gradient: K x own columns
///   gemm_rs_backward   input: own shard x columns        output: all tokens x own share of K
///                      saved: all tokens x own share of K                gradient: own share of K x columns
///
/// Under data parallelism every rank has tokens of its own, and weights lie transposed, as torch.nn.Linear keeps them:
/// in `cuts` slices of their columns, each in one shard a rank.
///
///   weight_ag_gemm     input: own tokens x K                output: own tokens x columns
///                      weight: columns x K, of which the own shards are there
///   gradient_rs        input: own tokens x columns (dy)     output: own tokens x K (dx)
///                      weight: columns x K     saved: own tokens x K (x)
///                      gradient: own shards of columns x K, complete sums over the tokens of all ranks
struct Stage {
  ProgramBuilder& builder;
  std::string name;  // of the site; prefixes the buffers a generator adds
  int axis = 0;
  std::int32_t ranks = 1;
  std::int32_t cuts = 1;
  BufferId input{};
  BufferId weight{};
  BufferId output{};
  BufferId saved{};         // backward: by the forward pass
  BufferId gradient{};      // backward: of the weight
  std::vector<OpId> ready;  // ops after which the input is there; empty when it is there from the start

  /// A buffer of `tokens` block rows as wide as `like`, named after the site.
  [[nodiscard]] BufferId scratch(const std::string& what, std::int32_t tokens, BufferId like) const;
};

/// Ops after which the output is complete.
using Done = std::vector<OpId>;

}  // namespace commfuse
