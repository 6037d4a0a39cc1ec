// SPDX-License-Identifier: Apache-2.0
#include "reports/export/goal.h"

#include <fmt/format.h>

#include <iterator>

#include "model/config_error.h"
#include "model/text/suggest.h"

namespace commfuse::reports {

namespace {

constexpr std::size_t max_lanes = 255;  // A CPU number has one byte, and the host uses one number.

/// Returns, for each lane, the number of its NIC: the number of communicating lanes before it.
std::vector<std::size_t> nics_of(const Program& program) {
  std::vector<bool> communicates(program.lanes.size());
  for (const Op& op : program.ops) {
    communicates[op.lane] = communicates[op.lane] || op.purpose == Purpose::communication;
  }
  std::vector<std::size_t> nics;
  std::size_t before = 0;
  for (const bool is_communication : communicates) {
    nics.push_back(before);
    before += is_communication ? 1 : 0;
  }
  return nics;
}

/// Rounds to the nearest nanosecond.
std::int64_t nanoseconds(Duration time) { return (time.count() + 500) / 1000; }

}  // namespace

std::string goal_head(const ExportInput& input) {
  const Program& program = input.program();
  if (program.lanes.size() > max_lanes) {
    throw ConfigError(fmt::format("{} has {} lanes, but GOAL counts CPUs only up to {}; use fewer lanes",
                                  in_quotes(program.name), program.lanes.size(), max_lanes));
  }
  return fmt::format("// {}: a schedule of commfuse\nnum_ranks {}\n", in_quotes(program.name), program.mesh.ranks());
}

std::string goal_of(const ExportInput& input, Rank rank, MessageOrder messages) {
  const Program& program = input.program();
  const std::vector<Task> tasks = tasks_of(input, rank, {.messages = messages, .spell_out_collectives = true});
  const std::vector<std::size_t> nics = nics_of(program);
  std::string text = fmt::format("\nrank {} {{\n", rank);
  const auto out = std::back_inserter(text);
  for (const Task& task : tasks) {
    const std::string label = label_of(task);
    if (task.kind == Task::Kind::calculation) {
      fmt::format_to(out, "{}: calc {} cpu {}\n", label, nanoseconds(task.time), lane_of(program, task));
    } else {
      const bool sends = task.kind == Task::Kind::send;
      const std::size_t nic = nics[lane_of(program, task)];
      fmt::format_to(out, "{}: {} {}b {} {} tag {} cpu {}{}\n", label, sends ? "send" : "recv", task.bytes.count,
                     sends ? "to" : "from", task.peer, task.tag, lane_of(program, task),
                     nic == 0 ? "" : fmt::format(" nic {}", nic));
    }
    for (const std::int32_t earlier : task.after) {
      fmt::format_to(out, "{} requires {}\n", label, label_of(tasks[static_cast<std::size_t>(earlier)]));
    }
  }
  text += "}\n";
  return text;
}

}  // namespace commfuse::reports
