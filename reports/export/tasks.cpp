// SPDX-License-Identifier: Apache-2.0
#include "reports/export/tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "reports/export/task_order.h"

namespace commfuse::reports {

namespace {

using TaskIndices = std::vector<std::int32_t>;

void append(TaskIndices& to, const TaskIndices& more) { to.insert(to.end(), more.begin(), more.end()); }

/// Returns an upper bound on the number of messages that one op sends between two ranks.
std::int64_t tags_per_op(const Program& program, const TaskOptions& options) {
  std::int64_t messages = 1;
  for (const Shape& shape : program.shapes) {
    if (const auto* collective = std::get_if<CollectiveShape>(&shape); collective && options.spell_out_collectives) {
      messages =
          std::max(messages, std::int64_t{2} * program.mesh.axes[static_cast<std::size_t>(collective->axis)].extent);
    }
  }
  return messages;
}

class RankTasks {
 public:
  RankTasks(const ExportInput& input, Rank rank, const TaskOptions& options)
      : input_(input),
        program_(input.program()),
        rank_(rank),
        options_(options),
        tags_(tags_per_op(program_, options)),
        order_(program_, rank),
        memory_(program_.buffers.size()),
        parts_(program_.ops.size()),
        last_calculation_(program_.lanes.size(), OpId{-1}),
        last_on_lane_(program_.lanes.size(), OpId{-1}),
        issued_by_(program_.ops.size(), -1) {}

  void add(const Command& command, const std::vector<Command>& commands) {
    issue(command);
    add_parts(command);
    Earlier earlier;
    for (const std::int32_t wait : command.waits) {
      earlier.waits.push_back(commands[static_cast<std::size_t>(wait)].op);
    }
    const Task& first = tasks_[static_cast<std::size_t>(parts_[position(command.op)].front().first.front())];
    const bool calculates = first.kind == Task::Kind::calculation;
    earlier.on_lane = options_.messages == MessageOrder::lane ? last_on_lane_[command.lane]
                      : calculates                            ? last_calculation_[command.lane]
                                                              : OpId{-1};
    options_.messages == MessageOrder::lane ? order_by_lane(command.op, earlier) : order_by_data(command, earlier);
    wait_for_host(command.op);
    last_on_lane_[command.lane] = command.op;
    if (calculates) {
      last_calculation_[command.lane] = command.op;
    }
  }

  std::vector<Task> take() && {
    for (Task& task : tasks_) {
      std::sort(task.after.begin(), task.after.end());
      task.after.erase(std::unique(task.after.begin(), task.after.end()), task.after.end());
    }
    return std::move(tasks_);
  }

 private:
  /// The portion of an op that starts and ends together: the whole op, or one half of an exchange.
  struct Part {
    TaskIndices first, last;
    bool reads = true;   // the op reads its inputs in this part
    bool writes = true;  // the op writes its outputs in this part
  };
  struct Earlier {
    std::vector<OpId> waits;
    OpId on_lane{-1};
  };

  std::int32_t push(Task task) {
    tasks_.push_back(std::move(task));
    return static_cast<std::int32_t>(tasks_.size()) - 1;
  }

  // --- the host ---

  void issue(const Command& command) {
    const Duration cost = input_.costs.issue.empty() ? Duration{} : input_.costs.issue[position(command.op)];
    if (cost > Duration::zero()) {
      Task task{.op = command.op, .host = true, .time = cost};
      if (host_ >= 0) {
        task.after.push_back(host_);
      }
      host_ = push(std::move(task));
    }
    issued_by_[position(command.op)] = host_;
  }

  /// Adds a wait for the host's last task, unless the op already waits for an op that this task issued.
  void wait_for_host(OpId op) {
    if (host_ < 0) {
      return;
    }
    for (const Part& part : parts_[position(op)]) {
      for (const std::int32_t index : part.first) {
        Task& task = tasks_[static_cast<std::size_t>(index)];
        const auto issued_with = [&](std::int32_t earlier) {
          return issued_by_[position(tasks_[static_cast<std::size_t>(earlier)].op)] == host_;
        };
        if (std::none_of(task.after.begin(), task.after.end(), issued_with)) {
          task.after.push_back(host_);
        }
      }
    }
  }

