// SPDX-License-Identifier: Apache-2.0
// Faults of a run: slow and late ranks, links that are slow or down for a while.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/program/mesh.h"
#include "model/units.h"

namespace commfuse {

/// The link from one rank to another, in this direction.
struct RankPair {
  Rank from = 0;
  Rank to = 0;
  friend bool operator==(const RankPair&, const RankPair&) = default;
};

/// Faults of a run. Collectives are neither slowed nor stopped, because the effect depends on their algorithm.
struct Faults {
  struct SlowRank {
    Rank rank = 0;
    double factor = 1.0;  ///< Factor on the time of the rank's compute ops; several factors multiply.
  };
  struct SlowLink {
    RankPair link;
    double factor = 1.0;  ///< Factor on the time of the link's transfers, latency included; several factors multiply.
  };
  /// A transfer in progress stops, and a transfer that would start waits. Both continue when the link comes up again,
  /// without repeating what was sent: transports resend only unacknowledged data, not the whole message.
  struct LinkDown {
    RankPair link;
    Instant from;
    std::optional<Instant> until;  ///< Empty: the link stays down.
  };
  struct LateStart {
    Rank rank = 0;
    Duration by{};  ///< Delay before the rank's host issues anything; several delays add up.
  };

  std::vector<SlowRank> slow_ranks;
  std::vector<SlowLink> slow_links;
  std::vector<LinkDown> links_down;
  std::vector<LateStart> late_starts;
};

/// Throws ConfigError for an unknown rank, a link from a rank to itself, a factor outside 1 to 1e6, a negative time, or
/// a link that comes up before or when it goes down.
void require_possible(const Faults& faults, Rank ranks);

/// Applies the faults of a run to its ops.
class FaultTable {
 public:
  static constexpr std::int64_t never = std::int64_t{1} << 62;
  /// Longest run: 2^53 ps, which is 2.5 hours. Replay stores times as doubles, which are exact up to this limit; the
  /// limit applies to all runs.
  static constexpr std::int64_t longest_run = std::int64_t{1} << 53;
  /// Replaces every later instant and every longer time, so that sums stay far below 2^63.
  static constexpr std::int64_t too_late = 2 * longest_run;

  /// Prepares a run on `ranks` ranks. Requires `faults` to pass require_possible().
  void start(const Faults& faults, Rank ranks);

  [[nodiscard]] bool none() const { return slow_.empty() && pairs_.empty(); }
  /// Returns the delay of each rank, in picoseconds.
  [[nodiscard]] const std::vector<std::int64_t>& late() const { return late_; }
  [[nodiscard]] Duration of_compute(Rank rank, Duration time) const;
  [[nodiscard]] double slowness(RankPair link) const;
  /// A transfer over an undisturbed link, in picoseconds.
  struct Transfer {
    std::int64_t start = 0;
    std::int64_t time = 0;
  };
  /// Returns when a transfer over the link ends; `never` when the link stays down. A transfer that takes no time, as in
  /// a bound, needs no link.
  [[nodiscard]] std::int64_t end_of(RankPair link, const Transfer& transfer) const;
  [[nodiscard]] bool down(RankPair link, std::int64_t when) const;
  /// Returns whether the link goes down forever.
  [[nodiscard]] bool stays_down(RankPair link) const;
  /// Returns when the link next goes down or up after `when`; `never` when it does not.
  [[nodiscard]] std::int64_t next_change(RankPair link, std::int64_t when) const;

 private:
  /// A period in which a link is down: from `from` until just before `until`.
  struct Outage {
    std::int64_t from = 0;
    std::int64_t until = never;
  };
  struct Pair {
    RankPair link;
    double slowness = 1.0;
    std::vector<Outage> outages;  // in order of time, with gaps between them
  };
  Pair& pair(RankPair link);
  [[nodiscard]] const Pair* find(RankPair link) const;

  std::vector<std::int64_t> late_;  // by rank
  std::vector<double> slow_;        // by rank; empty: no rank is slow
  std::vector<Pair> pairs_;
};

/// Returns `time` times `factor`, at most FaultTable::too_late.
Duration scaled(Duration time, double factor);

}  // namespace commfuse
