// SPDX-License-Identifier: Apache-2.0
// One place of overlap inside a program under construction: what a generator is given and what it gives back.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/schedule/builder.h"

namespace commfuse {

/// The axes of a mesh that shards are spread over: one ring, or nested rings with a second axis across nodes. The
/// ranks' shards lie in the order of coordinate, or of extent(inner) * outer coordinate + inner coordinate.
struct ShardAxes {
  int inner = 0;
  std::optional<int> outer;

  [[nodiscard]] std::int32_t ranks(const Mesh& mesh) const;
  /// `scale` times the place of the rank that is `steps` further along the inner ring and `nodes` along the outer one.
  [[nodiscard]] Index place(const Mesh& mesh, std::int32_t scale, std::int32_t steps = 0, std::int32_t nodes = 0) const;
};

/// The buffers of one site. Rows are tokens; `cuts` blocks of them make one rank's shard.
///
///   ag_gemm   input: own shard (cuts x K)          output: all tokens (ranks*cuts) x own columns
///   gemm_rs   input: all tokens x own share of K   output: own shard (cuts x columns), complete sums
struct Stage {
  ProgramBuilder& builder;
  std::string name;          // of the site; prefixes the buffers a generator adds
  int axis = 0;              // of the ring, of the inner one where two are nested
  std::optional<int> outer;  // of the outer ring where two are nested
  std::int32_t ranks = 1;    // on these axes
  std::int32_t cuts = 1;
  BufferId input{};
  BufferId weight{};
  BufferId output{};
  std::vector<OpId> ready;  // ops after which the input is there; empty when it is there from the start

  /// First row, among those of all tokens, of the shard that is `steps` further along the ring and `nodes` further
  /// along the outer one.
  [[nodiscard]] Index shard(std::int32_t steps, std::int32_t nodes = 0) const;
  /// A buffer of `tokens` block rows as wide as `like`, named after the site.
  [[nodiscard]] BufferId scratch(const std::string& what, std::int32_t tokens, BufferId like) const;
};

/// Ops after which the output is complete.
using Done = std::vector<OpId>;

}  // namespace commfuse
