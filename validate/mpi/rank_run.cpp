// SPDX-License-Identifier: Apache-2.0
#include "validate/mpi/rank_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "model/check.h"
#include "validate/reference/collective.h"

namespace commfuse::validate {

RankRun::RankRun(const Program& program, const Sizes& sizes, std::span<const Command> commands,
                 const RunOptions& options, Memory& memory, Crew& crew)
    : program_(program),
      sizes_(sizes),
      commands_(commands),
      options_(options),
      memory_(memory),
      crew_(crew),
      rank_(crew.process()),
      chaos_(options.order, static_cast<std::size_t>(crew.process())),
      command_of_op_(program.ops.size(), -1),
      states_(commands.size()) {
  std::vector<std::vector<std::int32_t>> by_lane(program.lanes.size());
  for (std::size_t i = 0; i < commands.size(); ++i) {
    command_of_op_[position(commands[i].op)] = static_cast<std::int32_t>(i);
    by_lane[commands[i].lane].push_back(static_cast<std::int32_t>(i));
    states_[i].parts.resize(commands[i].group.size());
  }
  for (std::vector<std::int32_t>& lane : by_lane) {
    if (!lane.empty()) {
      lanes_.push_back({.commands = std::move(lane)});
    }
  }
  unfinished_lanes_ = lanes_.size();
}

/// Under chaos, lanes run in any order, and some are skipped.
bool RankRun::step() {
  bool moved = false;
  const std::size_t first = chaos_.draw(lanes_.size());
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[(first + i) % lanes_.size()];
    if (lane.iteration < options_.iterations && chaos_.draw(4) != 1) {
      moved = advance(lane) || moved;
    }
  }
  return moved;
}

bool RankRun::advance(Lane& lane) {
  const std::int32_t at = lane.commands[lane.next];
  bool moved = false;
  if (state(at).posted == lane.iteration) {
    if (!may_post(at, lane.iteration)) {
      return false;
    }
    chaos_.disturb();
    post(at);
    moved = true;
  }
  switch (command(at).kind) {
    case OpKind::exchange: moved = exchange(at, lane.iteration) || moved; break;
    case OpKind::collective: moved = meet(at, lane.iteration) || moved; break;
    default: compute(at);
  }
  if (state(at).ended > lane.iteration && ++lane.next == lane.commands.size()) {
    lane.next = 0;
    unfinished_lanes_ -= ++lane.iteration == options_.iterations ? 1 : 0;
  }
  return moved;
}

bool RankRun::may_post(std::int32_t at, int iteration) const {
  return ended_ >= static_cast<std::int64_t>(commands_.size()) * iteration &&
         std::ranges::all_of(command(at).waits, [&](std::int32_t wait) { return state(wait).ended > iteration; });
}

void RankRun::post(std::int32_t at) {
  const Command& own_command = command(at);
  State& current = state(at);
  ++current.posted;
  current.begun = WallClock::now();
  if (own_command.kind == OpKind::collective) {
    send_parts(at);
  } else if (own_command.kind == OpKind::exchange && own_command.source >= 0 &&
             shape<ExchangeShape>(at).protocol == Protocol::rendezvous) {
    crew_.send(own_command.source, {.kind = Note::Kind::posted, .op = own_command.source_op});
  }
}

void RankRun::compute(std::int32_t at) {
  switch (command(at).kind) {
    case OpKind::gemm: run_gemm(program_, memory_, place(at), options_); break;
    case OpKind::elementwise: run_elementwise(program_, sizes_, memory_, place(at), options_); break;
    default: run_attention(program_, sizes_, memory_, place(at), options_); break;
  }
  end(at);
}

void RankRun::end(std::int32_t at) {
  state(at).over = WallClock::now();
  ++state(at).ended;
  ++ended_;
}

/// In a rendezvous, the sender sends once both ends are ready; in a push, immediately; in a pull, the receiver fetches.
/// A send ends when its data has arrived; the send of a pull ends immediately.
// NOLINTNEXTLINE(bugprone-easily-swappable-parameters): the command is the first parameter of every function here
bool RankRun::exchange(std::int32_t at, int iteration) {
  const Command& own_command = command(at);
  State& current = state(at);
  const Protocol protocol = shape<ExchangeShape>(at).protocol;
  const bool is_pull = protocol == Protocol::pull;
  bool moved = false;
  if (own_command.target >= 0 && current.sent == iteration &&
      (protocol != Protocol::rendezvous || current.awaited > iteration)) {
    ++current.sent;
    moved = true;
    if (is_pull) {
      crew_.send(own_command.target, {.kind = Note::Kind::shown, .op = own_command.target_op});
    } else {
      current.begun = WallClock::now();
      send_data(at);
    }
  }
  if (is_pull && own_command.source >= 0 && current.fetched == iteration && current.shown > iteration) {
    ++current.fetched;
    moved = true;
    crew_.send(own_command.source, {.kind = Note::Kind::fetch, .op = own_command.source_op});
  }
  const bool is_sent =
      own_command.target < 0 || (current.sent > iteration && (is_pull || current.delivered > iteration));
  if (is_sent && (own_command.source < 0 || current.arrived > iteration)) {
    end(at);
    return true;
  }
  return moved;
}

void RankRun::send_data(std::int32_t at) {
  const Command& own_command = command(at);
  PayloadWriter writer;
  if (!own_command.inputs.empty()) {  // a credit carries no data
    writer.put_matrix(shape<ExchangeShape>(at).wire, sent_by(program_, memory_, place(at)));
  }
  crew_.send(own_command.target, {.kind = Note::Kind::data, .op = own_command.target_op, .body = writer.take()});
}

