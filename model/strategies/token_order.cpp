// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/token_order.h"

#include "model/check.h"

namespace commfuse {

namespace {

/// Returns the index of the cut that begins at this row of a buffer.
Index halved(Index row) {
  check(row.constant % 2 == 0, "a cut of two blocks begins at an even row");
  row.constant /= 2;
  for (IndexTerm& term : row.terms) {
    check(term.scale % 2 == 0, "a cut of two blocks begins at an even row");
    term.scale /= 2;
  }
  return row;
}

}  // namespace

std::vector<TokenRun> TokenOrder::runs(const Index& row, std::int32_t rows) const {
  if (!zigzag) {
    return {{row, row, rows}};
  }
  check(rows % 2 == 0, "zig-zag rows come in pairs");
  std::vector<TokenRun> runs;
  for (std::int32_t cut = 0; cut < rows / 2; ++cut) {
    const Index front = halved(row) + cut;
    runs.push_back({row + 2 * cut, front, 1});
    runs.push_back({row + (2 * cut + 1), blocks() - 1 - front, 1});
  }
  return runs;
}

Operand TokenOrder::in_sequence(const ProgramBuilder& builder, BufferId all_tokens) const {
  if (!zigzag) {
    return {builder.whole(all_tokens)};
  }
  Operand rows;
  for (std::int32_t block = 0; block < blocks(); ++block) {
    rows.push_back(builder.rows_of(all_tokens, block < cuts ? 2 * block : 2 * (blocks() - 1 - block) + 1));
  }
  return rows;
}

}  // namespace commfuse
