// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/iteration.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "validate/reference/kernels.h"
#include "validate/standing.h"
#include "validate/values/random.h"

namespace commfuse::validate {

namespace {

/// Chooses among the lanes that can continue. Every lane of every rank has a priority; at random times all priorities
/// are redrawn, so that a lane may stay behind for long.
class Chooser {
 public:
  Chooser(std::uint64_t seed, std::size_t lanes) : random_(seed), priority_(lanes) { draw(); }

  std::size_t choose(std::span<const std::size_t> ready) {
    if (random_.next() % 16 == 0) {
      draw();
    }
    return *std::ranges::max_element(ready, {}, [&](std::size_t lane) { return priority_[lane]; });
  }

 private:
  void draw() {
    std::ranges::generate(priority_, [&] { return random_.next(); });
  }

  Random random_;
  std::vector<std::uint64_t> priority_;
};

/// One run through all command lists: the state of every lane, and the commands that may run next.
class Iteration {
 public:
  Iteration(const Program& program, const Sizes& sizes, std::span<const std::vector<Command>> commands,
            const RunOptions& options, Memory& memory)
      : program_(program), sizes_(sizes), commands_(commands), options_(options), memory_(memory) {
    for (Rank rank = 0; rank < program.mesh.ranks(); ++rank) {
      ranks_.push_back(start_of(commands[static_cast<std::size_t>(rank)]));
    }
    heads_.resize(ranks_.size() * program.lanes.size());
    posted_.resize(heads_.size());
    for (std::size_t lane = 0; lane < heads_.size(); ++lane) {
      find_head(lane);
      posted_[lane] = may_be_posted(lane) ? 1 : 0;
    }
  }

  /// Runs all commands. Lanes are numbered rank * lanes + lane.
  void run() {
    Chooser chooser(options_.order, heads_.size());
    std::vector<std::size_t> ready;
    for (find_ready(ready); !ready.empty(); find_ready(ready)) {
      if (options_.order != 0) {
        advance(chooser.choose(ready));
        continue;
      }
      for (const std::size_t lane : ready) {
        if (can_advance(lane)) {
          advance(lane);
        }
      }
    }
    if (std::ranges::any_of(ranks_, [](const Progress& rank) { return rank.unfinished > 0; })) {
      throw Stuck(fmt::format("no op can run: {}", standing()));
    }
  }

 private:
  struct Progress {
    std::vector<std::vector<std::int32_t>> lanes;  // by lane: its commands in order
    std::vector<std::size_t> next;                 // by lane: the first that has not ended
    std::vector<std::int32_t> command_of_op;       // by op: index of its command
    std::vector<char> ended, sent, received;       // by command
    std::size_t unfinished = 0;
  };

  [[nodiscard]] Progress start_of(std::span<const Command> commands) const {
    const std::size_t lanes = program_.lanes.size();
    const std::vector<char> no(commands.size(), 0);
    Progress start{.lanes = std::vector<std::vector<std::int32_t>>(lanes),
                   .next = std::vector<std::size_t>(lanes, 0),
                   .command_of_op = std::vector<std::int32_t>(program_.ops.size(), -1),
                   .ended = no,
                   .sent = no,
                   .received = no,
                   .unfinished = commands.size()};
    for (std::size_t i = 0; i < commands.size(); ++i) {
      start.lanes[commands[i].lane].push_back(static_cast<std::int32_t>(i));
      start.command_of_op[position(commands[i].op)] = static_cast<std::int32_t>(i);
    }
    return start;
  }

  [[nodiscard]] Progress& progress(Rank rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const Progress& progress(Rank rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] Place place_of(Rank rank, OpId op) const {
    const std::int32_t at = progress(rank).command_of_op[position(op)];
    return {rank, at < 0 ? nullptr : &commands_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(at)]};
  }
  [[nodiscard]] std::size_t index_of(const Place& at) const {
    return static_cast<std::size_t>(at.command - commands_[static_cast<std::size_t>(at.rank)].data());
  }

  [[nodiscard]] std::size_t lane_of(const Place& at) const {
    return static_cast<std::size_t>(at.rank) * program_.lanes.size() + at.command->lane;
  }

  void find_head(std::size_t lane) {
    const std::size_t rank = lane / program_.lanes.size();
    const std::vector<std::int32_t>& queue = ranks_[rank].lanes[lane % program_.lanes.size()];
    const std::size_t next = ranks_[rank].next[lane % program_.lanes.size()];
    heads_[lane] = next == queue.size()
                       ? Place{}
                       : Place{static_cast<Rank>(rank), &commands_[rank][static_cast<std::size_t>(queue[next])]};
  }

  /// Returns whether the dependencies of the lane's head have ended.
  [[nodiscard]] bool may_be_posted(std::size_t lane) const {
    const Place& head = heads_[lane];
    if (head.command == nullptr) {
      return false;
    }
    const std::vector<char>& ended = progress(head.rank).ended;
    return std::ranges::all_of(head.command->waits,
                               [&](std::int32_t wait) { return ended[static_cast<std::size_t>(wait)] != 0; });
  }

  /// Returns whether the command's lane has reached it and all its dependencies have ended.
  [[nodiscard]] bool posted(const Place& at) const {
    if (at.command == nullptr) {
      return false;
    }
    const std::size_t lane = lane_of(at);
    return posted_[lane] != 0 && heads_[lane].command == at.command;
  }

