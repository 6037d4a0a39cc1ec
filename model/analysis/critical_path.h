// SPDX-License-Identifier: Apache-2.0
// The chain of ops whose times add up to a run's makespan. It shows which op on which rank must become faster to
// shorten the run.
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

/// Kinds of time on the path: the kinds of Purpose, and the time in which the host lane issued ops.
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

/// One step of the path. For an exchange, it names the sender's op, whose price sets the time; for a collective, the op
/// of the slowest member. A step of kind issue names the op that was issued at `to`; the host was busy with issuing
/// from t0, the start of all ranks, until then.
struct PathStep {
  Rank rank = 0;
  OpId op{};
  PathKind kind = PathKind::essential;
  Instant from;
  Instant to;
  friend bool operator==(const PathStep&, const PathStep&) = default;
};

/// Steps in order of time, from t0 to the makespan, without gaps and without ops that took no time.
using CriticalPath = std::vector<PathStep>;

/// Time on a path, by kind and by rank. Each of the two sums equals the makespan.
struct PathShares {
  std::array<Duration, path_kinds> by_kind{};
  std::vector<Duration> by_rank;
};
PathShares shares_of(const CriticalPath& path, std::int32_t ranks);

/// Times of one run with its jitter: the end of an op on a rank that takes part in it, and the op's price (Costs::of:
/// the price of the send half of an exchange, or of the member's part of a collective).
struct RunTimes {
  std::function<Instant(Rank, OpId)> end;
  std::function<Duration(Rank, OpId)> price;
};

/// Finds the critical path of each run of one program. The finder walks back from the last end. An op began when it was
/// posted: at the latest end among its waits and the previous op on its lane, or when it was issued. A half of an
/// exchange began when the later of its two sides was posted (a push when its sender was posted), and a collective when
/// its last member was posted. Any other delay of an op (shared rates, faults) counts as time of that op. Ties are
/// resolved in this order: an op before the host, waits in their order before the lane, the rank's own side of an
/// exchange before the partner's side, the send half before the receive half, the lower rank before the higher.
class PathFinder {
 public:
  /// `lowered` must outlive the finder. `issue` is Costs::issue.
  PathFinder(const Lowered& lowered, const std::vector<Duration>& issue);

  /// Returns the critical path. Requires `times` of a run of the lowered program. Takes O(length of the path + ranks x
  /// lanes).
  [[nodiscard]] CriticalPath find(const RunTimes& times) const;

 private:
  struct Place {
    Rank rank = 0;
    OpId op{};
  };
  /// Time at which an op was posted, and the op for whose end it waited longest; -1 if it waited longest for the host.
  struct Posted {
    Instant at;
    OpId by{-1};
  };
  /// The op that ran until an end, and the op whose post let it start.
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
  std::vector<std::vector<Instant>> issued_;  // by rank and op; a single row when all ranks run all ops
  std::vector<std::int32_t> before_on_lane_;  // by op; -1 for the first op
  std::vector<std::int32_t> last_on_lane_;    // by lane; -1 when the lane is empty
};

/// Returns the critical path of one recorded run. Requires the run's whole timeline and the costs with which it was
/// simulated.
CriticalPath critical_path(const Lowered& lowered, const Costs& costs, const Timeline& timeline);

}  // namespace commfuse
