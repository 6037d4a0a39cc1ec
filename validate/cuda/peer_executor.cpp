// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/peer_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "model/check.h"
#include "validate/cuda/scratch_passes.h"
#include "validate/reference/collective.h"
#include "validate/reference/interpreter.h"

namespace commfuse::validate {

namespace {

/// Adds a move inside this rank's memory unless it would change nothing. A narrower wire rounds even rows that are
/// already in place, as in an in-place all-gather.
template <class Parts>
void put_move(const Stack& from, const Stack& to, DType wire, Parts& parts) {
  if (MoveCall call = local_move(from, to, wire); !call.parts.empty()) {
    parts.emplace_back(Call(std::move(call)));
  }
}

/// The rows of a sum that one member computes.
struct RowRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
RowRange share_of(std::int64_t rows, std::size_t member, std::size_t members) {
  const auto cut = [&](std::size_t at) {
    return rows * static_cast<std::int64_t>(at) / static_cast<std::int64_t>(members);
  };
  return {cut(member), cut(member + 1) - cut(member)};
}

/// Returns one span for each op of each rank, from its first copy or kernel to its last. Some copies were traced by the
/// rank's own process, others by its peers.
Timeline merged(const Timeline& spans) {
  std::map<OpHere, OpSpan> by_op;
  for (const OpSpan& span : spans) {
    const auto [known, is_new] = by_op.emplace(OpHere(span.rank, span.op), span);
    if (!is_new) {
      known->second.start = std::min(known->second.start, span.start);
      known->second.end = std::max(known->second.end, span.end);
    }
  }
  Timeline timeline;
  for (const auto& [op, span] : by_op) {
    timeline.push_back(span);
  }
  return timeline;
}

}  // namespace

PeerRoom::PeerRoom(const Program& program, const Sizes& sizes)
    : flags_(program), bytes_(Layout(program, sizes, 0).per_rank().count) {
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const OpId id{static_cast<std::int32_t>(i)};
    if (op.kind == OpKind::exchange) {
      const auto& shape = std::get<ExchangeShape>(program.shapes[op.shape]);
      if (packs(program, op)) {
        packed_[id] = take(shape.rows, shape.columns, shape.wire, sizes);
      }
      if (unpacks(program, op)) {
        arrived_[id] = take(shape.rows, shape.columns, shape.wire, sizes);
      }
    } else if (op.kind == OpKind::collective) {
      const auto& shape = std::get<CollectiveShape>(program.shapes[op.shape]);
      if (packs(program, op)) {
        packed_[id] = take(shape.rows, shape.columns, shape.wire, sizes);
      }
      if (shape.kind == CollectiveKind::all_reduce) {
        sums_[id] = take(shape.rows, shape.columns, DType::fp32, sizes);  // large enough for any dtype
      }
    }
  }
}

Address PeerRoom::take(Extent rows, Extent columns, DType dtype, const Sizes& sizes) {
  const auto at = static_cast<Address>(bytes_);
  const std::int64_t bytes = sizes.elements(rows) * sizes.elements(columns) * bytes_of(dtype);
  bytes_ += rounded_up_to_alignment(bytes);
  return at;
}

PeerExecutor::Built PeerExecutor::built(Lowered lowered, Sizes sizes, PeerWindows& windows) {
  require_storable(*lowered.program);
  const std::vector<std::string> findings = peer_findings(*lowered.program);
  if (!findings.empty()) {
    throw std::runtime_error(
        fmt::format("{} cannot run on cuda-peer: {}; run it with nccl", lowered.program->name, findings.front()));
  }
  auto room = std::make_unique<PeerRoom>(*lowered.program, sizes);
  auto lease = std::make_unique<PeerLease>(windows, room->size());
  return {std::move(lowered), std::move(sizes), std::move(room), std::move(lease)};
}

