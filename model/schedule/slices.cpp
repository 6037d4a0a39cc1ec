// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/slices.h"

namespace commfuse {

Operand all_slices(const Stage& stage, BufferId buffer) {
  Operand rows;
  for (std::int32_t i = 0; i < stage.cuts; ++i) {
    const Operand slice = slice_of_all_shards(stage, buffer, i);
    rows.insert(rows.end(), slice.begin(), slice.end());
  }
  return rows;
}

}  // namespace commfuse
