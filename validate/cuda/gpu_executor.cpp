// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/gpu_executor.h"

#include <stdexcept>
#include <utility>

#include "validate/reference/interpreter.h"

namespace commfuse::validate {

GpuExecutor::GpuExecutor(Lowered&& lowered, Sizes&& sizes, Device& device, std::vector<Rank> ranks, IssueOptions issue)
    : lowered_(std::move(lowered)),
      sizes_(std::move(sizes)),
      device_(device),
      issue_(issue),
      memory_((require_storable(*lowered_.program), *lowered_.program), sizes_, device.driver(), std::move(ranks),
              issue.memory) {
  if (issue_.random_data) {
    memory_.randomize(device_);
  }
}

/// Makes all other streams wait for the work that the first stream has so far.
void GpuExecutor::fork(std::span<const StreamId> streams) {
  driver().label(frame_label);
  if (streams.size() > 1) {
    const EventId start = device_.event(first_free_event());
    driver().record(start, streams.front());
    for (const StreamId other : streams.subspan(1)) {
      driver().wait(other, start);
    }
  }
}

/// Makes the first stream wait for the end of all others.
void GpuExecutor::join(std::span<const StreamId> streams) {
  driver().label(frame_label);
  std::size_t event = first_free_event();
  for (const StreamId other : streams.subspan(1)) {
    const EventId end = device_.event(++event);
    driver().record(end, other);
    driver().wait(streams.front(), end);
  }
}

/// Requires that the origin's work comes after that of all other streams.
void GpuExecutor::cool(StreamId origin) {
  if (issue_.cold_level2) {
    driver().label(frame_label);
    device_.overwrite_level2(origin);
  }
}

void GpuExecutor::framed(std::span<const StreamId> streams, int iterations) {
  fork(streams);
  for (int iteration = 0; iteration < iterations; ++iteration) {
    if (iteration > 0 && issue_.cold_level2) {
      join(streams);
      cool(streams.front());
      fork(streams);
    }
    issue_once();
  }
  join(streams);
}

void GpuExecutor::warm_up() {
  const std::vector<StreamId> used_streams = streams();
  if (issue_.mode == LaunchMode::stream || used_streams.empty()) {
    return;
  }
  const std::vector<std::byte> values = issue_.random_data ? std::vector<std::byte>{} : memory_.snapshot();
  align(used_streams.front());
  framed(used_streams, 1);
  finish();
  if (!issue_.random_data) {
    memory_.restore(values);
  }
}

void GpuExecutor::issue_all(std::span<const StreamId> streams, const RunOptions& options) {
  // A graph that was captured without a trace has no labels, so traced work is issued as streams.
  const LaunchMode mode = options.traced && issue_.mode == LaunchMode::graph ? LaunchMode::stream : issue_.mode;
  const StreamId origin = streams.front();
  if (mode == LaunchMode::graph && !graph_) {
    Capture capture(driver(), origin);
    framed(streams, 1);
    graph_ = capture.end();
  }
  static_cast<void>(device_.timed_event(1));  // both events are made before the gate closes
  if (issue_.cold_level2) {
    cool(origin);
    finish();  // otherwise this work would hide the issue costs of commands
  }
  std::optional<ClosedGate> gate;
  if (mode == LaunchMode::gated) {
    require_room_behind_gate(deepest_queue() * static_cast<std::size_t>(options.iterations));
    driver().label(gate_label);
    gate.emplace(driver(), origin);
  } else {
    meet();
  }
  driver().label(align_label);
  align(origin);
  driver().label(frame_label);
  driver().record(device_.timed_event(0), origin);
  if (mode == LaunchMode::graph) {
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      if (iteration > 0) {
        cool(origin);
      }
      driver().launch(origin, *graph_);
    }
  } else {
    framed(streams, options.iterations);
  }
  driver().record(device_.timed_event(1), origin);
  if (gate) {
    meet();
    gate->open();
  }
}

Execution GpuExecutor::run(const RunOptions& options) {
  get_ready(options);
  const std::vector<StreamId> used_streams = streams();
  if (used_streams.empty()) {
    return {};
  }
  std::optional<Trace> trace;
  if (options.traced) {
    trace.emplace(driver());
  }
  issue_all(used_streams, options);
  finish();
  if (issue_.mode == LaunchMode::gated && !driver().gate_held()) {
    throw std::runtime_error(
        "the gate opened before everything was issued, so the time is invalid; issue by graph or stream");
  }
  Execution result{.makespan = driver().elapsed(device_.timed_event(0), device_.timed_event(1)), .timeline = {}};
  if (trace) {
    result.timeline = device_timeline(trace->end(), ops_by_step(), options.iterations);
  }
  return result;
}

}  // namespace commfuse::validate
