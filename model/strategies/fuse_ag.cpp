// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/fuse_ag.h"

#include <utility>

namespace commfuse {

namespace {

class Products {
 public:
  Products(const Stage& stage, std::int32_t group)
      : stage_(stage), group_(group), to_come_(stage.ranks - 1), weight_(stage.builder.whole(stage.weight)) {}

  void multiply_own() {
    multiply({stage_.builder.whole(stage_.input)}, {stage_.rows_of(stage_.output, stage_.shard(0), stage_.cuts)},
             Waits(stage_.ready));
  }

  /// Adds a piece, and multiplies when the group is full. The contents of `piece` may be moved out.
  void take(Piece& piece) {
    const bool full = --to_come_ % group_ == 0;
    if (next_.rows.empty()) {
      if (full) {
        multiply(piece);
        return;
      }
      next_ = std::move(piece);
    } else {
      stack(next_.rows, piece.rows);
      stack(next_.results, piece.results);
      next_.arrived.insert(next_.arrived.end(), piece.arrived.begin(), piece.arrived.end());
    }
    if (full) {
      multiply(next_);
      next_ = {};
    }
  }

  [[nodiscard]] Done done() const { return {last_}; }

 private:
  void multiply(const Piece& piece) { multiply(piece.rows, piece.results, landed(piece.arrived)); }
  void multiply(const Operand& rows, const Operand& results, const Waits& waits) {
    last_ = stage_.builder.product(rows, weight_, results, waits);
  }

  const Stage& stage_;
  std::int32_t group_;
  std::int32_t to_come_;  // pieces that have not arrived yet
  Operand weight_;
  Piece next_;
  OpId last_{};
};

}  // namespace

Done multiply_arrivals(const Stage& stage, std::int32_t group, const Bring& bring) {
  Products products(stage, group);
  Pieces next;
  Pieces after;
  bring(1, next);
  products.multiply_own();
  for (std::int32_t step = 2; !next.empty(); ++step) {
    bring(step, after);
    for (Piece& piece : next) {
      products.take(piece);
    }
    next.clear();
    next.swap(after);
  }
  return products.done();
}

}  // namespace commfuse
