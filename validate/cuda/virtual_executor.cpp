// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/virtual_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "model/check.h"
#include "validate/reference/interpreter.h"

namespace commfuse::validate {

namespace {

using Kind = IssueStep::Kind;

std::vector<Rank> ranks_of(const Program& program, const VirtualOptions& options) {
  if (options.middle) {
    return {*options.middle};
  }
  std::vector<Rank> ranks(static_cast<std::size_t>(program.mesh.ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

bool is_work(Kind kind) { return kind == Kind::compute || kind == Kind::transfer || kind == Kind::meet; }

}  // namespace

VirtualExecutor::VirtualExecutor(Lowered lowered, Sizes sizes, Device& device, VirtualOptions options)
    : lowered_(std::move(lowered)),
      sizes_(std::move(sizes)),
      device_(device),
      options_(options),
      ranks_(ranks_of(*lowered_.program, options)),
      memory_((require_storable(*lowered_.program), *lowered_.program), sizes_, device.driver(), ranks_) {
  for (const Rank rank : ranks_) {
    commands_.push_back(commands_of(lowered_, rank));
  }
  if (options_.random_data) {
    memory_.randomize(device_);
  }
}

At VirtualExecutor::at(Spot spot) const {
  if (spot.rank < 0) {
    return {};
  }
  const auto place = static_cast<std::size_t>(spot.rank);
  return {place, &commands_[place][static_cast<std::size_t>(spot.command)]};
}

std::size_t VirtualExecutor::lane_of(std::int32_t stream) const {
  return static_cast<std::size_t>(stream) % program().lanes.size();
}

StreamId VirtualExecutor::stream(std::int32_t number) {
  if (options_.one_stream) {
    return device_.stream(0, false);
  }
  const LaneKind kind = program().lanes[lane_of(number)].kind;
  const bool communicates = kind == LaneKind::comm || kind == LaneKind::copy;
  const auto place = static_cast<std::size_t>(number);
  return options_.partition > 0 && !communicates ? device_.stream_apart(place, options_.partition)
                                                 : device_.stream(place, communicates);
}

/// A product knows nothing of a partition by itself, and would make waves of the whole device.
int VirtualExecutor::multiprocessors() const {
  if (options_.multiprocessors > 0 || options_.partition == 0) {
    return options_.multiprocessors;
  }
  return device_.partition(options_.partition).multiprocessors;
}

std::vector<Call> VirtualExecutor::calls_of(const IssueStep& step, const Calls& calls, Scratch& scratch) const {
  switch (step.kind) {
    case Kind::compute: return calls.compute(at(step.at), scratch);
    case Kind::transfer: return calls.transfer(at(step.at), at(step.to), scratch);
    case Kind::meet: break;
    default: return {};
  }
  const std::vector<At> members = members_of(step);
  std::vector<std::size_t> outputs;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!options_.middle || at(step.at).command->group[i] == *options_.middle) {
      outputs.push_back(i);
    }
  }
  return calls.meet(members, outputs, scratch);
}

/// By coordinate; the peers of a rank that has the GPU for itself give what it gives.
std::vector<At> VirtualExecutor::members_of(const IssueStep& step) const {
  const At first = at(step.at);
  std::vector<At> members;
  for (const Rank rank : first.command->group) {
    const auto place = static_cast<std::size_t>(rank);
    members.push_back(
        options_.middle ? first : At{place, &*std::ranges::find(commands_[place], first.command->op, &Command::op)});
  }
  return members;
}

/// `bases`: where the scratch of each stream begins; `most`: how much each needs.
void VirtualExecutor::work_out(Ready& ready, std::span<const Address> bases, std::vector<Bytes>& most) const {
  const Calls calls(program(), sizes_, memory_.layout(),
                    {.functions = ready.made_for.functions,
                     .products = ready.made_for.products,
                     .multiprocessors = multiprocessors(),
                     .link = options_.link,
                     .attention = options_.attention});
  std::vector<Scratch> scratch;
  for (const Address base : bases) {
    scratch.emplace_back(base);
  }
  ready.calls.clear();
  for (const IssueStep& step : ready.plan.steps) {
    ready.calls.push_back(calls_of(step, calls, scratch[static_cast<std::size_t>(step.stream)]));
  }
  most.clear();
  for (const Scratch& one : scratch) {
    most.push_back(one.most());
  }
}

/// What is made when it is first needed, as rooms for attention, cannot be made behind a gate or in a capture. It
/// leaves other values, which nobody looks at.
void VirtualExecutor::warm_up(const Ready& ready) {
  if (options_.random_data && options_.mode != LaunchMode::stream && !ready.plan.used.empty()) {
    fork(ready);
    issue_once(ready);
    join(ready);
    finish();
  }
}

void VirtualExecutor::finish() const {
  if (!device_.driver().finish(options_.patience)) {
    throw Stuck(fmt::format("the device has not come to its end within {:.0f} s",
                            std::chrono::duration<double>(options_.patience).count()));
  }
}

const VirtualExecutor::Ready& VirtualExecutor::ready_for(const RunOptions& options) {
  if (ready_ && ready_->made_for.functions == options.functions && ready_->made_for.products == options.products &&
      ready_->made_for.order == options.order) {
    return *ready_;
  }
  ready_.emplace();
  Ready& ready = *ready_;
  ready.made_for = options;
  ready.plan = issue_plan(program(), commands_, {.mirrored = options_.middle.has_value(), .order = options.order});
  std::vector<Address> bases(static_cast<std::size_t>(ready.plan.streams), 0);
  std::vector<Bytes> most;
  work_out(ready, bases, most);
  ready.scratch.emplace(device_.driver(), most);
  work_out(ready, ready.scratch->bases(), most);
  warm_up(ready);
  return ready;
}

void VirtualExecutor::issue_step(const Ready& ready, std::size_t which) {
  const IssueStep& step = ready.plan.steps[which];
  Driver& driver = device_.driver();
  const StreamId on = stream(step.stream);
  switch (step.kind) {
    case Kind::record:
    case Kind::wait:
      if (!options_.one_stream) {
        const EventId event = device_.event(static_cast<std::size_t>(step.event));
        step.kind == Kind::record ? driver.record(event, on) : driver.wait(on, event);
      }
      return;
    case Kind::disturb: driver.spin(on, std::chrono::microseconds(5 + which % 16)); return;
    default: break;
  }
  driver.label(first_step_label + which);
  for (const Call& call : ready.calls[which]) {
    issue(driver, on, call);
  }
}

void VirtualExecutor::issue_once(const Ready& ready) {
  for (std::size_t step = 0; step < ready.plan.steps.size(); ++step) {
    issue_step(ready, step);
  }
}

/// All streams start where the first one is.
void VirtualExecutor::fork(const Ready& ready) {
  if (options_.one_stream) {
    return;
  }
  Driver& driver = device_.driver();
  const auto first = static_cast<std::size_t>(ready.plan.events);
  const StreamId origin = stream(ready.plan.used.front());
  driver.record(device_.event(first), origin);
  for (const std::int32_t other : ready.plan.used) {
    if (other != ready.plan.used.front()) {
      driver.wait(stream(other), device_.event(first));
    }
  }
}

/// The first stream goes on when all have come to their end.
void VirtualExecutor::join(const Ready& ready) {
  if (options_.one_stream) {
    return;
  }
  Driver& driver = device_.driver();
  std::size_t event = static_cast<std::size_t>(ready.plan.events) + 1;
  const StreamId origin = stream(ready.plan.used.front());
  for (const std::int32_t other : ready.plan.used) {
    if (other != ready.plan.used.front()) {
      driver.record(device_.event(event), stream(other));
      driver.wait(origin, device_.event(event));
      ++event;
    }
  }
}

void VirtualExecutor::require_room(const Ready& ready, int iterations) const {
  std::vector<std::size_t> commands(static_cast<std::size_t>(ready.plan.streams), 0);
  for (std::size_t i = 0; i < ready.plan.steps.size(); ++i) {
    commands[options_.one_stream ? 0 : static_cast<std::size_t>(ready.plan.steps[i].stream)] +=
        is_work(ready.plan.steps[i].kind) ? ready.calls[i].size() : 1;
  }
  require_room_behind_gate(*std::ranges::max_element(commands) * static_cast<std::size_t>(iterations));
}

void VirtualExecutor::issue_all(const Ready& ready, const RunOptions& options) {
  Driver& driver = device_.driver();
  // A graph tells its nodes' times, not what they were issued for.
  const LaunchMode mode = options.traced && options_.mode == LaunchMode::graph ? LaunchMode::stream : options_.mode;
  const StreamId origin = stream(ready.plan.used.front());
  const EventId start = device_.timed_event(0);
  const EventId end = device_.timed_event(1);
  driver.label(frame_label);
  if (mode == LaunchMode::graph && !ready.graph) {
    driver.begin_capture(origin);
    fork(ready);
    issue_once(ready);
    driver.label(frame_label);
    join(ready);
    ready_->graph = driver.end_capture();
  }
  if (mode == LaunchMode::gated) {
    require_room(ready, options.iterations);
    driver.close_gate();
    driver.label(gate_label);
    driver.gate(origin);
    driver.label(frame_label);
  }
  driver.record(start, origin);
  if (mode == LaunchMode::graph) {
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      driver.launch(origin, *ready.graph);
    }
  } else {
    fork(ready);
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      issue_once(ready);
    }
    driver.label(frame_label);
    join(ready);
  }
  driver.record(end, origin);
}