PeerExecutor::PeerExecutor(Lowered lowered, Sizes sizes, Device& device, PeerWindows& windows, RankOptions options)
    : PeerExecutor(built(std::move(lowered), std::move(sizes), windows), device, std::move(options)) {}

PeerExecutor::PeerExecutor(Built built, Device& device, RankOptions options)
    : GpuExecutor(std::move(built.lowered), std::move(built.sizes), device, {built.lease->windows().rank()},
                  {.mode = options.mode,
                   .random_data = options.random_data,
                   .cold_level2 = options.cold_level2,
                   .patience = options.patience,
                   .memory = built.lease->window().data(built.lease->windows().rank())}),
      room_(std::move(built.room)),
      lease_(std::move(built.lease)),
      options_(std::move(options)),
      rank_(lease_->windows().rank()) {
  check(program().mesh.ranks() == lease_->windows().ranks(), "every process has a rank");
  check(options_.mode != LaunchMode::graph, "flags count iterations, and the values of a graph are fixed");
  for (Rank rank = 0; rank < program().mesh.ranks(); ++rank) {
    layouts_.emplace_back(program(), this->sizes(), lease_->window().data(rank));
    commands_.push_back(commands_of(this->lowered(), rank));
    places_.emplace_back();
    for (std::size_t i = 0; i < commands_.back().size(); ++i) {
      places_.back()[commands_.back()[i].op] = i;
    }
  }
  plan_ = peer_plan(program(), room_->flags(), rank_, commands_[static_cast<std::size_t>(rank_)]);
}

StreamId PeerExecutor::stream(std::int32_t lane) {
  const LaneKind kind = program().lanes[static_cast<std::size_t>(lane)].kind;
  return device().stream(static_cast<std::size_t>(lane), kind == LaneKind::comm || kind == LaneKind::copy);
}

const Command& PeerExecutor::command_of(Rank rank, OpId op) const {
  const auto r = static_cast<std::size_t>(rank);
  return commands_[r][places_[r].at(op)];
}

Stack PeerExecutor::input(Rank rank, const Command& command) const {
  return joined(layouts_[static_cast<std::size_t>(rank)].stack(0, command.inputs[0]));
}

Stack PeerExecutor::output(Rank rank, const Command& command) const {
  return joined(layouts_[static_cast<std::size_t>(rank)].stack(0, command.outputs[0]));
}

Panel PeerExecutor::in_room(Rank rank, Address at, std::int64_t rows, std::int64_t columns, DType dtype) const {
  return {lease_->window().data(rank) + at, rows, columns, columns, dtype};
}

Stack PeerExecutor::contribution(Rank rank, const Command& command) const {
  const Stack operand = input(rank, command);
  if (!packs(program(), op_of(command))) {
    return operand;
  }
  return {in_room(rank, room_->packed(command.op), rows_of(operand), operand.front().columns,
                  wire_of(program(), op_of(command)))};
}

Stack PeerExecutor::landing(Rank rank, const Command& command) const {
  const Stack operand = output(rank, command);
  if (!unpacks(program(), op_of(command))) {
    return operand;
  }
  return {in_room(rank, room_->arrived(command.op), rows_of(operand), operand.front().columns,
                  wire_of(program(), op_of(command)))};
}

namespace {

template <class Copy, class Parts>
void put_copies(const Stack& from, const Stack& to, Parts& parts) {
  for (const std::vector<Panel>& piece : rows_in_step(std::array{from, to})) {
    if (!(piece[0] == piece[1])) {
      parts.emplace_back(Copy{piece[0], piece[1]});
    }
  }
}

}  // namespace

void PeerExecutor::take(const Stack& from, const Stack& to, DType wire, Scratch& scratch, Parts& parts) const {
  if (to.front().dtype == wire) {
    put_copies<Copy>(from, to, parts);
    return;
  }
  const Stack landed{scratch.like(rows_of(from), from.front().columns, wire)};
  put_copies<Copy>(from, landed, parts);
  put_move(landed, to, wire, parts);
}

