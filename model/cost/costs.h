// SPDX-License-Identifier: Apache-2.0
// Costs of every op of a program at one point. A simulator needs no other information about hardware and shapes.
#pragma once

#include <compare>
#include <vector>

#include "model/program/program.h"
#include "model/units.h"

namespace commfuse {

struct Costs {
  /// Duration of each op; for an exchange, the duration of one half, priced with the sender's op.
  std::vector<Duration> duration;
  /// Duration by rank, then op, if ranks differ (a ring that crosses nodes, queries under a causal mask); else empty.
  /// If ranks repeat, as nodes do, only the first ranks have a row: rank r uses row r modulo the number of rows.
  std::vector<Duration> by_rank;
  /// Duration of each op without interference. The time that an essential op takes beyond it is `stretch`. May be empty
  /// if nothing interferes.
  std::vector<Duration> undisturbed;
  /// Undisturbed duration by rank, then op; may be empty if the undisturbed durations of kernels are equal on all
  /// ranks.
  std::vector<Duration> undisturbed_by_rank;
  /// Time that the host lane needs to issue each op.
  std::vector<Duration> issue;
  /// Essential compute of one rank, unsliced and undisturbed.
  Duration compute{};

  /// Returns the duration of an op on a rank; for an exchange, the duration of its send half.
  [[nodiscard]] Duration of(Rank rank, std::size_t op) const {
    return by_rank.empty() ? duration[op] : by_rank[index_in(by_rank, rank, op)];
  }
  /// Returns the duration without interference.
  [[nodiscard]] Duration undisturbed_of(Rank rank, std::size_t op) const {
    if (!undisturbed_by_rank.empty()) {
      return undisturbed_by_rank[index_in(undisturbed_by_rank, rank, op)];
    }
    return undisturbed.empty() ? of(rank, op) : undisturbed[op];
  }

 private:
  [[nodiscard]] std::size_t index_in(const std::vector<Duration>& rows, Rank rank, std::size_t op) const {
    const std::size_t row = static_cast<std::size_t>(rank) * duration.size();
    return (row < rows.size() ? row : row % rows.size()) + op;
  }
};

/// Returns true if the costs have the program's number of ops, and rows for this number of ranks.
bool belongs(const Costs& costs, const Program& program, std::size_t ranks);
/// Returns the number of ranks with their own row: rank r has the costs of rank r modulo that number.
Rank rows_of(const Costs& costs);
/// Gives every rank its own row in by_rank.
void spread_rows(Costs& costs, std::size_t ranks);

/// Returns the costs with free communication (it still interferes and still has issue costs): the `ideal` bound.
Costs with_free_communication(const Program& program, Costs costs);
/// Returns the costs with free compute (it still has issue costs): the `link` bound.
Costs with_free_compute(const Program& program, Costs costs);
/// Factors on the durations of priced ops, by kind.
struct Slowdown {
  double kernels = 1.0;  ///< Factor for every op except communication.
  double collectives = 1.0;
  double exchanges = 1.0;
  friend auto operator<=>(const Slowdown&, const Slowdown&) = default;
};
Costs slowed_down(const Program& program, Costs costs, const Slowdown& slowdown);
/// Returns the costs with every op except communication taking `factor` times as long on one rank; issue costs stay.
/// Requires `rank` to be on the program's mesh.
Costs with_slow_rank(const Program& program, Costs costs, Rank rank, double factor);
/// Returns the sum of the prices of one rank's essential ops, sliced as in the program and undisturbed.
Duration essential_time(const Program& program, const Costs& costs, Rank rank);

}  // namespace commfuse
