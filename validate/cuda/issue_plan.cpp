// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/issue_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "validate/executor.h"
#include "validate/standing.h"
#include "validate/values/random.h"

namespace commfuse::validate {

namespace {

class IssuePlanner {
 public:
  IssuePlanner(const Program& program, std::span<const std::vector<Command>> commands, const PlanOptions& options)
      : program_(program), commands_(commands), options_(options), random_(options.order) {
    for (const std::vector<Command>& list : commands) {
      Rows rows{.command_of_op = std::vector<std::int32_t>(program.ops.size(), -1), .states = {}};
      rows.states.resize(list.size());
      for (std::size_t i = 0; i < list.size(); ++i) {
        rows.command_of_op[position(list[i].op)] = static_cast<std::int32_t>(i);
      }
      ranks_.push_back(std::move(rows));
    }
    plan_.streams = static_cast<std::int32_t>(commands.size() * program.lanes.size());
    lanes_.resize(static_cast<std::size_t>(plan_.streams));
    for (std::size_t rank = 0; rank < commands.size(); ++rank) {
      for (std::size_t i = 0; i < commands[rank].size(); ++i) {
        const Spot at{static_cast<std::int32_t>(rank), static_cast<std::int32_t>(i)};
        lanes_[stream_of(at)].commands.push_back(at);
      }
    }
  }

  IssuePlan plan() {
    find_awaited();
    while (step()) {
    }
    require_end();
    join_ranks();
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (!lanes_[lane].commands.empty()) {
        plan_.used.push_back(static_cast<std::int32_t>(lane));
      }
    }
    return std::move(plan_);
  }

 private:
  /// Progress in issuing a command.
  struct State {
    bool awaited = false;  // another lane waits for it
    bool posted = false, sent = false, received = false, ended = false;
    std::int32_t posted_event = -1, delivered_event = -1, ended_event = -1;
    std::int32_t delivered_on = -1;  // stream that moved its data
  };
  struct Rows {
    std::vector<std::int32_t> command_of_op;  // index of each op's command
    std::vector<State> states;                // state of each command
  };
  struct Lane {
    std::vector<Spot> commands;
    std::size_t next = 0;
  };

  [[nodiscard]] const Command& command(Spot at) const {
    return commands_[static_cast<std::size_t>(at.place)][static_cast<std::size_t>(at.command)];
  }
  [[nodiscard]] State& state(Spot at) {
    return ranks_[static_cast<std::size_t>(at.place)].states[static_cast<std::size_t>(at.command)];
  }
  [[nodiscard]] std::size_t stream_of(Spot at) const {
    return static_cast<std::size_t>(at.place) * program_.lanes.size() + command(at).lane;
  }
  /// Returns the command of an op on a rank; none if the rank does not have the op.
  [[nodiscard]] Spot spot(Rank rank, OpId op) const {
    const std::int32_t at = ranks_[static_cast<std::size_t>(rank)].command_of_op[position(op)];
    return at < 0 ? Spot{} : Spot{rank, at};
  }
  /// Returns the command that receives what this command sends, or none. In the plan of one rank, this rank stands in
  /// for its peer, if it has the peer's op and that op does not come before this command.
  [[nodiscard]] Spot target_of(Spot at) const {
    const Command& current = command(at);
    if (current.target < 0 || !options_.middle) {
      return current.target < 0 ? Spot{} : spot(current.target, current.target_op);
    }
    const Spot to = spot(0, current.target_op);
    return to.place == 0 && command(to).source_op == current.op && at.command <= to.command ? to : Spot{};
  }
  [[nodiscard]] Spot source_of(Spot at) const {
    const Command& current = command(at);
    if (current.source < 0 || !options_.middle) {
      return current.source < 0 ? Spot{} : spot(current.source, current.source_op);
    }
    const Spot from = spot(0, current.source_op);
    return from.place == 0 && target_of(from) == at ? from : Spot{};
  }
  [[nodiscard]] Protocol protocol_of(Spot at) const {
    return std::get<ExchangeShape>(program_.shapes[command(at).shape]).protocol;
  }