PeerExecutor::Parts PeerExecutor::parts_of(const PeerStep& step, const Calls& calls, Scratch& scratch) const {
  const Command& command = commands_[static_cast<std::size_t>(rank_)][static_cast<std::size_t>(step.command)];
  Parts parts;
  switch (step.kind) {
    case PeerStep::Kind::compute:
      for (Call& call : calls.compute({0, &command}, scratch)) {
        parts.emplace_back(std::move(call));
      }
      break;
    case PeerStep::Kind::pack:
      put_move(input(rank_, command), contribution(rank_, command), wire_of(program(), op_of(command)), parts);
      break;
    case PeerStep::Kind::send:
      put_copies<Copy>(contribution(rank_, command), landing(step.peer, command_of(step.peer, command.target_op)),
                       parts);
      break;
    case PeerStep::Kind::fetch:
      put_copies<Copy>(contribution(step.peer, command_of(step.peer, command.source_op)), landing(rank_, command),
                       parts);
      break;
    case PeerStep::Kind::unpack:
      put_move(landing(rank_, command), output(rank_, command), wire_of(program(), op_of(command)), parts);
      break;
    default: break;
  }
  return parts;
}

PeerExecutor::Meeting PeerExecutor::meeting(const Command& command, const RunOptions& options, Scratch& scratch) const {
  scratch.reset();
  const CollectiveKind kind = std::get<CollectiveShape>(program().shapes[command.shape]).kind;
  if (!adds(kind)) {
    return gathering(command, scratch);
  }
  return options.functions == Functions::none ? Meeting{} : summing(command, options, scratch);
}

/// Each member first copies from the member after it, so that the members do not all copy from the same one.
PeerExecutor::Meeting PeerExecutor::gathering(const Command& command, Scratch& scratch) const {
  const auto& shape = std::get<CollectiveShape>(program().shapes[command.shape]);
  const std::size_t members = command.group.size();
  const auto own_index = static_cast<std::size_t>(std::ranges::find(command.group, rank_) - command.group.begin());
  const Stack to = output(rank_, command);
  Meeting meeting;
  for (std::size_t step = 1; step <= members; ++step) {
    const std::size_t from = (own_index + step) % members;
    const Rank peer = command.group[from];
    const Command& theirs = command_of(peer, command.op);
    const auto part = [&](const Stack& whole) {
      return shape.kind == CollectiveKind::all_to_all ? part_of(whole, own_index, members) : whole;
    };
    if (from == own_index) {
      put_move(part(input(rank_, command)), part_of(to, from, members), shape.wire, meeting.take);
    } else {
      take(part(contribution(peer, theirs)), part_of(to, from, members), shape.wire, scratch, meeting.take);
    }
  }
  return meeting;
}