  // --- the op itself ---

  void add_parts(const Command& command) {
    std::vector<Part>& parts = parts_[position(command.op)];
    const bool to_itself = command.target == rank_ || command.source == rank_;
    if (command.kind == OpKind::exchange && !to_itself) {
      add_halves(command, parts);
    } else if (command.kind == OpKind::collective && command.group.size() > 1) {
      options_.spell_out_collectives ? add_steps(command, parts) : add_collective(command, parts);
    } else {
      const Duration time = input_.costs.of(rank_, position(command.op));
      const std::int32_t index = push({.op = command.op, .time = time});
      parts.push_back({{index}, {index}});
    }
  }

  void add_halves(const Command& command, std::vector<Part>& parts) {
    const auto& shape = std::get<ExchangeShape>(program_.shapes[command.shape]);
    const Bytes bytes = size_of(shape.rows, shape.columns, shape.wire);
    if (command.target >= 0) {
      const std::int32_t index = push(message(Task::Kind::send, command.op, command.target, bytes, command.op));
      parts.push_back({{index}, {index}, true, false});
    }
    if (command.source >= 0) {
      const std::int32_t index =
          push(message(Task::Kind::receive, command.op, command.source, bytes, command.source_op));
      parts.push_back({{index}, {index}, false, true});
    }
  }

  void add_collective(const Command& command, std::vector<Part>& parts) {
    const auto& shape = std::get<CollectiveShape>(program_.shapes[command.shape]);
    Bytes bytes = size_of(shape.rows, shape.columns, shape.wire);
    if (shape.kind == CollectiveKind::all_gather) {
      bytes.count /= static_cast<std::int64_t>(command.group.size());
    }
    const std::int32_t index = push({.kind = Task::Kind::collective, .op = command.op, .bytes = bytes});
    parts.push_back({{index}, {index}});
  }

  /// Adds the messages of a collective, step by step. Rounds the size of a part up if the data do not divide evenly.
  void add_steps(const Command& command, std::vector<Part>& parts) {
    const auto& shape = std::get<CollectiveShape>(program_.shapes[command.shape]);
    const auto ranks = static_cast<std::int32_t>(command.group.size());
    const auto own_index =
        static_cast<std::int32_t>(std::find(command.group.begin(), command.group.end(), rank_) - command.group.begin());
    const std::int64_t whole = size_of(shape.rows, shape.columns, shape.wire).count;
    const Bytes bytes{(whole + ranks - 1) / ranks};
    const std::int32_t steps = (ranks - 1) * (shape.kind == CollectiveKind::all_reduce ? 2 : 1);
    Part part;
    for (std::int32_t step = 0; step < steps; ++step) {
      const std::int32_t shift = shape.kind == CollectiveKind::all_to_all ? step + 1 : 1;
      const auto member = [&](std::int32_t index) { return command.group[static_cast<std::size_t>(index % ranks)]; };
      TaskIndices pair;
      for (const auto& [kind, peer] : {std::pair{Task::Kind::send, member(own_index + shift)},
                                       std::pair{Task::Kind::receive, member(own_index + ranks - shift)}}) {
        Task task = message(kind, command.op, peer, bytes, command.op);
        task.step = step;
        task.tag += step;
        task.after = part.last;
        pair.push_back(push(std::move(task)));
      }
      part.first = step == 0 ? pair : part.first;
      part.last = pair;
    }
    parts.push_back(std::move(part));
  }

  /// Makes a send or a receive, whose tag follows from the sender's op.
  [[nodiscard]] Task message(Task::Kind kind, OpId op, Rank peer, Bytes bytes, OpId sender) const {
    return {.kind = kind,
            .op = op,
            .peer = peer,
            .bytes = bytes,
            .tag = static_cast<std::int64_t>(position(sender)) * tags_};
  }

