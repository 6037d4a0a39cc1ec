// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/nccl_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "model/check.h"
#include "validate/reference/interpreter.h"

namespace commfuse::validate {

namespace {

using Kind = NcclStep::Kind;

Lowered fit_for_nccl(Lowered lowered) {
  require_storable(*lowered.program);
  const std::vector<std::string> findings = nccl_findings(lowered);
  if (!findings.empty()) {
    throw std::runtime_error(fmt::format("{} cannot run with two-sided messages: {}; run it on cuda-virtual",
                                         lowered.program->name, findings.front()));
  }
  return lowered;
}

/// A move inside the rank's memory, which also converts.
Call local(const Stack& from, const Stack& to, DType wire) {
  MoveCall call{.parts = {}, .wire = wire, .link = {.kind = LinkKind::copy, .ctas = 0}};
  for (const std::vector<Panel>& piece : rows_in_step(std::array{from, to})) {
    call.parts.push_back({piece[0], piece[1]});
  }
  return call;
}

bool lies_ready(const Stack& stack, DType wire) {
  return stack.size() == 1 && stack.front().contiguous() && stack.front().dtype == wire;
}

}  // namespace

std::size_t Communicators::of(const Program& program, const NcclMembers& members) {
  std::vector<int> colors;
  for (Rank rank = 0; rank < program.mesh.ranks(); ++rank) {
    colors.push_back(color_of(program, members, rank));
  }
  const std::pair key{members.lane, colors};
  const auto found = made_.find(key);
  if (found != made_.end()) {
    return found->second;
  }
  const std::size_t made = network_.split(colors[static_cast<std::size_t>(network_.rank())]);
  made_.emplace(key, made);
  return made;
}

NcclExecutor::NcclExecutor(Lowered lowered, Sizes sizes, Device& device, Communicators& communicators,
                           NcclOptions options)
    : lowered_(fit_for_nccl(std::move(lowered))),
      sizes_(std::move(sizes)),
      device_(device),
      communicators_(communicators),
      options_(std::move(options)),
      rank_(communicators.network().rank()),
      commands_(commands_of(lowered_, rank_)),
      plan_(nccl_plan(*lowered_.program, commands_)),
      memory_(*lowered_.program, sizes_, device.driver(), {rank_}) {
  check(program().mesh.ranks() == communicators.network().ranks(), "every process has a rank");
  for (const NcclMembers& members : plan_.communicators) {
    made_.push_back(communicators_.of(program(), members));
  }
  if (options_.random_data) {
    memory_.randomize(device_);
  }
}

StreamId NcclExecutor::stream(std::int32_t lane) {
  const LaneKind kind = program().lanes[static_cast<std::size_t>(lane)].kind;
  return device_.stream(static_cast<std::size_t>(lane), kind == LaneKind::comm || kind == LaneKind::copy);
}

/// Where a message of this operand lies together in the dtype of its wire.
Panel NcclExecutor::staged(const Stack& stack, DType wire, Scratch& scratch) const {
  return lies_ready(stack, wire) ? stack.front() : scratch.like(rows_of(stack), stack.front().columns, wire);
}

/// A credit is a message of one number that nobody reads.
NcclExecutor::Work NcclExecutor::exchange(const Command& command, Scratch& scratch) const {
  const DType wire = std::get<ExchangeShape>(program().shapes[command.shape]).wire;
  Work work{.speaks = true};
  scratch.reset();
  if (command.target >= 0) {
    Message send{.peer = command.target, .data = {}};
    if (command.inputs.empty()) {
      send.data = scratch.like(1, 1, DType::fp32);
    } else {
      const Stack from = joined(memory_.layout().stack(0, command.inputs[0]));
      send.data = staged(from, wire, scratch);
      if (!lies_ready(from, wire)) {
        work.before.push_back(local(from, {send.data}, wire));
      }
    }
    work.sends.push_back(send);
  }
  if (command.source >= 0) {
    Message receive{.peer = command.source, .data = {}};
    if (command.outputs.empty()) {
      receive.data = scratch.like(1, 1, DType::fp32);
    } else {
      const Stack to = joined(memory_.layout().stack(0, command.outputs[0]));
      receive.data = staged(to, wire, scratch);
      if (!lies_ready(to, wire)) {
        work.after.push_back(local({receive.data}, to, wire));
      }
    }
    work.receives.push_back(receive);
  }
  return work;
}

NcclExecutor::Work NcclExecutor::collective(const Command& command, const RunOptions& options, Scratch& scratch) const {
  const auto& shape = std::get<CollectiveShape>(program().shapes[command.shape]);
  const bool adds = shape.kind == CollectiveKind::reduce_scatter || shape.kind == CollectiveKind::all_reduce;
  if (adds && options.functions == Functions::none) {
    return {};
  }
  scratch.reset();
  const Stack from = joined(memory_.layout().stack(0, command.inputs[0]));
  const Stack to = joined(memory_.layout().stack(0, command.outputs[0]));
  Work work{.in = staged(from, shape.wire, scratch), .out = staged(to, shape.wire, scratch), .speaks = true};
  if (!lies_ready(from, shape.wire)) {
    work.before.push_back(local(from, {work.in}, shape.wire));
  }
  if (!lies_ready(to, shape.wire)) {
    work.after.push_back(local({work.out}, to, shape.wire));
  }
  return work;
}

void NcclExecutor::work_out(const RunOptions& options, std::span<const Address> bases, std::vector<Bytes>& most) {
  const Calls calls(program(), sizes_, memory_.layout(),
                    {.functions = options.functions,
                     .products = options.products,
                     .multiprocessors = options_.multiprocessors,
                     .attention = options_.attention});
  std::vector<Scratch> scratch;
  for (const Address base : bases) {
    scratch.emplace_back(base);
  }
  work_.clear();
  for (const NcclStep& step : plan_.steps) {
    work_.emplace_back();
    if (step.command < 0) {
      continue;
    }
    const Command& command = commands_[static_cast<std::size_t>(step.command)];
    Scratch& mine = scratch[static_cast<std::size_t>(step.lane)];
    switch (step.kind) {
      case Kind::exchange: work_.back() = exchange(command, mine); break;
      case Kind::collective: work_.back() = collective(command, options, mine); break;
      default: work_.back().before = calls.compute({0, &command}, mine);
    }
  }
  most.clear();
  for (const Scratch& one : scratch) {
    most.push_back(one.most());
  }
}

/// The first message to a peer connects, and asks for memory: not behind a gate, nor in a capture. It leaves other
/// values, which nobody looks at.
void NcclExecutor::warm_up() {
  if (options_.random_data && options_.mode != LaunchMode::stream && !plan_.used.empty()) {
    frame(true);
    issue_once();
    frame(false);
    finish();
  }
}

void NcclExecutor::get_ready(const RunOptions& options) {
  if (made_for_ && made_for_->functions == options.functions && made_for_->products == options.products) {
    return;
  }
  made_for_ = options;
  graph_.reset();
  scratch_.reset();
  std::vector<Address> bases(program().lanes.size(), 0);
  std::vector<Bytes> most;
  work_out(options, bases, most);
  scratch_.emplace(device_.driver(), most);
  work_out(options, scratch_->bases(), most);
  warm_up();
}

void NcclExecutor::issue_step(std::size_t which) {
  const NcclStep& step = plan_.steps[which];
  const Work& work = work_[which];
  Driver& driver = device_.driver();
  const StreamId on = stream(step.lane);
  if (step.kind == Kind::record) {
    driver.record(device_.event(static_cast<std::size_t>(step.event)), on);
    return;
  }
  if (step.kind == Kind::wait) {
    driver.wait(on, device_.event(static_cast<std::size_t>(step.event)));
    return;
  }
  driver.label(first_step_label + which);
  for (const Call& call : work.before) {
    issue(driver, on, call);
  }
  if (work.speaks) {
    const std::size_t communicator = made_[step.communicator];
    Network& network = communicators_.network();
    if (step.kind == Kind::exchange) {
      network.exchange(communicator, on, work.sends, work.receives);
    } else {
      const auto& shape =
          std::get<CollectiveShape>(program().shapes[commands_[static_cast<std::size_t>(step.command)].shape]);
      network.collective(communicator, on, shape.kind, work.in, work.out);
    }
  }
  for (const Call& call : work.after) {
    issue(driver, on, call);
  }
}

/// All lanes start where the first one is; or it goes on when all have come to their end.
void NcclExecutor::frame(bool begin) {
  Driver& driver = device_.driver();
  auto event = static_cast<std::size_t>(plan_.events);
  const StreamId origin = stream(plan_.used.front());
  driver.label(frame_label);
  for (const std::int32_t lane : plan_.used) {
    if (lane == plan_.used.front()) {
      continue;
    }
    driver.record(device_.event(event), begin ? origin : stream(lane));
    driver.wait(begin ? stream(lane) : origin, device_.event(event));
    ++event;
  }
}

void NcclExecutor::issue_once() {
  for (std::size_t step = 0; step < plan_.steps.size(); ++step) {
    issue_step(step);
  }
}

void NcclExecutor::capture() {
  Driver& driver = device_.driver();
  driver.begin_capture(stream(plan_.used.front()));
  frame(true);
  issue_once();
  frame(false);
  graph_ = driver.end_capture();
}

void NcclExecutor::issue_iterations(const RunOptions& options) {
  Driver& driver = device_.driver();
  const StreamId origin = stream(plan_.used.front());
  const bool gated = options_.mode == LaunchMode::gated;
  const bool by_graph = options_.mode == LaunchMode::graph && !options.traced;
  if (by_graph && !graph_) {
    capture();
  }
  if (gated) {
    require_room_behind_gate(plan_.steps.size() * static_cast<std::size_t>(options.iterations));
    driver.close_gate();
    driver.label(gate_label);
    driver.gate(origin);
  } else if (options_.meet) {
    options_.meet();
  }
  driver.record(device_.timed_event(0), origin);
  if (by_graph) {
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      driver.launch(origin, *graph_);
    }
  } else {
    frame(true);
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      issue_once();
    }
    frame(false);
  }
  driver.record(device_.timed_event(1), origin);
  if (gated) {
    if (options_.meet) {
      options_.meet();
    }
    driver.open_gate();
  }
}

void NcclExecutor::finish() {
  Driver& driver = device_.driver();
  Network& network = communicators_.network();
  const bool finished = driver.finish(options_.patience);
  if (const std::optional<std::string> failure = network.failure()) {
    network.abort();
    throw std::runtime_error(fmt::format("NCCL: {}", *failure));
  }
  if (!finished) {
    network.abort();
    throw Stuck(fmt::format("rank {} has not come to its end within {:.0f} s", rank_,
                            std::chrono::duration<double>(options_.patience).count()));
  }
  if (options_.mode == LaunchMode::gated && !driver.gate_held()) {
    throw std::runtime_error("the gate opened before all was issued, so the time means nothing; issue by graph");
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
  get_ready(options);
  if (plan_.used.empty()) {
    return {};
  }
  Driver& driver = device_.driver();
  if (options.traced) {
    driver.begin_trace();
  }
  issue_iterations(options);
  finish();
  Execution result{.makespan = driver.elapsed(device_.timed_event(0), device_.timed_event(1)), .timeline = {}};
  if (options.traced) {
    result.timeline = device_timeline(driver.end_trace(), ops_by_step(), options.iterations);
  }
  return options_.together ? options_.together(result) : result;
}

}  // namespace commfuse::validate