/// Sums in the order of the members, as the interpreter does. All inputs are read before any output is written.
PeerExecutor::Meeting PeerExecutor::summing(const Command& command, const RunOptions& options, Scratch& scratch) const {
  const auto& shape = std::get<CollectiveShape>(program().shapes[command.shape]);
  const bool scatters = shape.kind == CollectiveKind::reduce_scatter;
  const std::size_t members = command.group.size();
  const auto own_index = static_cast<std::size_t>(std::ranges::find(command.group, rank_) - command.group.begin());
  const Stack to = output(rank_, command);
  const std::int64_t rows = rows_of(to);
  const std::int64_t columns = to.front().columns;
  const RowRange share =
      scatters ? RowRange{static_cast<std::int64_t>(own_index) * rows, rows} : share_of(rows, own_index, members);
  // Returns the memory for the sums of all rows on a member.
  const auto sums_on = [&](Rank rank) {
    return Stack{in_room(rank, room_->sums(command.op), rows, columns, to.front().dtype)};
  };
  Meeting meeting;
  if (share.count > 0) {
    const Stack sum = scatters ? Stack{scratch.like(rows, columns, to.front().dtype)}
                               : slice_of(sums_on(rank_), share.first, share.count);
    std::vector<Stack> stacks{sum};
    stacks.resize(1 + members);
    for (std::size_t step = 0; step < members; ++step) {
      const std::size_t from = (own_index + step) % members;
      const Rank peer = command.group[from];
      const Stack theirs = slice_of(contribution(peer, command_of(peer, command.op)), share.first, share.count);
      Stack& term = stacks[1 + from];
      term = from == own_index ? theirs : Stack{scratch.like(share.count, columns, shape.wire)};
      if (from != own_index) {
        put_copies<Copy>(theirs, term, meeting.take);
      }
    }
    for (const std::vector<Panel>& piece : rows_in_step(stacks)) {
      meeting.add.emplace_back(Call(FunctionCall{.function = Function::add,
                                                 .functions = options.functions,
                                                 .block = columns,
                                                 .inputs = {piece.begin() + 1, piece.end()},
                                                 .out = piece.front(),
                                                 .wire = shape.wire}));
    }
    if (scatters) {
      put_move(sum, to, to.front().dtype, meeting.place);
    }
  }
  for (std::size_t step = 0; step < members && !scatters; ++step) {
    const std::size_t from = (own_index + step) % members;
    const RowRange theirs = share_of(rows, from, members);
    if (theirs.count > 0) {
      const Stack sums = slice_of(sums_on(command.group[from]), theirs.first, theirs.count);
      put_copies<Copy>(sums, slice_of(to, theirs.first, theirs.count), meeting.place);
    }
  }
  return meeting;
}

void PeerExecutor::make_work(const RunOptions& options, std::span<Scratch> scratch) {
  const Calls calls(program(), sizes(), memory().layout(),
                    {.functions = options.functions,
                     .sum_order = options.sum_order,
                     .multiprocessors = options_.multiprocessors,
                     .attention = options_.attention});
  work_.clear();
  Meeting meeting;  // the meeting of the current collective
  for (const PeerStep& step : plan_.steps) {
    if (step.command < 0) {
      work_.emplace_back();
      continue;
    }
    Scratch& lane_scratch = scratch[static_cast<std::size_t>(step.lane)];
    switch (step.kind) {
      case PeerStep::Kind::take:
        meeting = this->meeting(commands_[static_cast<std::size_t>(rank_)][static_cast<std::size_t>(step.command)],
                                options, lane_scratch);
        work_.push_back(std::move(meeting.take));
        break;
      case PeerStep::Kind::add: work_.push_back(std::move(meeting.add)); break;
      case PeerStep::Kind::place: work_.push_back(std::move(meeting.place)); break;
      default: work_.push_back(parts_of(step, calls, lane_scratch));
    }
  }
}

void PeerExecutor::get_ready(const RunOptions& options) {
  if (made_for_ && made_for_->functions == options.functions && made_for_->sum_order == options.sum_order) {
    return;
  }
  made_for_ = options;
  make_with_scratch(driver(), program().lanes.size(), scratch_,
                    [&](std::span<Scratch> scratch) { make_work(options, scratch); });
  warm_up();
}

void PeerExecutor::issue_part(StreamId on, const Part& part) {
  if (const Copy* copy = std::get_if<Copy>(&part)) {
    lease_->windows().peers().copy(on, copy->from, copy->to);
  } else {
    issue(driver(), on, std::get<Call>(part));
  }
}