  [[nodiscard]] Bytes size_of(Extent rows, Extent columns, DType wire) const {
    return {input_.sizes.elements(rows) * input_.sizes.elements(columns) * bytes_of(wire)};
  }

  // --- order ---

  void order_by_lane(OpId op, const Earlier& earlier) {
    std::vector<OpId> ops = earlier.waits;
    if (earlier.on_lane != OpId{-1}) {
      ops.push_back(earlier.on_lane);
    }
    for (const OpId before : unimplied(order_, std::move(ops))) {
      wait_for(op, before);
    }
  }

  void order_by_data(const Command& command, const Earlier& earlier) {
    const MemoryOrder::Operands none;
    for (const Part& part : parts_[position(command.op)]) {
      const auto& reads = part.reads ? command.inputs : none;
      const auto& writes = part.writes ? command.outputs : none;
      for (const std::int32_t index : part.first) {
        append(tasks_[static_cast<std::size_t>(index)].after, memory_.conflicts(reads, writes));
      }
    }
    for (const Part& part : parts_[position(command.op)]) {
      for (const std::int32_t index : part.last) {
        memory_.note(index, part.reads ? command.inputs : none, part.writes ? command.outputs : none);
      }
    }
    if (earlier.on_lane != OpId{-1}) {
      wait_for(command.op, earlier.on_lane);
    }
    for (const OpId before : earlier.waits) {
      if (!waits_for_some_of(command.op, before)) {
        wait_for(command.op, before);  // No data dependency implies this wait.
      }
    }
  }

  void wait_for(OpId op, OpId before) {
    for (const Part& part : parts_[position(op)]) {
      for (const std::int32_t index : part.first) {
        for (const Part& ended : parts_[position(before)]) {
          append(tasks_[static_cast<std::size_t>(index)].after, ended.last);
        }
      }
    }
  }

  [[nodiscard]] bool waits_for_some_of(OpId op, OpId before) const {
    for (const Part& part : parts_[position(op)]) {
      for (const std::int32_t index : part.first) {
        const TaskIndices& after = tasks_[static_cast<std::size_t>(index)].after;
        if (std::any_of(after.begin(), after.end(), [&](std::int32_t earlier) {
              const Task& task = tasks_[static_cast<std::size_t>(earlier)];
              return task.op == before && !task.host;
            })) {
          return true;
        }
      }
    }
    return false;
  }

  const ExportInput& input_;
  const Program& program_;
  Rank rank_;
  TaskOptions options_;
  std::int64_t tags_;
  Order order_;
  MemoryOrder memory_;
  std::vector<Task> tasks_;
  std::vector<std::vector<Part>> parts_;  // by op
  std::vector<OpId> last_calculation_;    // by lane; -1: none
  std::vector<OpId> last_on_lane_;        // by lane; -1: none
  std::int32_t host_ = -1;                // the host's last task
  TaskIndices issued_by_;                 // by op: the host's last task when the op was issued
};

}  // namespace

std::vector<Task> tasks_of(const ExportInput& input, Rank rank, const TaskOptions& options) {
  const std::vector<Command> commands = commands_of(input.lowered, rank);
  RankTasks tasks(input, rank, options);
  for (const Command& command : commands) {
    tasks.add(command, commands);
  }
  return std::move(tasks).take();
}

std::string label_of(const Task& task) {
  const auto name = [&] {
    switch (task.kind) {
      case Task::Kind::calculation: return task.host ? "_issue" : "";
      case Task::Kind::send: return "_send";
      case Task::Kind::receive: return "_receive";
      case Task::Kind::collective: return "";
    }
    return "";
  };
  return fmt::format("op{}{}{}", position(task.op), name(), task.step < 0 ? "" : fmt::format("_{}", task.step));
}

std::size_t lane_of(const Program& program, const Task& task) {
  return task.host ? program.lanes.size() : program.ops[position(task.op)].lane;
}

}  // namespace commfuse::reports
