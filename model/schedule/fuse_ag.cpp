// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/fuse_ag.h"

#include <utility>

namespace commfuse {

namespace {

class Products {
 public:
  Products(const Stage& stage, std::int32_t group) : stage_(stage), group_(group), to_come_(stage.ranks - 1) {}

  void own() {
    multiply({stage_.builder.whole(stage_.input)}, {stage_.rows_of(stage_.output, stage_.shard(0), stage_.cuts)},
             stage_.ready);
  }

  /// Multiplies when the group is full.
  void take(Piece piece) {
    if (next_.rows.empty()) {
      next_ = std::move(piece);
    } else {
      stack(next_.rows, piece.rows);
      stack(next_.results, piece.results);
      next_.arrived.insert(next_.arrived.end(), piece.arrived.begin(), piece.arrived.end());
    }
    if (--to_come_ % group_ == 0) {
      multiply(std::move(next_.rows), std::move(next_.results), landed(next_.arrived));
      next_.arrived.clear();
    }
  }

  [[nodiscard]] Done done() const { return {last_}; }

 private:
  void multiply(Operand rows, Operand results, Waits waits) {
    last_ = stage_.builder.gemm({.a = std::move(rows),
                                 .b = {stage_.builder.whole(stage_.weight)},
                                 .out = std::move(results),
                                 .waits = std::move(waits)});
  }

  const Stage& stage_;
  std::int32_t group_;
  std::int32_t to_come_;  // pieces
  Piece next_;
  OpId last_{};
};

}  // namespace

Done multiply_what_comes(const Stage& stage, std::int32_t group, const Bring& bring) {
  Products products(stage, group);
  Pieces next = bring(1);
  products.own();
  for (std::int32_t step = 2; !next.empty(); ++step) {
    Pieces after = bring(step);
    for (Piece& piece : next) {
      products.take(std::move(piece));
    }
    next = std::move(after);
  }
  return products.done();
}

}  // namespace commfuse
