// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/ulysses.h"

namespace commfuse {

Operand by_head_group(const Stage& stage, BufferId own_tokens, std::int32_t first, std::int32_t count) {
  Operand blocks;
  for (std::int32_t group = 0; group < stage.ranks; ++group) {
    Region block = stage.rows_of(own_tokens, first, count);
    block.columns /= stage.ranks;
    block.column = group * block.columns;
    blocks.push_back(block);
  }
  return blocks;
}

Region head_group(const Stage& stage, BufferId all_heads, const Index& group) {
  Region region = stage.builder.whole(all_heads);
  region.columns /= stage.ranks;
  region.column = group * region.columns;
  return region;
}

Region head_group_rows(const Stage& stage, BufferId weight, const Index& group) {
  Region region = stage.builder.whole(weight);
  region.rows /= stage.ranks;
  region.row = group * region.rows;
  return region;
}

std::vector<OpId> attended(const Stage& stage, const Operand& rows, bool first) {
  if (stage.attend) {
    return {stage.attend(rows)};
  }
  return first ? stage.ready : std::vector<OpId>{};
}

}  // namespace commfuse
