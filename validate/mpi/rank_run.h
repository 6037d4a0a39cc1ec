// SPDX-License-Identifier: Apache-2.0
// One rank's lanes in one run, advanced by repeated calls of step(). Each lane has a current command, and proceeds when
// the command's dependencies have arrived. No call blocks.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "validate/chaos.h"
#include "validate/cpu/wall_clock.h"
#include "validate/mpi/crew.h"
#include "validate/reference/kernels.h"
#include "validate/reference/memory.h"

namespace commfuse::validate {

class RankRun final : public Activity {
 public:
  /// Rank r is process r of the crew. All arguments must outlive the run.
  RankRun(const Program& program, const Sizes& sizes, std::span<const Command> commands, const RunOptions& options,
          Memory& memory, Crew& crew);

  void begin() override { release_ = WallClock::now(); }
  bool step() override;
  void take(int from, const Note& note) override;
  [[nodiscard]] bool done() const override { return unfinished_lanes_ == 0; }
  /// Returns the report in the form that reported_in() reads.
  [[nodiscard]] Payload report() const override;
  [[nodiscard]] std::vector<std::string> standing() const override;

 private:
  /// Number of iterations in which each event of a command has occurred, and times of the last iteration.
  struct State {
    int posted = 0;       // posted on this rank
    int awaited = 0;      // the receiver of its data is ready
    int sent = 0;         // it sent its data, or for a pull announced that the data is ready
    int delivered = 0;    // the receiver has its data
    int shown = 0;        // the data that it pulls is ready
    int fetched = 0;      // it requested the data that it pulls
    int arrived = 0;      // it received its data
    int met = 0;          // collective: this member has its result
    int members_met = 0;  // collective: members, with this one, that have their result, summed over iterations
    int ended = 0;
    std::vector<std::optional<Payload>> parts;  // by member
    WallTime begun{};
    WallTime over{};
  };
  struct Lane {
    std::vector<std::int32_t> commands;
    std::size_t next = 0;
    int iteration = 0;
  };

  bool advance(Lane& lane);
  [[nodiscard]] bool may_post(std::int32_t at, int iteration) const;
  void post(std::int32_t at);
  void compute(std::int32_t at);
  bool exchange(std::int32_t at, int iteration);
  bool meet(std::int32_t at, int iteration);
  void end(std::int32_t at);

  void send_data(std::int32_t at);
  void send_parts(std::int32_t at);
  void receive_data(std::int32_t at, const Note& note);
  void take_result(std::int32_t at);

  [[nodiscard]] const Command& command(std::int32_t at) const { return commands_[static_cast<std::size_t>(at)]; }
  [[nodiscard]] State& state(std::int32_t at) { return states_[static_cast<std::size_t>(at)]; }
  [[nodiscard]] const State& state(std::int32_t at) const { return states_[static_cast<std::size_t>(at)]; }
  [[nodiscard]] Place place(std::int32_t at) const { return {rank_, &command(at)}; }
  template <class Kind>
  [[nodiscard]] const Kind& shape(std::int32_t at) const {
    return std::get<Kind>(program_.shapes[command(at).shape]);
  }
  [[nodiscard]] std::string waiting(const Lane& lane) const;

  const Program& program_;
  const Sizes& sizes_;
  std::span<const Command> commands_;
  const RunOptions& options_;
  Memory& memory_;
  Crew& crew_;
  Rank rank_;
  Chaos chaos_;

  std::vector<std::int32_t> command_of_op_;  // by op: its command
  std::vector<State> states_;                // by command
  std::vector<Lane> lanes_;                  // lanes that have commands
  std::size_t unfinished_lanes_ = 0;         // number of lanes that have not finished
  std::int64_t ended_ = 0;                   // number of ops that have ended, over all iterations
  WallTime release_{};
};

/// Returns the report of a rank in the form that reported_in() reads.
Payload report_of(const Execution& execution);
/// Combines the reports of all ranks: the largest makespan and all spans.
Execution reported_in(std::span<const Payload> reports);

}  // namespace commfuse::validate
