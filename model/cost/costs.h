// SPDX-License-Identifier: Apache-2.0
// What every op of a program costs at one point: the only thing a simulator knows of hardware and shapes.
#pragma once

#include <compare>
#include <vector>

#include "model/program/program.h"
#include "model/units.h"

namespace commfuse {

struct Costs {
  /// By op; of an exchange, what one half takes, priced with the sender's op.
  std::vector<Duration> duration;
  /// By rank and op, where ranks differ (a ring that crosses nodes, queries under a causal mask); else empty. Where
  /// ranks repeat, as nodes do, only the first of them: rank r is row r modulo the rows.
  std::vector<Duration> by_rank;
  /// By op: the same without interference; what runs longer than this is `stretch`. Empty: nothing interferes.
  std::vector<Duration> undisturbed;
  /// By rank and op, where ranks differ in that; else empty.
  std::vector<Duration> undisturbed_by_rank;
  /// By op: what the host lane spends on issuing it.
  std::vector<Duration> issue;
  /// Essential compute of one rank, unsliced and undisturbed.
  Duration compute{};

  /// Of an exchange: what its send half takes.
  [[nodiscard]] Duration of(Rank rank, std::size_t op) const {
    return by_rank.empty() ? duration[op] : by_rank[place(by_rank, rank, op)];
  }
  /// The same without interference.
  [[nodiscard]] Duration undisturbed_of(Rank rank, std::size_t op) const {
    if (!undisturbed_by_rank.empty()) {
      return undisturbed_by_rank[place(undisturbed_by_rank, rank, op)];
    }
    return undisturbed.empty() ? of(rank, op) : undisturbed[op];
  }

 private:
  [[nodiscard]] std::size_t place(const std::vector<Duration>& rows, Rank rank, std::size_t op) const {
    const std::size_t row = static_cast<std::size_t>(rank) * duration.size();
    return (row < rows.size() ? row : row % rows.size()) + op;
  }
};

/// Whether costs are of so many ops and ranks.
bool belongs(const Costs& costs, std::size_t ops, std::size_t ranks);
/// Ranks whose costs differ: rank r costs what rank r modulo their number does.
Rank rows_of(const Costs& costs);
/// Gives every rank a row of its own in by_rank.
void spread_rows(Costs& costs, std::size_t ranks);

/// The same, with communication taking no time (it still meets and is still issued): the `ideal` bound.
Costs with_free_communication(const Program& program, Costs costs);
/// The same, with everything but communication taking no time: the `link` bound.
Costs with_free_compute(const Program& program, Costs costs);
/// How many times as long as priced ops take, by what they are.
struct Slowdown {
  double kernels = 1.0;      ///< All that runs on a GPU and is no communication.
  double collectives = 1.0;  ///< Of all members of the program's mesh.
  double exchanges = 1.0;
  friend auto operator<=>(const Slowdown&, const Slowdown&) = default;
};
Costs slowed_down(const Program& program, Costs costs, const Slowdown& slowdown);
/// The same, with everything but communication taking `factor` times as long on one rank. Requires one of the mesh.
Costs with_slow_rank(const Program& program, Costs costs, Rank rank, double factor);
/// Sum of what the essential ops of one rank are priced at, as they are cut, undisturbed.
Duration essential_time(const Program& program, const Costs& costs, Rank rank);

}  // namespace commfuse