Execution VirtualExecutor::run(const RunOptions& options) {
  Driver& driver = device_.driver();
  const Ready& ready = ready_for(options);
  if (ready.plan.used.empty()) {
    return {};
  }
  if (options.traced) {
    driver.begin_trace();
  }
  issue_all(ready, options);
  if (options_.mode == LaunchMode::gated) {
    driver.open_gate();
  }
  finish();
  if (options_.mode == LaunchMode::gated && !driver.gate_held()) {
    throw std::runtime_error("the gate opened before all was issued, so the time means nothing; issue by graph");
  }
  Execution result{.makespan = driver.elapsed(device_.timed_event(0), device_.timed_event(1)), .timeline = {}};
  if (options.traced) {
    result.timeline = device_timeline(driver.end_trace(), ops_of(ready.plan), options.iterations);
  }
  return result;
}

/// Whose time each step's kernels are: an exchange is its sender's and its receiver's.
std::vector<std::vector<OpHere>> VirtualExecutor::ops_of(const IssuePlan& plan) const {
  std::vector<std::vector<OpHere>> ops(plan.steps.size());
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const IssueStep& step = plan.steps[i];
    if (!is_work(step.kind)) {
      continue;
    }
    std::vector<At> places{at(step.at), at(step.to)};
    if (step.kind == Kind::meet) {
      places = options_.middle ? std::vector{at(step.at)} : members_of(step);
    }
    for (const At& place : places) {
      if (place.command != nullptr) {
        ops[i].emplace_back(ranks_[place.place], place.command->op);
      }
    }
  }
  return ops;
}

}  // namespace commfuse::validate
