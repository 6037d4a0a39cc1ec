// SPDX-License-Identifier: Apache-2.0
// Attention and the site after it. All queries run in one op, or by query slice (CommFuse Alg 4, Fig 9): the attention
// of one slice of queries to all keys precedes the site's GEMM of the same tokens, so that a step hides its transfer
// under core and GEMM. With FuseRS, direct form, a rank's own slice comes last:
//
//            step 0            step 1            step 2            step 3          (4 ranks, seen from rank r)
//   compute  core p[r+1]       core p[r+2]       core p[r+3]       core p[r]   sum
//   comm     idle              p[r+1] ->         p[r+2] ->         p[r+3] ->
//
// With the times e of a slice's core, c of its GEMM, p of a transfer and s of the sum, the makespan is
// e + c + (N-1) max(e + c, p) + s if all cores cost the same.
// Under a causal mask slice j of N has (2j+1)/N^2 of the work. With shards in the order of the sequence, ranks compute
// different slices in one step, so the length of a step differs between ranks; in zig-zag (TokenOrder) all slices cost
// the same.
#include <utility>

#include "model/check.h"
#include "model/strategies/assembly.h"

namespace commfuse {

void Assembly::attend(const std::string& dimension) {
  const DimensionId heads = builder_.dimension(dimension, ranks_);
  const Extent own_heads{heads, 1};
  const Value qkv = made_;
  check(qkv.tensor != no_tensor, "attention follows q, k and v");
  made_.tensor = builder_.attention_tensor("attended", qkv.tensor, {heads, ranks_}, true);
  made_.buffer = builder_.buffer("attended", BufferRole::scratch, tokens_, own_heads, options_.dtype);
  const DimensionId batch = builder_.dimension("batch", 1);
  const DimensionId head = builder_.dimension("head", 1);
  attend_ = core_of({.qkv = qkv.buffer, .attended = made_.buffer, .batch = batch, .head = head});
  done_ = {};
  if (options_.attention == AttentionCut::whole) {
    done_ = {attend_({builder_.whole(made_.buffer)})};
    attend_ = nullptr;
  }
  builder_.unfused(AttentionShape{.queries = tokens_,
                                  .keys = tokens_,
                                  .columns = own_heads,
                                  .qkv = builder_.buffer_of(qkv.buffer).columns,
                                  .batch = batch,
                                  .head = head,
                                  .causal = true,
                                  .dtype = options_.dtype});
}

/// The first op waits for q, k and v; later ops follow on the same lane.
MakeRows Assembly::core_of(const Core& core) {
  return [=, this, keys = order_.in_sequence(builder_, core.qkv), ready = done_](const Operand& rows) mutable {
    AttentionSpec spec{.keys = keys,
                       .out = rows,
                       .batch = core.batch,
                       .head = core.head,
                       .causal = true,
                       .waits = std::exchange(ready, {})};
    for (const Region& region : rows) {
      check(region.buffer == core.attended, "attention makes rows of its own output");
      for (const TokenRun& run : order_.runs(region.row, region.rows)) {
        spec.queries.push_back(builder_.rows_of(core.qkv, run.row, run.rows));
        spec.positions.push_back(run.position);
      }
    }
    return builder_.attention(spec);
  };
}

}  // namespace commfuse