void PeerExecutor::issue_step(std::size_t step_index, FlagValue iteration) {
  const PeerStep& step = plan_.steps[step_index];
  const StreamId on = stream(step.lane);
  Peers& peers = lease_->windows().peers();
  const PeerWindow& window = lease_->window();
  switch (step.kind) {
    case PeerStep::Kind::record: driver().record(device().event(static_cast<std::size_t>(step.event)), on); return;
    case PeerStep::Kind::wait: driver().wait(on, device().event(static_cast<std::size_t>(step.event))); return;
    case PeerStep::Kind::signal: peers.signal(on, window.flag(step.peer, step.flag), iteration); return;
    case PeerStep::Kind::await: peers.await(on, window.flag(rank_, step.flag), iteration); return;
    default: break;
  }
  driver().label(first_step_label + step_index);
  for (const Part& part : work_[step_index]) {
    issue_part(on, part);
  }
}

void PeerExecutor::issue_once() {
  const FlagValue iteration = ++lease_->window().iterations;
  for (std::size_t step = 0; step < plan_.steps.size(); ++step) {
    issue_step(step, iteration);
  }
}

std::vector<StreamId> PeerExecutor::streams() {
  std::vector<StreamId> streams;
  for (const std::int32_t lane : plan_.used) {
    streams.push_back(stream(lane));
  }
  if (streams.empty()) {
    streams.push_back(stream(0));
  }
  return streams;
}

std::size_t PeerExecutor::deepest_queue() const {
  std::vector<std::size_t> commands(program().lanes.size(), 0);
  for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
    const bool is_work = plan_.steps[i].kind != PeerStep::Kind::record && plan_.steps[i].kind != PeerStep::Kind::wait &&
                         plan_.steps[i].kind != PeerStep::Kind::signal && plan_.steps[i].kind != PeerStep::Kind::await;
    commands[static_cast<std::size_t>(plan_.steps[i].lane)] += is_work ? work_[i].size() : 1;
  }
  return *std::ranges::max_element(commands);
}

void PeerExecutor::meet() {
  if (options_.meet) {
    options_.meet();
  }
}

void PeerExecutor::meet_on_device(StreamId origin) {
  PeerWindows& windows = lease_->windows();
  PeerWindow& window = lease_->window();
  const FlagValue barrier = ++window.barriers;
  for (int other = 0; other < windows.ranks(); ++other) {
    if (other != rank_) {
      windows.peers().signal(origin, window.flag(other, PeerFlags::barrier(rank_)), barrier);
    }
  }
  for (int other = 0; other < windows.ranks(); ++other) {
    if (other != rank_) {
      windows.peers().await(origin, window.flag(rank_, PeerFlags::barrier(other)), barrier);
    }
  }
}

void PeerExecutor::align(StreamId origin) {
  meet_on_device(origin);
  driver().spin(origin, std::chrono::microseconds(1));
}

void PeerExecutor::finish() {
  driver().label(frame_label);
  meet_on_device(streams().front());
  if (!driver().finish(patience())) {
    throw Stuck(fmt::format("rank {} did not finish within {:.0f} s", rank_,
                            std::chrono::duration<double>(patience()).count()));
  }
}

/// Returns the ops to which each step's copies and kernels belong. Sent data also belongs to the receiver, which has no
/// copy of its own.
std::vector<std::vector<OpHere>> PeerExecutor::ops_by_step() const {
  std::vector<std::vector<OpHere>> ops(plan_.steps.size());
  for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
    const PeerStep& step = plan_.steps[i];
    if (step.command < 0) {
      continue;
    }
    const Command& command = commands_[static_cast<std::size_t>(rank_)][static_cast<std::size_t>(step.command)];
    ops[i].emplace_back(rank_, command.op);
    if (step.kind == PeerStep::Kind::send) {
      ops[i].emplace_back(step.peer, command.target_op);
    }
  }
  return ops;
}

Execution PeerExecutor::run(const RunOptions& options) {
  lease_->windows().require_whole();
  try {
    Execution own_execution = GpuExecutor::run(options);
    Execution result = options_.together ? options_.together(own_execution) : std::move(own_execution);
    result.timeline = merged(result.timeline);
    return result;
  } catch (...) {
    lease_->windows().abandon(lease_->window());
    throw;
  }
}

}  // namespace commfuse::validate
