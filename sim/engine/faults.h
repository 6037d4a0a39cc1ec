// SPDX-License-Identifier: Apache-2.0
// What goes wrong in a run: slow and late ranks, links that are slow or down for a while.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/program/mesh.h"
#include "model/units.h"

namespace commfuse {

/// The way from one rank to another, in this direction.
struct RankPair {
  Rank from = 0;
  Rank to = 0;
  friend bool operator==(const RankPair&, const RankPair&) = default;
};

/// Collectives are not slowed and do not stop: what happens to them depends on their algorithm.
struct Faults {
  struct SlowRank {
    Rank rank = 0;
    double factor = 1.0;  ///< Its computes take that many times as long; several factors multiply.
  };
  struct SlowLink {
    RankPair link;
    double factor = 1.0;  ///< Its transfers take that many times as long, latency included; several multiply.
  };
  /// A transfer that is under way stops, one that would start does not, and goes on where it was when the link comes up
  /// again: transports send again what was not acknowledged, not the whole message.
  struct LinkDown {
    RankPair link;
    Instant from;
    std::optional<Instant> until;  ///< Nothing: for ever.
  };
  struct LateStart {
    Rank rank = 0;
    Duration by{};  ///< Its host issues nothing before; several add up.
  };

  std::vector<SlowRank> slow_ranks;
  std::vector<SlowLink> slow_links;
  std::vector<LinkDown> links_down;
  std::vector<LateStart> late_starts;
};

/// Throws ConfigError on a rank that is not there, a link from a rank to itself, a factor below 1 or not finite, a
/// negative delay, or a link that comes up before it goes down.
void require_possible(const Faults& faults, Rank ranks);

/// What the faults of a run do to one op after another.
class FaultTable {
 public:
  static constexpr std::int64_t never = std::int64_t{1} << 62;
  /// Of a run: 2^53 ps, 2.5 hours. Replay keeps its times in doubles, and no run may be longer than one of its own.
  static constexpr std::int64_t longest_run = std::int64_t{1} << 53;
  /// Stands for every later instant and longer time, so that sums stay far below 2^63.
  static constexpr std::int64_t too_late = 2 * longest_run;

  /// Requires possible faults.
  void start(const Faults& faults, Rank ranks);

  [[nodiscard]] bool none() const { return slow_.empty() && pairs_.empty(); }
  /// Picoseconds by rank.
  [[nodiscard]] const std::vector<std::int64_t>& late() const { return late_; }
  [[nodiscard]] Duration of_compute(Rank rank, Duration time) const;
  [[nodiscard]] double slowness(RankPair link) const;
  /// When a transfer over the link that starts at `start` and takes `time` ends; `never` when the link stays down. What
  /// takes no time, as in a bound, needs no link.
  [[nodiscard]] std::int64_t end_of(RankPair link, std::int64_t start, std::int64_t time) const;
  [[nodiscard]] bool down(RankPair link, std::int64_t when) const;
  /// Whether the link goes down for ever.
  [[nodiscard]] bool lost(RankPair link) const;
  /// When the link next goes down or up, after `when`; `never` when it does not.
  [[nodiscard]] std::int64_t next_change(RankPair link, std::int64_t when) const;

 private:
  /// From `from` to before `until`.
  struct Outage {
    std::int64_t from = 0;
    std::int64_t until = never;
  };
  struct Pair {
    RankPair link;
    double slowness = 1.0;
    std::vector<Outage> outages;  // in order of time, apart from each other
  };
  Pair& pair(RankPair link);
  [[nodiscard]] const Pair* find(RankPair link) const;

  std::vector<std::int64_t> late_;  // by rank
  std::vector<double> slow_;        // by rank; empty: none is
  std::vector<Pair> pairs_;
};

/// FaultTable::too_late at the most.
Duration scaled(Duration time, double factor);

}  // namespace commfuse
