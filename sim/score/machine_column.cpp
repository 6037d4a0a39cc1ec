// SPDX-License-Identifier: Apache-2.0
#include "sim/score/machine_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include "model/text/counted.h"

namespace commfuse::score {

namespace {

/// A clause of a comment: "72: one rack" has 72 GPUs and the text " one rack".
struct Clause {
  std::int64_t gpus = 0;
  std::string_view text;
};

std::optional<Clause> clause_in(std::string_view text) {
  constexpr std::string_view column = "ngpus=";
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  if (text.substr(0, column.size()) == column) {
    text.remove_prefix(column.size());
  }
  Clause clause;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), clause.gpus);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc{} || digits == text.size() || text[digits] != ':') {
    return std::nullopt;
  }
  clause.text = text.substr(digits + 1);
  return clause;
}

}  // namespace

std::string_view framework_in(std::string_view software) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> names{
      {{"vllm/", "vLLM"}, {"sglang/", "SGLang"}}};
  const auto match = std::find_if(names.begin(), names.end(), [&](const auto& name) {
    return software.find(name.first) != std::string_view::npos;
  });
  return match == names.end() ? std::string_view() : match->second;
}

FoundMachine MachineColumn::look_up(std::string_view cell) const {
  if (!framework_.empty()) {
    const FoundMachine by_framework = machines_.by_name(fmt::format("{} {}", cell, framework_));
    if (by_framework.was_named()) {
      return by_framework;
    }
  }
  return machines_.by_name(cell);
}

MachinesByGpus::MachinesByGpus(std::string_view comment, const KnownMachines& machines) {
  FoundMachine last;
  while (!comment.empty()) {
    const std::size_t end = std::min(comment.find(';'), comment.size());
    const std::optional<Clause> clause = clause_in(comment.substr(0, end));
    if (!clause) {
      by_gpus_.clear();
      return;
    }
    const FoundMachine match = machines.in_prose(clause->text);
    last = match.was_named() || !last.was_named() ? match : last;
    by_gpus_[clause->gpus] = last;
    comment.remove_prefix(std::min(end + 1, comment.size()));
  }
}

FoundMachine MachinesByGpus::of(std::int64_t gpus) const {
  const auto entry = by_gpus_.find(gpus);
  return entry != by_gpus_.end()
             ? entry->second
             : FoundMachine{nullptr, fmt::format("the table's comment does not state which machine has {}",
                                                 counted(gpus, "GPU"))};
}

FoundMachine machine_of_table(const Table& table, const Context& context) {
  return machine_of_table(table, context.file_name, context.machines);
}

FoundMachine machine_of_source(const Table& table, const Context& context) {
  const FoundMachine match = context.machines.in_prose(table.comment("source"));
  return match.was_named() ? match : machine_of_table(table, context);
}

FoundMachine machine_of_table(const Table& table, std::string_view file_name, const KnownMachines& machines) {
  FoundMachine match = machines.in_prose(table.comment("hardware"));
  if (match.machine == nullptr && table.comment("hardware").empty()) {
    match = machines.in_prose(file_name);
  }
  return match;
}

}  // namespace commfuse::score