  void find_awaited() {
    for (const Lane& lane : lanes_) {
      for (const Spot at : lane.commands) {
        for (const std::int32_t wait : command(at).waits) {
          const Spot before{at.place, wait};
          state(before).awaited = state(before).awaited || stream_of(before) != stream_of(at);
        }
      }
    }
  }

  /// Advances every lane that can or, under a random order, some of them. Returns false if none can.
  bool step() {
    bool moved = false;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      Lane& lane = lanes_[options_.order == 0 ? i : random_.next() % lanes_.size()];
      if (lane.next < lane.commands.size()) {
        moved = advance(lane, lane.commands[lane.next]) || moved;
      }
    }
    return moved || (options_.order != 0 && advance_any());
  }

  /// Advances the first lane that can: under a random order, step() may have missed it. Returns false if none can.
  bool advance_any() {
    for (Lane& lane : lanes_) {
      if (lane.next < lane.commands.size() && advance(lane, lane.commands[lane.next])) {
        return true;
      }
    }
    return false;
  }

  bool advance(Lane& lane, Spot at) {
    bool moved = false;
    if (!state(at).posted) {
      if (!std::ranges::all_of(command(at).waits, [&](std::int32_t wait) { return state({at.place, wait}).ended; })) {
        return false;
      }
      post(at);
      moved = true;
    }
    switch (command(at).kind) {
      case OpKind::exchange: moved = exchange(at) || moved; break;
      case OpKind::collective: moved = meet(at) || moved; break;
      default: add({.kind = IssueStep::Kind::compute, .at = at}, at); end(at);
    }
    lane.next += state(at).ended ? 1 : 0;
    return moved || state(at).ended;
  }

  void post(Spot at) {
    for (const std::int32_t wait : command(at).waits) {
      const Spot before{at.place, wait};
      if (stream_of(before) != stream_of(at)) {
        await(at, state(before).ended_event);
      }
    }
    disturb(at);
    state(at).posted = true;
    if (command(at).kind == OpKind::exchange || command(at).kind == OpKind::collective) {
      state(at).posted_event = record(at);
    }
  }

  /// In a rendezvous, the sender moves the data once both ends are ready; in a push, the sender moves it immediately;
  /// in a pull, the receiver moves it.
  bool exchange(Spot at) {
    const bool sent = send(at);
    const bool received = receive(at);
    State& current = state(at);
    if ((current.sent || command(at).target < 0) && (current.received || command(at).source < 0)) {
      end(at);
      return true;
    }
    return sent || received;
  }

  bool send(Spot at) {
    if (command(at).target < 0 || state(at).sent) {
      return false;
    }
    const Spot to = target_of(at);
    if (protocol_of(at) == Protocol::rendezvous && to.place >= 0 && !options_.middle) {
      if (!state(to).posted) {
        return false;
      }
      await_other(at, to, state(to).posted_event);
    }
    if (protocol_of(at) != Protocol::pull || to.place < 0) {
      deliver(at, at, to);
    }
    state(at).sent = true;
    return true;
  }

  bool receive(Spot at) {
    if (command(at).source < 0 || state(at).received) {
      return false;
    }
    const Spot from = source_of(at);
    if (protocol_of(at) == Protocol::pull || from.place < 0) {
      if (from.place >= 0 && !state(from).sent) {
        return false;
      }
      if (from.place >= 0) {
        await_other(at, from, state(from).posted_event);
      }
      deliver(at, from, at);
    } else if (state(at).delivered_event < 0 && state(at).delivered_on < 0) {
      return false;
    } else if (state(at).delivered_on != static_cast<std::int32_t>(stream_of(at))) {
      await(at, state(at).delivered_event);
    }
    state(at).received = true;
    return true;
  }

  /// Moves data on the stream of `mover`.
  void deliver(Spot mover, Spot from, Spot to) {
    disturb(mover);
    add({.kind = IssueStep::Kind::transfer, .at = from, .to = to}, mover);
    if (to.place >= 0) {
      state(to).delivered_on = static_cast<std::int32_t>(stream_of(mover));
      if (stream_of(mover) != stream_of(to)) {
        state(to).delivered_event = record(mover);
      }
    }
  }

