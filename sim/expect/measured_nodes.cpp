// SPDX-License-Identifier: Apache-2.0
#include "sim/expect/measured_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "model/expect/expectation.h"
#include "sim/score/kinds.h"
#include "sim/score/known_machines.h"
#include "sim/score/machine_column.h"
#include "sim/score/row.h"
#include "sim/score/table.h"

namespace commfuse::expect {

namespace {

struct KnownTable {
  std::string_view table;
  NodeHealth health = NodeHealth::healthy;
  std::int64_t gpus = 0;  ///< 0: any number
};

// The sources, or the README of the data, state which nodes are degraded. Nodes not listed here are unknown: smaller
// groups of the L40S server whose eight GPUs are degraded (configs/hardware/l40s-pcie.yaml), 20 racks of GB200, whose
// network no file describes, and a Slingshot cluster without a healthy counterpart.
constexpr std::array known_tables{
    KnownTable{"nccl_a100_1node_vtrain_allreduce"},
    KnownTable{"nccl_a100_2node_allgather"},
    KnownTable{"nccl_a100sxm40_1node_superbench"},
    KnownTable{"nccl_a100sxm80_1node_aic"},
    KnownTable{"nccl_b200_2node_gke_allgather"},
    KnownTable{"nccl_b200sxm_1node_aic"},
    KnownTable{"nccl_b200sxm_1node_aic_2273dir"},
    KnownTable{"nccl_b200sxm_1node_aic_2289"},
    KnownTable{"nccl_h100_ib400_multinode_issue309"},
    KnownTable{"nccl_h100sxm_1node_aic_223"},
    KnownTable{"nccl_h100sxm_1node_aic_v1"},
    KnownTable{"nccl_h100sxm_1node_aic_v2"},
    KnownTable{"nccl_mi300x_rccl"},
    KnownTable{"nccl_rtxpro6000_pcie_aic"},
    KnownTable{"nccl_vllm42324_h100_allreduce"},
    KnownTable{"nccl_l40s_pcie_aic", NodeHealth::degraded, 8},
    KnownTable{"nccl_h100_ib400_2node_degraded_issue319", NodeHealth::degraded},
    KnownTable{"nccl_gh200_2node_cscs_nohook", NodeHealth::degraded},
};

using Nodes = std::map<std::pair<std::string, std::int64_t>, MeasuredNode>;

void read_rows(const score::Table& table, const std::string& stem, score::KnownMachines& machines,
               std::vector<MeasuredNode>& measured) {
  const score::Column op = table.column("op");
  const score::Column gpus = table.column("ngpus");
  const score::Column nodes = table.column("nodes");
  const score::Column bytes = table.column("bytes");
  const score::Column time = table.column("time_us");
  const score::Column run = table.column("run");
  const score::Column version = table.column("nccl_version");
  const score::FoundMachine table_machine = score::machine_of_table(table, stem, machines);
  if (table_machine.machine == nullptr) {
    return;
  }
  Nodes by_run;
  std::map<decltype(key_of(Message{})), int> seen;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    score::Row row(table, i);
    const std::optional<LinkOp> link_op = link_op_named(row.text(op));
    Message message{.op = link_op.value_or(LinkOp::all_gather),
                    .gpus = row.count(gpus, score::max_gpus),
                    .bytes = {row.size(bytes)}};
    const double us = row.microseconds(time);
    const std::int64_t gpus_per_node = table_machine.machine->gpus_per_node;
    message.nodes =
        row.has(nodes) ? row.count(nodes, score::max_gpus) : (message.gpus + gpus_per_node - 1) / gpus_per_node;
    const score::FoundMachine machine =
        machines.over_nodes(*table_machine.machine, static_cast<int>(message.nodes), table.comment("hardware"));
    if (!row.is_sound() || !link_op || machine.machine == nullptr || message.bytes.count == 0 ||
        !fits(*machine.machine, message)) {
      continue;
    }
    // Without a column that names runs, the n-th row of a message belongs to the n-th run.
    const int occurrence = ++seen[{message.op, message.gpus, message.nodes, message.bytes.count}];
    const std::string run_name = row.has(run) ? std::string(row.text(run)) : fmt::format("#{}", occurrence);
    MeasuredNode& node = by_run[{run_name, message.gpus}];
    if (node.rows.empty()) {
      node = {
          stem, run_name, message.gpus, std::string(row.text(version)), health_of(stem, message.gpus), *machine.machine,
          {}};
    }
    node.rows.push_back({message, us});
  }
  for (auto& [key, node] : by_run) {
    measured.push_back(std::move(node));
  }
}

}  // namespace

NodeHealth health_of(std::string_view table, std::int64_t gpus) {
  const auto* const match = std::find_if(known_tables.begin(), known_tables.end(), [&](const KnownTable& known) {
    return known.table == table && (known.gpus == 0 || known.gpus == gpus);
  });
  return match == known_tables.end() ? NodeHealth::unknown : match->health;
}

std::vector<MeasuredNode> measured_nodes(const std::vector<std::filesystem::path>& tables) {
  score::KnownMachines machines;
  std::vector<MeasuredNode> nodes;
  for (const std::filesystem::path& path : tables) {
    const score::Table table = score::read_table(path);
    const score::Kind* kind = score::kind_of(table);
    if (kind != nullptr && kind->name == "collective" && !table.column("hw").exists()) {
      read_rows(table, path.stem().string(), machines, nodes);
    }
  }
  return nodes;
}

}  // namespace commfuse::expect