  [[nodiscard]] bool can_advance(std::size_t lane) const {
    if (posted_[lane] == 0) {
      return false;
    }
    const Place& at = heads_[lane];
    if (at.command->kind == OpKind::exchange) {
      return can_send(at) || arrived(at);
    }
    return std::ranges::all_of(at.command->group,
                               [&](Rank member) { return posted(place_of(member, at.command->op)); });
  }

  [[nodiscard]] Protocol protocol_of(const Place& at) const {
    return std::get<ExchangeShape>(program_.shapes[at.command->shape]).protocol;
  }

  /// Returns whether the exchange can move or show data. A push does not need its receiver. The sender of a pull only
  /// shows its data; the receiver moves the data.
  [[nodiscard]] bool can_send(const Place& at) const {
    const Progress& own_progress = progress(at.rank);
    switch (protocol_of(at)) {
      case Protocol::rendezvous:
      case Protocol::push:
        return at.command->target >= 0 && own_progress.sent[index_of(at)] == 0 &&
               (protocol_of(at) == Protocol::push || posted(place_of(at.command->target, at.command->target_op)));
      case Protocol::pull: return (at.command->target >= 0 && own_progress.sent[index_of(at)] == 0) || can_pull(at);
    }
    return false;
  }
  [[nodiscard]] bool can_pull(const Place& at) const {
    if (at.command->source < 0 || progress(at.rank).received[index_of(at)] != 0) {
      return false;
    }
    const Place from = place_of(at.command->source, at.command->source_op);
    return progress(from.rank).sent[index_of(from)] != 0;
  }

  void find_ready(std::vector<std::size_t>& ready) const {
    ready.clear();
    for (std::size_t lane = 0; lane < heads_.size(); ++lane) {
      if (can_advance(lane)) {
        ready.push_back(lane);
      }
    }
  }

  void advance(std::size_t lane) {
    const Place at = heads_[lane];
    switch (at.command->kind) {
      case OpKind::gemm: run_gemm(program_, memory_, at, options_); break;
      case OpKind::elementwise: run_elementwise(program_, sizes_, memory_, at, options_); break;
      case OpKind::exchange: exchange(at); return;
      case OpKind::collective: meet(at); return;
      case OpKind::attention: run_attention(program_, sizes_, memory_, at, options_); break;
    }
    end(at);
  }

  void exchange(const Place& at) {
    if (!can_send(at)) {
      end(at);  // both halves are complete
    } else if (protocol_of(at) != Protocol::pull) {
      send(at);
    } else if (can_pull(at)) {
      move(place_of(at.command->source, at.command->source_op), at);
      end_with_both_halves(at);
    } else {
      progress(at.rank).sent[index_of(at)] = 1;
      end_with_both_halves(at);
    }
  }

  void send(const Place& from) {
    const Place to = place_of(from.command->target, from.command->target_op);
    move(from, to);
    progress(from.rank).sent[index_of(from)] = 1;
    end_with_both_halves(from);
    if (to.rank != from.rank || to.command != from.command) {
      end_with_both_halves(to);
    }
  }

  void move(const Place& from, const Place& to) {
    if (!from.command->inputs.empty()) {  // a credit carries no data
      run_transfer(program_, memory_, from, to);
    }
    progress(to.rank).received[index_of(to)] = 1;
  }

  /// Ends the exchange if both its halves are complete. Pushed data may arrive before the receiver is posted.
  void end_with_both_halves(const Place& at) {
    if (posted(at) && arrived(at)) {
      end(at);
    }
  }

  [[nodiscard]] bool arrived(const Place& at) const {
    const Progress& own_progress = progress(at.rank);
    const bool sent = at.command->target < 0 || own_progress.sent[index_of(at)] != 0;
    const bool received = at.command->source < 0 || own_progress.received[index_of(at)] != 0;
    return sent && received;
  }

  void meet(const Place& at) {
    std::vector<Place> members;
    for (const Rank member : at.command->group) {
      members.push_back(place_of(member, at.command->op));
    }
    run_collective(program_, memory_, members, options_);
    for (const Place& member : members) {
      end(member);
    }
  }

  void end(const Place& at) {
    Progress& own_progress = progress(at.rank);
    own_progress.ended[index_of(at)] = 1;
    ++own_progress.next[at.command->lane];
    --own_progress.unfinished;
    find_head(lane_of(at));
    const std::size_t first = static_cast<std::size_t>(at.rank) * program_.lanes.size();
    for (std::size_t lane = first; lane < first + program_.lanes.size(); ++lane) {
      posted_[lane] = posted_[lane] != 0 && lane != lane_of(at) ? 1 : may_be_posted(lane) ? 1 : 0;
    }
  }

  /// Describes the positions of the lanes that have not finished.
  [[nodiscard]] std::string standing() const {
    std::vector<std::string> sentences;
    for (const Place& at : heads_) {
      if (at.command != nullptr) {
        sentences.push_back(fmt::format("rank {} is stuck at {}", at.rank, op_in_words(program_, at.command->op)));
      }
    }
    return standing_in_words(sentences);
  }

  const Program& program_;
  const Sizes& sizes_;
  std::span<const std::vector<Command>> commands_;
  const RunOptions& options_;
  Memory& memory_;
  std::vector<Progress> ranks_;
  std::vector<Place> heads_;  // by lane of a rank: the command at the front; no command at the lane's end
  std::vector<char> posted_;  // by lane of a rank: whether all dependencies of its head have ended
};

}  // namespace

void run_iteration(const Program& program, const Sizes& sizes, std::span<const std::vector<Command>> commands,
                   const RunOptions& options, Memory& memory) {
  Iteration(program, sizes, commands, options, memory).run();
}

}  // namespace commfuse::validate
