// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/virtual_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "validate/cuda/scratch_passes.h"

namespace commfuse::validate {

namespace {

std::vector<Rank> ranks_of(const Program& program, const VirtualOptions& options) {
  if (options.middle) {
    return {*options.middle};
  }
  std::vector<Rank> ranks(static_cast<std::size_t>(program.mesh.ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

bool is_work(IssueStep::Kind kind) {
  return kind == IssueStep::Kind::compute || kind == IssueStep::Kind::transfer || kind == IssueStep::Kind::meet;
}

}  // namespace

VirtualExecutor::VirtualExecutor(Lowered lowered, Sizes sizes, Device& device, VirtualOptions options)
    : GpuExecutor(std::move(lowered), std::move(sizes), device, ranks_of(*lowered.program, options),
                  {.mode = options.mode,
                   .random_data = options.random_data,
                   .cold_level2 = options.cold_level2,
                   .patience = options.patience}),
      options_(options),
      ranks_(ranks_of(program(), options)) {
  for (const Rank rank : ranks_) {
    commands_.push_back(commands_of(this->lowered(), rank));
  }
}

At VirtualExecutor::at(Spot spot) const {
  if (spot.place < 0) {
    return {};
  }
  const auto place = static_cast<std::size_t>(spot.place);
  return {place, &commands_[place][static_cast<std::size_t>(spot.command)]};
}

std::size_t VirtualExecutor::lane_of(std::int32_t stream) const {
  return static_cast<std::size_t>(stream) % program().lanes.size();
}

StreamId VirtualExecutor::stream(std::int32_t number) {
  if (options_.one_stream) {
    return device().stream(0, false);
  }
  const LaneKind kind = program().lanes[lane_of(number)].kind;
  const bool communicates = kind == LaneKind::comm || kind == LaneKind::copy;
  const auto index = static_cast<std::size_t>(number);
  return options_.partition > 0 && !communicates ? device().stream_on_partition(index, options_.partition)
                                                 : device().stream(index, communicates);
}

/// Returns the limit for GEMMs: the option if it is set, else the size of the partition. Without that limit, GEMMs on a
/// partition would be tiled for the whole device.
int VirtualExecutor::multiprocessors() const {
  if (options_.multiprocessors > 0 || options_.partition == 0) {
    return options_.multiprocessors;
  }
  return device().partition(options_.partition).multiprocessors;
}

std::vector<Call> VirtualExecutor::calls_of(const IssueStep& step, const Calls& calls, Scratch& scratch) const {
  switch (step.kind) {
    case IssueStep::Kind::compute: return calls.compute(at(step.at), scratch);
    case IssueStep::Kind::transfer: return calls.transfer(at(step.at), at(step.to), scratch);
    case IssueStep::Kind::meet: break;
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

/// Returns members by coordinate. Peers of a rank that has the whole GPU contribute the same data as that rank.
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

void VirtualExecutor::make_calls(std::span<Scratch> scratch) {
  Ready& ready = *ready_;
  const Calls calls(program(), sizes(), memory().layout(),
                    {.functions = ready.made_for.functions,
                     .sum_order = ready.made_for.sum_order,
                     .multiprocessors = multiprocessors(),
                     .link = options_.link,
                     .attention = options_.attention});
  ready.calls.clear();
  for (const IssueStep& step : ready.plan.steps) {
    ready.calls.push_back(calls_of(step, calls, scratch[static_cast<std::size_t>(step.stream)]));
  }
}

void VirtualExecutor::finish() {
  if (!driver().finish(patience())) {
    throw Stuck(
        fmt::format("the device did not finish within {:.0f} s", std::chrono::duration<double>(patience()).count()));
  }
}

void VirtualExecutor::get_ready(const RunOptions& options) {
  if (ready_ && ready_->made_for.functions == options.functions && ready_->made_for.sum_order == options.sum_order &&
      ready_->made_for.order == options.order) {
    return;
  }
  ready_.emplace();
  forget_graph();
  ready_->made_for = options;
  ready_->plan = issue_plan(program(), commands_, {.middle = options_.middle, .order = options.order});
  make_with_scratch(driver(), static_cast<std::size_t>(ready_->plan.streams), ready_->scratch,
                    [&](std::span<Scratch> scratch) { make_calls(scratch); });
  warm_up();
}

std::vector<StreamId> VirtualExecutor::streams() {
  std::vector<StreamId> streams;
  for (const std::int32_t stream_number : ready_->plan.used) {
    if (streams.empty() || !options_.one_stream) {
      streams.push_back(stream(stream_number));
    }
  }
  return streams;
}

void VirtualExecutor::issue_step(std::size_t step_index) {
  const IssueStep& step = ready_->plan.steps[step_index];
  const StreamId on = stream(step.stream);
  switch (step.kind) {
    case IssueStep::Kind::record:
    case IssueStep::Kind::wait:
      if (!options_.one_stream) {
        const EventId event = device().event(static_cast<std::size_t>(step.event));
        step.kind == IssueStep::Kind::record ? driver().record(event, on) : driver().wait(on, event);
      }
      return;
    case IssueStep::Kind::disturb: driver().spin(on, std::chrono::microseconds(5 + step_index % 16)); return;
    default: break;
  }
  driver().label(first_step_label + step_index);
  for (const Call& call : ready_->calls[step_index]) {
    issue(driver(), on, call);
  }
}

void VirtualExecutor::issue_once() {
  for (std::size_t step = 0; step < ready_->plan.steps.size(); ++step) {
    issue_step(step);
  }
}

std::size_t VirtualExecutor::deepest_queue() const {
  const IssuePlan& plan = ready_->plan;
  std::vector<std::size_t> commands(static_cast<std::size_t>(plan.streams), 0);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    commands[options_.one_stream ? 0 : static_cast<std::size_t>(plan.steps[i].stream)] +=
        is_work(plan.steps[i].kind) ? ready_->calls[i].size() : 1;
  }
  return *std::ranges::max_element(commands);
}

/// Returns the ops to which each step's kernels belong: an exchange belongs to its sender and its receiver.
std::vector<std::vector<OpHere>> VirtualExecutor::ops_by_step() const {
  const IssuePlan& plan = ready_->plan;
  std::vector<std::vector<OpHere>> ops(plan.steps.size());
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const IssueStep& step = plan.steps[i];
    if (!is_work(step.kind)) {
      continue;
    }
    std::vector<At> participants{at(step.at), at(step.to)};
    if (step.kind == IssueStep::Kind::meet) {
      participants = options_.middle ? std::vector{at(step.at)} : members_of(step);
    }
    for (const At& participant : participants) {
      if (participant.command != nullptr) {
        ops[i].emplace_back(ranks_[participant.place], participant.command->op);
      }
    }
  }
  return ops;
}

}  // namespace commfuse::validate
