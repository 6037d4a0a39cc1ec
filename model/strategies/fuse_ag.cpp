// SPDX-License-Identifier: Apache-2.0
#include "model/strategies/fuse_ag.h"

#include <utility>

namespace commfuse {

namespace {

class ArrivalGemms {
 public:
  ArrivalGemms(const Stage& stage, std::int32_t group)
      : stage_(stage), group_(group), expected_(stage.ranks - 1), weight_(stage.builder.whole(stage.weight)) {}

  void multiply_own() {
    multiply({stage_.builder.whole(stage_.input)}, {stage_.rows_of(stage_.output, stage_.shard(0), stage_.cuts)},
             Waits(stage_.ready));
  }

  /// Adds a piece to the pending group and multiplies the group when it is full. May move from `piece`.
  void add(Piece& piece) {
    const bool full = --expected_ % group_ == 0;
    if (pending_.rows.empty()) {
      if (full) {
        multiply(piece);
        return;
      }
      pending_ = std::move(piece);
    } else {
      stack(pending_.rows, piece.rows);
      stack(pending_.results, piece.results);
      pending_.arrived.insert(pending_.arrived.end(), piece.arrived.begin(), piece.arrived.end());
    }
    if (full) {
      multiply(pending_);
      pending_ = {};
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
  std::int32_t expected_;  // number of shards that have not arrived yet; matters only if group_ > 1
  Operand weight_;
  Piece pending_;
  OpId last_{};
};

}  // namespace

Done multiply_arrivals(const Stage& stage, std::int32_t group, const Bring& bring) {
  ArrivalGemms gemms(stage, group);
  Pieces next;
  Pieces after;
  bring(1, next);
  gemms.multiply_own();
  for (std::int32_t step = 2; !next.empty(); ++step) {
    bring(step, after);
    for (Piece& piece : next) {
      gemms.add(piece);
    }
    next.clear();
    next.swap(after);
  }
  return gemms.done();
}

}  // namespace commfuse
