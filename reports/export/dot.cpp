// SPDX-License-Identifier: Apache-2.0
#include "reports/export/dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "model/program/names.h"
#include "reports/trace_label.h"

namespace commfuse::reports {

namespace {

using Out = std::back_insert_iterator<std::string>;

// Okabe and Ito's palette, which colour-blind readers can also distinguish.
constexpr std::string_view blue = "#0072B2";
constexpr std::string_view orange = "#D55E00";

/// Escapes text for a quoted DOT string. "\n" ends a line of a label, so backslashes are doubled; control characters
/// become blanks.
std::string dot_escaped(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') {
      result += '\\';
    }
    const auto code = static_cast<unsigned char>(letter);
    result += code < 0x20 || code == 0x7f ? ' ' : letter;
  }
  return result;
}

std::string node_of(Rank rank, OpId op) { return fmt::format("r{}_op{}", rank, position(op)); }

std::string_view colour_of(Purpose purpose) {
  switch (purpose) {
    case Purpose::essential: return "#DDEEDD";
    case Purpose::local: return "#F4F0D0";
    case Purpose::communication: return "#DCE9F5";
  }
  return "white";
}

/// Returns the peers of a command, such as "; to 3, from 1"; empty for a command without peers.
std::string peers_of(const Command& command) {
  std::string text = command.target < 0 ? "" : fmt::format("to {}", command.target);
  if (command.source >= 0) {
    text += fmt::format("{}from {}", text.empty() ? "" : ", ", command.source);
  }
  return text.empty() ? text : "; " + text;
}

void write_node(const Program& program, Rank rank, const Command& command, Out out) {
  const Op& op = program.ops[position(command.op)];
  fmt::format_to(out, "    {} [label=\"op {}: {}{}\\n{}\", fillcolor=\"{}\"];\n", node_of(rank, command.op),
                 position(command.op), dot_escaped(op_label(program, op, rank)), peers_of(command),
                 dot_escaped(name_of(program.lanes[op.lane])), colour_of(op.purpose));
}

/// Writes waits, and the order on lanes except where a wait already joins two ops.
void write_order(const Program& program, Rank rank, const std::vector<Command>& commands, Out out) {
  std::vector<std::int32_t> last(program.lanes.size(), -1);
  for (std::size_t index = 0; index < commands.size(); ++index) {
    const Command& command = commands[index];
    const auto edge = [&](std::int32_t from, std::string_view style) {
      fmt::format_to(out, "    {} -> {}{};\n", node_of(rank, commands[static_cast<std::size_t>(from)].op),
                     node_of(rank, command.op), style);
    };
    for (const std::int32_t wait : command.waits) {
      edge(wait, "");
    }
    std::int32_t& before = last[command.lane];
    if (before >= 0 && std::find(command.waits.begin(), command.waits.end(), before) == command.waits.end()) {
      edge(before, " [style=dotted]");
    }
    before = static_cast<std::int32_t>(index);
  }
}

/// Writes edges from this rank to other drawn ranks.
void write_messages(Rank rank, const std::vector<Command>& commands, std::span<const Rank> drawn, Out out) {
  const auto is_drawn = [&](Rank candidate) { return std::find(drawn.begin(), drawn.end(), candidate) != drawn.end(); };
  for (const Command& command : commands) {
    if (command.target >= 0 && is_drawn(command.target)) {
      fmt::format_to(out, "  {} -> {} [color=\"{}\", constraint=false];\n", node_of(rank, command.op),
                     node_of(command.target, command.target_op), blue);
    }
    const auto this_rank = std::find(command.group.begin(), command.group.end(), rank);
    const auto next =
        this_rank == command.group.end() ? this_rank : std::find_if(this_rank + 1, command.group.end(), is_drawn);
    if (next != command.group.end()) {
      fmt::format_to(out, "  {} -> {} [color=\"{}\", dir=none, constraint=false];\n", node_of(rank, command.op),
                     node_of(*next, command.op), orange);
    }
  }
}

}  // namespace

std::string to_dot(const Lowered& lowered, std::span<const Rank> ranks) {
  const Program& program = *lowered.program;
  std::string text;
  std::string messages;
  const Out out = std::back_inserter(text);
  fmt::format_to(out, "digraph schedule {{\n  label=\"{}\";\n", dot_escaped(program.name));
  text += "  rankdir=LR;\n  node [shape=box, style=filled, fontname=\"sans-serif\"];\n";
  for (const Rank rank : ranks) {
    const std::vector<Command> commands = commands_of(lowered, rank);
    fmt::format_to(out, "  subgraph cluster_r{0} {{\n    label=\"rank {0}\";\n", rank);
    for (const Command& command : commands) {
      write_node(program, rank, command, out);
    }
    write_order(program, rank, commands, out);
    text += "  }\n";
    write_messages(rank, commands, ranks, std::back_inserter(messages));
  }
  return text + messages + "}\n";
}

}  // namespace commfuse::reports