void RankRun::receive_data(std::int32_t at, const Note& note) {
  const Command& own_command = command(at);
  if (!note.body.empty()) {
    const DType wire = shape<ExchangeShape>(at).wire;
    memory_.write(rank_, own_command.outputs[0], PayloadReader(note.body).get_matrix(wire));
  }
  ++state(at).arrived;
  if (shape<ExchangeShape>(at).protocol != Protocol::pull) {
    crew_.send(own_command.source, {.kind = Note::Kind::delivered, .op = own_command.source_op});
  }
}

/// Sends every member the part of this rank's input that the member's result needs. The rank also sends its own part.
void RankRun::send_parts(std::int32_t at) {
  const Command& own_command = command(at);
  const auto& collective = shape<CollectiveShape>(at);
  const std::optional<Matrix<float>> contribution = given_by(program_, memory_, place(at), options_);
  for (std::size_t to = 0; to < own_command.group.size(); ++to) {
    PayloadWriter writer;
    if (contribution) {
      writer.put_matrix(collective.wire, part_for(collective.kind, *contribution, to, own_command.group.size()));
    }
    crew_.send(own_command.group[to], {.kind = Note::Kind::part, .op = own_command.op, .body = writer.take()});
  }
}

/// Computes this member's result once all parts are here, and ends the collective once every member has its result.
// NOLINTNEXTLINE(bugprone-easily-swappable-parameters): the command is the first parameter of every function here
bool RankRun::meet(std::int32_t at, int iteration) {
  State& current = state(at);
  bool moved = false;
  if (current.met == iteration &&
      std::ranges::all_of(current.parts, [](const auto& part) { return part.has_value(); })) {
    current.begun = WallClock::now();
    take_result(at);
    ++current.met;
    for (const Rank member : command(at).group) {
      crew_.send(member, {.kind = Note::Kind::met, .op = command(at).op});
    }
    moved = true;
  }
  if (current.met > iteration && current.members_met >= static_cast<int>(current.parts.size()) * (iteration + 1)) {
    end(at);
    moved = true;
  }
  return moved;
}

void RankRun::take_result(std::int32_t at) {
  const auto& collective = shape<CollectiveShape>(at);
  std::vector<Matrix<float>> parts;
  for (std::optional<Payload>& part : state(at).parts) {
    if (!part->empty()) {
      parts.push_back(PayloadReader(*part).get_matrix(collective.wire));
    }
    part.reset();
  }
  if (!parts.empty()) {
    memory_.write(rank_, command(at).outputs[0], result_of(collective.kind, parts));
  }
}

void RankRun::take(int from, const Note& note) {
  const std::int32_t at = position(note.op) < command_of_op_.size() ? command_of_op_[position(note.op)] : -1;
  if (at < 0) {
    throw std::runtime_error(fmt::format("process {} reported an unknown op; run the same program everywhere", from));
  }
  chaos_.disturb();
  switch (note.kind) {
    case Note::Kind::posted: ++state(at).awaited; return;
    case Note::Kind::data: receive_data(at, note); return;
    case Note::Kind::delivered: ++state(at).delivered; return;
    case Note::Kind::shown: ++state(at).shown; return;
    case Note::Kind::fetch: send_data(at); return;
    case Note::Kind::part: {
      const auto member = std::ranges::find(command(at).group, from);
      if (member == command(at).group.end()) {
        throw std::runtime_error(
            fmt::format("process {} sent data to a collective of other ranks; run the same program everywhere", from));
      }
      state(at).parts[static_cast<std::size_t>(member - command(at).group.begin())] = note.body;
      return;
    }
    case Note::Kind::met: ++state(at).members_met; return;
    default: check(false, "the note is about an op");
  }
}

std::vector<std::string> RankRun::standing() const {
  std::vector<std::string> sentences;
  for (const Lane& lane : lanes_) {
    if (lane.iteration < options_.iterations) {
      sentences.push_back(fmt::format("rank {} {}", rank_, waiting(lane)));
    }
  }
  return sentences;
}

std::string RankRun::waiting(const Lane& lane) const {
  const std::int32_t at = lane.commands[lane.next];
  const Command& own_command = command(at);
  const State& current = state(at);
  const std::string op = op_in_words(program_, own_command.op);
  if (current.posted == lane.iteration) {
    return "waits before " + op;
  }
  if (own_command.kind == OpKind::collective) {
    return fmt::format("waits at {} for its group", op);
  }
  const bool is_pull = shape<ExchangeShape>(at).protocol == Protocol::pull;
  const bool sends = own_command.target >= 0 && !is_pull && current.delivered == lane.iteration;
  return fmt::format("waits at {} for rank {}", op, sends ? own_command.target : own_command.source);
}

Payload RankRun::report() const {
  const auto since_release = [&](WallTime when) { return shortened(when - release_, 1.0); };
  Execution execution;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const Duration end = since_release(states_[i].over);
    execution.makespan = std::max(execution.makespan, end);
    if (options_.traced) {
      execution.timeline.push_back({rank_, commands_[i].op, Instant(since_release(states_[i].begun)), Instant(end)});
    }
  }
  return report_of(execution);
}

Payload report_of(const Execution& execution) {
  PayloadWriter writer;
  writer.put(execution.makespan.count());
  for (const OpSpan& span : execution.timeline) {
    writer.put(span);
  }
  return writer.take();
}

Execution reported_in(std::span<const Payload> reports) {
  Execution combined;
  for (const Payload& report : reports) {
    PayloadReader reader(report);
    combined.makespan = std::max(combined.makespan, Duration(reader.get<std::int64_t>()));
    while (!reader.empty()) {
      combined.timeline.push_back(reader.get<OpSpan>());
    }
  }
  return combined;
}

}  // namespace commfuse::validate
