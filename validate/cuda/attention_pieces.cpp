// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/attention_pieces.h"

#include <algorithm>

namespace commfuse::validate {

namespace {

Address moved(const Panel& panel, std::int64_t rows, std::int64_t columns) {
  return panel.at + static_cast<Address>((rows * panel.stride + columns) * bytes_of(panel.dtype));
}

/// Returns the number of rows that belong to the sequence whose first row is `first`.
std::int64_t rows_of_sequence(std::int64_t rows, std::int64_t first, std::int64_t batch) {
  return first < rows ? (rows - first + batch - 1) / batch : 0;
}

class Cut {
 public:
  Cut(const AttentionCall& call, const AttentionCall::Part& part) : call_(call), layout_(call.layout), part_(part) {}

  /// Returns true if all sequences have the same positions in this part.
  [[nodiscard]] bool even() const {
    return part_.first_row % layout_.batch == 0 && part_.queries.rows % layout_.batch == 0 &&
           call_.keys.rows % layout_.batch == 0;
  }

  /// Adds pieces for `sequences` sequences, starting with `sequence`.
  void add(std::int64_t sequence, std::int64_t sequences, std::vector<AttentionPiece>& pieces) const {
    const std::int64_t first = (sequence - part_.first_row % layout_.batch + layout_.batch) % layout_.batch;
    AttentionPiece piece{.shape = shape(), .first_position = (part_.first_row + first) / layout_.batch};
    piece.shape.sequences = sequences;
    piece.shape.queries = rows_of_sequence(part_.queries.rows, first, layout_.batch);
    piece.shape.keys = rows_of_sequence(call_.keys.rows, sequence, layout_.batch);
    if (layout_.causal) {
      piece.shape.keys = std::min(piece.shape.keys, piece.first_position + piece.shape.queries);
    }
    if (piece.shape.queries == 0) {
      return;
    }
    for (std::int64_t block = 0; block < part_.queries.columns / layout_.qkv; ++block) {
      const std::int64_t keys = block * layout_.qkv + layout_.out;
      piece.queries = moved(part_.queries, first, block * layout_.qkv);
      piece.keys = moved(call_.keys, sequence, keys);
      piece.values = moved(call_.keys, sequence, keys + piece.shape.kv_heads * layout_.head);
      piece.out = moved(part_.out, first, block * layout_.out);
      pieces.push_back(piece);
    }
  }

 private:
  [[nodiscard]] AttentionPieceShape shape() const {
    return {.batch = layout_.batch,
            .heads = layout_.out / layout_.head,
            .kv_heads = (layout_.qkv - layout_.out) / 2 / layout_.head,
            .head = layout_.head,
            .query_stride = part_.queries.stride,
            .key_stride = call_.keys.stride,
            .out_stride = part_.out.stride,
            .dtype = part_.queries.dtype,
            .out_dtype = part_.out.dtype,
            .causal = layout_.causal};
  }

  const AttentionCall& call_;
  const AttentionLayout& layout_;
  const AttentionCall::Part& part_;
};

}  // namespace

std::vector<AttentionPiece> pieces_of(const AttentionCall& call, bool joined) {
  std::vector<AttentionPiece> pieces;
  for (const AttentionCall::Part& part : call.parts) {
    const Cut cut(call, part);
    if (joined && cut.even()) {
      cut.add(0, call.layout.batch, pieces);
      continue;
    }
    for (std::int64_t sequence = 0; sequence < call.layout.batch; ++sequence) {
      cut.add(sequence, 1, pieces);
    }
  }
  return pieces;
}

}  // namespace commfuse::validate
