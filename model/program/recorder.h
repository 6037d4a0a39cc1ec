// SPDX-License-Identifier: Apache-2.0
// Result of an evaluator or an executor: the makespan and, if the caller asks for them, per-rank summaries or also the
// whole timeline.
#pragma once

#include <vector>

#include "model/program/program.h"
#include "model/units.h"

namespace commfuse {

/// One op on one rank. An exchange starts when its send or its receive starts, whichever is first.
struct OpSpan {
  Rank rank = 0;
  OpId op{};
  Instant start;
  Instant end;
  friend bool operator==(const OpSpan&, const OpSpan&) = default;
};

/// Spans, sorted by rank and then by op.
using Timeline = std::vector<OpSpan>;

struct RankSummary {
  bool has_essential = false;
  Instant first_essential;  // start of the first essential op
  Instant last_essential;   // end of the last essential op
  Instant last_end;
  Duration busy{};     // measure of the union of essential intervals
  Duration covered{};  // measure of the union of essential and local intervals
};

/// Collects the ops of one run. Time zero is the common release of all ranks.
class Recorder {
 public:
  enum class Keep { ends, summaries, timeline };
  /// Keep::ends: keeps only what makespan() needs.
  explicit Recorder(Keep keep = Keep::summaries) : keep_(keep) {}

  /// Forgets everything but keeps the allocated memory.
  void start(std::int32_t ranks);
  void record(Rank rank, OpId op, Purpose purpose, Instant start, Instant end);

  [[nodiscard]] bool keeps_timeline() const { return keep_ == Keep::timeline; }
  [[nodiscard]] std::int32_t ranks() const { return static_cast<std::int32_t>(last_end_.size()); }
  /// Returns the latest end of an op on any rank.
  [[nodiscard]] Instant makespan() const;
  [[nodiscard]] RankSummary summary(Rank rank) const;
  /// Returns the spans, sorted. Empty unless constructed with Keep::timeline.
  [[nodiscard]] Timeline timeline() const;

 private:
  struct Interval {
    Instant start;
    Instant end;
  };
  using Intervals = std::vector<Interval>;
  static void add(Intervals& intervals, Instant start, Instant end);
  static Duration measure(Intervals intervals);

  Keep keep_;
  std::vector<Instant> last_end_;     // by rank
  std::vector<Intervals> essential_;  // by rank
  std::vector<Intervals> local_;      // by rank
  Timeline timeline_;
};

}  // namespace commfuse
