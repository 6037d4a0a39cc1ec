// SPDX-License-Identifier: Apache-2.0
// The chain of ops that a run's makespan is the sum of: what to make faster, on which rank, if the run is to end
// sooner.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "model/cost/costs.h"
#include "model/program/lower.h"
#include "model/program/recorder.h"

namespace commfuse {

/// What a stretch of the path is spent on: as Purpose, and the host lane that had still to issue the op.
enum class PathKind : std::uint8_t { essential, local, communication, issue };
inline constexpr std::size_t path_kinds = 4;

constexpr std::string_view name_of(PathKind kind) {
  switch (kind) {
    case PathKind::essential: return "essential";
    case PathKind::local: return "local";
    case PathKind::communication: return "communication";
    case PathKind::issue: return "issue";
  }
  return "";
}

/// Of an exchange the sender's op, whose price decides; of a collective the slowest member's. Of kind issue: the op
/// that was issued at `to`, the host having been busy from the release on.
struct PathStep {
  Rank rank = 0;
  OpId op{};
  PathKind kind = PathKind::essential;
  Instant from;
  Instant to;
  friend bool operator==(const PathStep&, const PathStep&) = default;
};

/// In order of time, without gaps from the release to the makespan; nothing that took no time.
using CriticalPath = std::vector<PathStep>;

/// Where the time of a path went. Both sums are the makespan.
struct PathShares {
  std::array<Duration, path_kinds> by_kind{};
  std::vector<Duration> by_rank;
};
PathShares shares_of(const CriticalPath& path, std::int32_t ranks);

/// What a run says of itself: when an op ended on a rank that takes part in it, and what it was priced at there
/// (Costs::of: of an exchange the send half, of a collective that member's share), with that run's jitter.
struct RunTimes {
  std::function<Instant(Rank, OpId)> end;
  std::function<Duration(Rank, OpId)> price;
};

/// Finds critical paths of one program, run after run. Walks back from the last end: an op began when it was posted,
/// that is when what ended last of its waits and the op before it on its lane had ended, or when it was issued; a half
/// of an exchange when its later end was posted (a push when its sender was), a collective when its last member was.
/// What else held an op up (shared rates, faults) counts as that op's time. On ties: an op before the host,
/// waits in their order before the lane, the own end of an exchange before the partner's, its send half before the
/// other, the lower rank.
class PathFinder {
 public:
  /// `lowered` must outlive it. `issue`: Costs::issue.
  PathFinder(const Lowered& lowered, const std::vector<Duration>& issue);

  /// Requires the times of a run of that program. O(length of the path), and the lanes of all ranks.
  [[nodiscard]] CriticalPath find(const RunTimes& times) const;

 private:
  struct Place {
    Rank rank = 0;
    OpId op{};
  };
  /// When an op was posted, and by what end; no op: by the host.
  struct Posted {
    Instant at;
    OpId by{-1};
  };
  /// What was under way until an end, since when, and the post that let it start.
  struct Cause {
    Place running;
    Place posted;
  };

  [[nodiscard]] const Program& program() const { return *lowered_.program; }
  [[nodiscard]] OpId taking_part(Rank rank, std::int32_t op) const;
  [[nodiscard]] Instant issued(Place place) const;
  [[nodiscard]] Posted posted(const RunTimes& times, Place place) const;
  [[nodiscard]] Place later_posted(const RunTimes& times, Place first, Place second) const;
  [[nodiscard]] Cause cause_of(const RunTimes& times, Place place) const;
  [[nodiscard]] Cause cause_of_exchange(const RunTimes& times, Place place, const ExchangeShape& exchange) const;
  [[nodiscard]] Cause cause_of_collective(const RunTimes& times, Place place, const CollectiveShape& collective) const;
  [[nodiscard]] Place last_end(const RunTimes& times) const;

  const Lowered& lowered_;
  std::vector<std::vector<Instant>> issued_;  // by rank and op; one rank for all where all run all ops
  std::vector<std::int32_t> before_on_lane_;  // by op; -1: none
  std::vector<std::int32_t> last_on_lane_;    // by lane; -1: none
};

/// Of one recorded run. Requires its whole timeline and the costs it was played with.
CriticalPath critical_path(const Lowered& lowered, const Costs& costs, const Timeline& timeline);

}  // namespace commfuse
