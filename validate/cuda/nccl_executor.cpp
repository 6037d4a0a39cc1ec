// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/nccl_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "model/check.h"
#include "validate/cuda/scratch_passes.h"
#include "validate/reference/collective.h"

namespace commfuse::validate {

namespace {

Lowered fit_for_nccl(Lowered lowered) {
  const std::vector<std::string> findings = nccl_findings(lowered);
  if (!findings.empty()) {
    throw std::runtime_error(
        fmt::format("{} cannot run with NCCL: {}; run it on cuda-virtual", lowered.program->name, findings.front()));
  }
  return lowered;
}

/// Bytes between the number that a barrier reads and the one it writes.
constexpr std::int64_t barrier_spacing = 256;

bool needs_no_staging(const Stack& stack, DType wire) {
  return stack.size() == 1 && stack.front().contiguous() && stack.front().dtype == wire;
}

}  // namespace

std::size_t Communicators::of(const Program& program, const NcclMembers& members) {
  std::vector<int> colors;
  for (Rank rank = 0; rank < program.mesh.ranks(); ++rank) {
    colors.push_back(color_of(program, members, rank));
  }
  return get_or_make(members.lane, colors);
}

std::size_t Communicators::for_barriers() {
  constexpr std::int32_t no_lane = -1;
  return get_or_make(no_lane, std::vector<int>(static_cast<std::size_t>(network_.ranks()), 0));
}

bool Communicators::greet(std::size_t communicator, StreamId stream) {
  if (!greeted_.insert(communicator).second) {
    return false;
  }
  network_.signal(communicator, stream, (network_.rank() + 1) % network_.ranks());
  network_.await_signals(communicator, stream,
                         {.peer = (network_.rank() + network_.ranks() - 1) % network_.ranks(), .count = 1});
  return true;
}

std::size_t Communicators::get_or_make(std::int32_t lane, const std::vector<int>& colors) {
  const std::pair key{lane, colors};
  const auto known = by_lane_and_colors_.find(key);
  if (known != by_lane_and_colors_.end()) {
    return known->second;
  }
  const std::size_t communicator = network_.split(colors[static_cast<std::size_t>(network_.rank())]);
  by_lane_and_colors_.emplace(key, communicator);
  return communicator;
}

NcclExecutor::NcclExecutor(Lowered lowered, Sizes sizes, Device& device, Communicators& communicators,
                           RankOptions options)
    : GpuExecutor(fit_for_nccl(std::move(lowered)), std::move(sizes), device, {communicators.network().rank()},
                  {.mode = options.mode,
                   .random_data = options.random_data,
                   .cold_level2 = options.cold_level2,
                   .patience = options.patience}),
      communicators_(communicators),
      barrier_communicator_(communicators.for_barriers()),
      barrier_(device.driver(), {2 * barrier_spacing}),
      options_(std::move(options)),
      rank_(communicators.network().rank()),
      commands_(commands_of(this->lowered(), rank_)),
      plan_(nccl_plan(program(), commands_)) {
  check(program().mesh.ranks() == communicators.network().ranks(), "every process has a rank");
  for (const NcclMembers& members : plan_.communicators) {
    communicator_of_plan_.push_back(communicators_.of(program(), members));
  }
  if (communicators_.network().has_windows()) {
    for (Rank rank = 0; rank < program().mesh.ranks(); ++rank) {
      all_commands_.push_back(commands_of(this->lowered(), rank));
    }
  }
  if (!communicators_.network().has_puts()) {
    return;
  }
  check(options_.mode != LaunchMode::graph, "the host counts signals, which is impossible in a graph");
  signals_ = put_signals(this->lowered(), rank_, [this](Rank /*rank*/, const Command& command) {
    const DType wire = std::get<ExchangeShape>(program().shapes[command.shape]).wire;
    return needs_no_staging(joined(memory().layout().stack(0, command.outputs[0])), wire);
  });
  bool greets = false;
  for (std::size_t i = 0; i < communicator_of_plan_.size(); ++i) {
    if (plan_.communicators[i].axis < 0) {
      greets = communicators_.greet(communicator_of_plan_[i], stream(plan_.communicators[i].lane)) || greets;
    }
  }
  if (greets) {
    finish();
  }
}

StreamId NcclExecutor::stream(std::int32_t lane) {
  const LaneKind kind = program().lanes[static_cast<std::size_t>(lane)].kind;
  return device().stream(static_cast<std::size_t>(lane), kind == LaneKind::comm || kind == LaneKind::copy);
}

/// Returns contiguous memory for a message from or to this operand, in the dtype of the wire: the operand's own memory,
/// or scratch.
Panel NcclExecutor::staged(const Stack& stack, DType wire, Scratch& scratch) const {
  return needs_no_staging(stack, wire) ? stack.front() : scratch.like(rows_of(stack), stack.front().columns, wire);
}

/// Returns the messages of an exchange. A credit is a message of one number that is never read.
NcclExecutor::Work NcclExecutor::exchange(const Command& command, Scratch& scratch) const {
  const DType wire = std::get<ExchangeShape>(program().shapes[command.shape]).wire;
  Work work{.communicates = true};
  scratch.reset();
  if (command.target >= 0) {
    MessageEnd send{.peer = command.target, .data = {}};
    if (command.inputs.empty()) {
      send.data = scratch.like(1, 1, DType::fp32);
    } else {
      const Stack from = joined(memory().layout().stack(0, command.inputs[0]));
      send.data = staged(from, wire, scratch);
      if (!needs_no_staging(from, wire)) {
        work.before.push_back(local_move(from, {send.data}, wire));
      }
    }
    work.sends.push_back(send);
  }
  if (command.source >= 0) {
    MessageEnd receive{.peer = command.source, .data = {}};
    if (command.outputs.empty()) {
      receive.data = scratch.like(1, 1, DType::fp32);
    } else {
      const Stack to = joined(memory().layout().stack(0, command.outputs[0]));
      receive.data = staged(to, wire, scratch);
      if (!needs_no_staging(to, wire)) {
        work.after.push_back(local_move({receive.data}, to, wire));
      }
    }
    work.receives.push_back(receive);
  }
  return work;
}

NcclExecutor::Work NcclExecutor::collective(const Command& command, Functions functions, Scratch& scratch) const {
  const auto& shape = std::get<CollectiveShape>(program().shapes[command.shape]);
  if (adds(shape.kind) && functions == Functions::none) {
    return {};
  }
  scratch.reset();
  const Stack from = joined(memory().layout().stack(0, command.inputs[0]));
  const Stack to = joined(memory().layout().stack(0, command.outputs[0]));
  Work work{.in = staged(from, shape.wire, scratch), .out = staged(to, shape.wire, scratch), .communicates = true};
  if (!needs_no_staging(from, shape.wire)) {
    work.before.push_back(local_move(from, {work.in}, shape.wire));
  }
  if (!needs_no_staging(to, shape.wire)) {
    work.after.push_back(local_move({work.out}, to, shape.wire));
  }
  return work;
}

NcclExecutor::Work NcclExecutor::work_of(const NcclStep& step, const Command& command, const Calls& calls,
                                         Scratch& scratch) const {
  switch (step.kind) {
    case NcclStep::Kind::exchange: return exchange(command, scratch);
    case NcclStep::Kind::collective: return collective(command, calls.options().functions, scratch);
    default: return {.before = calls.compute({0, &command}, scratch)};
  }
}

Address NcclExecutor::landing(const Command& command, Address base) const {
  const std::vector<Command>& peer_commands = all_commands_[static_cast<std::size_t>(command.target)];
  Scratch scratch(base);
  return exchange(*std::ranges::find(peer_commands, command.target_op, &Command::op), scratch).receives.front().data.at;
}

void NcclExecutor::grow_to_all(const Calls& calls, std::span<Scratch> scratch) const {
  for (const std::vector<Command>& commands : all_commands_) {
    std::vector<Scratch> of_rank(scratch.size(), Scratch(0));
    for (const NcclStep& step : nccl_plan(program(), commands).steps) {
      if (step.command >= 0) {
        static_cast<void>(work_of(step, commands[static_cast<std::size_t>(step.command)], calls,
                                  of_rank[static_cast<std::size_t>(step.lane)]));
      }
    }
    for (std::size_t lane = 0; lane < scratch.size(); ++lane) {
      scratch[lane].grow_to(of_rank[lane].highest());
    }
  }
}

void NcclExecutor::make_work(const RunOptions& options, std::span<Scratch> scratch) {
  const Calls calls(program(), sizes(), memory().layout(),
                    {.functions = options.functions,
                     .sum_order = options.sum_order,
                     .multiprocessors = options_.multiprocessors,
                     .attention = options_.attention});
  work_.clear();
  for (const NcclStep& step : plan_.steps) {
    work_.emplace_back();
    if (step.command < 0) {
      continue;
    }
    const auto command = static_cast<std::size_t>(step.command);
    const auto lane = static_cast<std::size_t>(step.lane);
    work_.back() = work_of(step, commands_[command], calls, scratch[lane]);
    if (step.kind == NcclStep::Kind::exchange && !signals_.empty()) {
      work_.back().signals = signals_[command];
      if (!commands_[command].inputs.empty() && commands_[command].target >= 0) {
        work_.back().put_to = landing(commands_[command], scratch[lane].base());
      }
    }
  }
  grow_to_all(calls, scratch);
}

void NcclExecutor::get_ready(const RunOptions& options) {
  if (work_options_ && work_options_->functions == options.functions && work_options_->sum_order == options.sum_order) {
    return;
  }
  work_options_ = options;
  forget_graph();
  make_with_scratch(driver(), program().lanes.size(), scratch_,
                    [&](std::span<Scratch> scratch) { make_work(options, scratch); });
  warm_up();
}

void NcclExecutor::issue_step(std::size_t step_index) {
  const NcclStep& step = plan_.steps[step_index];
  const Work& work = work_[step_index];
  const StreamId on = stream(step.lane);
  if (step.kind == NcclStep::Kind::record) {
    driver().record(device().event(static_cast<std::size_t>(step.event)), on);
    return;
  }
  if (step.kind == NcclStep::Kind::wait) {
    driver().wait(on, device().event(static_cast<std::size_t>(step.event)));
    return;
  }
  driver().label(first_step_label + step_index);
  for (const Call& call : work.before) {
    issue(driver(), on, call);
  }
  if (work.communicates) {
    const std::size_t communicator = communicator_of_plan_[step.communicator];
    Network& network = communicators_.network();
    if (step.kind == NcclStep::Kind::exchange && !signals_.empty()) {
      issue_puts(communicator, on, commands_[static_cast<std::size_t>(step.command)], work);
    } else if (step.kind == NcclStep::Kind::exchange) {
      network.exchange(communicator, on, work.sends, work.receives);
    } else {
      const auto& shape =
          std::get<CollectiveShape>(program().shapes[commands_[static_cast<std::size_t>(step.command)].shape]);
      network.collective(communicator, on, shape.kind, work.in, work.out);
    }
  }
  for (const Call& call : work.after) {
    issue(driver(), on, call);
  }
}

/// The signal that memory is ready comes before this rank's waits, so two ranks that send to each other do not block.
void NcclExecutor::issue_puts(std::size_t communicator, StreamId on, const Command& command, const Work& work) {
  Network& network = communicators_.network();
  if (work.signals.says_ready) {
    network.signal(communicator, on, command.source);
  }
  if (work.signals.awaits_ready > 0) {
    network.await_signals(communicator, on, {.peer = command.target, .count = work.signals.awaits_ready});
  }
  if (command.target >= 0) {
    if (command.inputs.empty()) {
      network.signal(communicator, on, command.target);
    } else {
      network.put(communicator, on, work.sends.front(), work.put_to);
    }
  }
  if (work.signals.awaits_arrived > 0) {
    network.await_signals(communicator, on, {.peer = command.source, .count = work.signals.awaits_arrived});
  }
}

std::vector<StreamId> NcclExecutor::streams() {
  std::vector<StreamId> streams;
  for (const std::int32_t lane : plan_.used) {
    streams.push_back(stream(lane));
  }
  if (streams.empty()) {
    streams.push_back(stream(0));
  }
  return streams;
}

void NcclExecutor::issue_once() {
  for (std::size_t step = 0; step < plan_.steps.size(); ++step) {
    issue_step(step);
  }
}

void NcclExecutor::meet() {
  if (options_.meet) {
    options_.meet();
  }
}

void NcclExecutor::align(StreamId origin) {
  const auto number = [&](Address at) { return Panel{at, 1, 1, 1, DType::fp32}; };
  communicators_.network().collective(barrier_communicator_, origin, CollectiveKind::all_reduce, number(barrier_.at()),
                                      number(barrier_.at() + barrier_spacing));
}

void NcclExecutor::finish() {
  Network& network = communicators_.network();
  const bool finished = driver().finish(patience());
  if (const std::optional<std::string> failure = network.failure()) {
    network.abort();
    throw std::runtime_error(*failure);
  }
  if (!finished) {
    network.abort();
    throw Stuck(fmt::format("rank {} did not finish within {:.0f} s", rank_,
                            std::chrono::duration<double>(patience()).count()));
  }
}

std::vector<std::vector<OpHere>> NcclExecutor::ops_by_step() const {
  std::vector<std::vector<OpHere>> ops;
  for (const NcclStep& step : plan_.steps) {
    ops.emplace_back();
    if (step.command >= 0) {
      ops.back().emplace_back(rank_, commands_[static_cast<std::size_t>(step.command)].op);
    }
  }
  return ops;
}

Execution NcclExecutor::run(const RunOptions& options) {
  const Execution mine = GpuExecutor::run(options);
  return options_.together ? options_.together(mine) : mine;
}

}  // namespace commfuse::validate