  [[nodiscard]] std::vector<Spot> members_of(Spot at) const {
    if (options_.middle) {
      return {at};
    }
    std::vector<Spot> members;
    for (const Rank member : command(at).group) {
      members.push_back(spot(member, command(at).op));
    }
    return members;
  }

  /// Puts the work of all members on the stream of the first member.
  bool meet(Spot at) {
    const std::vector<Spot> members = members_of(at);
    if (!std::ranges::all_of(members, [&](Spot member) { return state(member).posted; })) {
      return false;
    }
    State& current = state(at);
    const Spot leader = members.front();
    if (!state(leader).sent) {
      for (const Spot member : members) {
        await_other(leader, member, state(member).posted_event);
      }
      add({.kind = IssueStep::Kind::meet, .at = leader}, leader);
      state(leader).sent = true;
      state(leader).delivered_event = members.size() > 1 ? record(leader) : -1;
    }
    if (!(at == leader)) {
      await(at, state(leader).delivered_event);
    }
    current.received = true;
    end(at);
    return true;
  }

  void end(Spot at) {
    State& current = state(at);
    current.ended = true;
    if (current.awaited) {
      current.ended_event = record(at);
    }
  }

  /// Between iterations a rank joins its own lanes, but does not wait for other ranks.
  void join_ranks() {
    const std::size_t width = program_.lanes.size();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      std::vector<std::pair<std::int32_t, std::int32_t>> ends;  // stream, event
      for (std::size_t lane = rank * width; lane < (rank + 1) * width; ++lane) {
        if (!lanes_[lane].commands.empty()) {
          ends.emplace_back(static_cast<std::int32_t>(lane), record(lanes_[lane].commands.front()));
        }
      }
      for (const auto& [stream, recorded] : ends) {
        for (const auto& [other, event] : ends) {
          if (other != stream) {
            plan_.steps.push_back(
                {.kind = IssueStep::Kind::wait, .stream = stream, .event = event, .at = {}, .to = {}});
          }
        }
      }
    }
  }

  void add(IssueStep step, Spot on) {
    step.stream = static_cast<std::int32_t>(stream_of(on));
    plan_.steps.push_back(step);
  }
  std::int32_t record(Spot on) {
    add({.kind = IssueStep::Kind::record, .event = plan_.events, .at = {}, .to = {}}, on);
    return plan_.events++;
  }
  void await(Spot on, std::int32_t event) {
    add({.kind = IssueStep::Kind::wait, .event = event, .at = {}, .to = {}}, on);
  }
  void await_other(Spot on, Spot other, std::int32_t event) {
    if (stream_of(on) != stream_of(other)) {
      await(on, event);
    }
  }
  void disturb(Spot on) {
    if (options_.order != 0 && random_.next() % 4 == 0) {
      add({.kind = IssueStep::Kind::disturb, .at = {}, .to = {}}, on);
    }
  }

  void require_end() const {
    std::vector<std::string> sentences;
    for (const Lane& lane : lanes_) {
      if (lane.next < lane.commands.size()) {
        const Spot at = lane.commands[lane.next];
        sentences.push_back(fmt::format("rank {} is stuck at {}", options_.middle.value_or(at.place),
                                        op_in_words(program_, command(at).op)));
      }
    }
    if (!sentences.empty()) {
      throw Stuck(fmt::format("no op can be issued: {}", standing_in_words(sentences)));
    }
  }

  const Program& program_;
  std::span<const std::vector<Command>> commands_;
  PlanOptions options_;
  Random random_;
  std::vector<Rows> ranks_;
  std::vector<Lane> lanes_;
  IssuePlan plan_;
};

}  // namespace

IssuePlan issue_plan(const Program& program, std::span<const std::vector<Command>> commands,
                     const PlanOptions& options) {
  return IssuePlanner(program, commands, options).plan();
}

}  // namespace commfuse::validate
