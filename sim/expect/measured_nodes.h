// SPDX-License-Identifier: Apache-2.0
// Reads the nodes in tables of measured collectives, and lists the nodes known to be healthy or degraded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "model/expect/evidence.h"
#include "model/hardware/machine.h"

namespace commfuse::expect {

enum class NodeHealth : std::uint8_t { healthy, degraded, unknown };

/// Looks up a node by the name of its table (the file name without extension) and the number of GPUs that take part.
/// This is the only list of healthy and degraded nodes.
NodeHealth health_of(std::string_view table, std::int64_t gpus);

/// Measurements of one group of GPUs in one run of one table.
struct MeasuredNode {
  std::string table;
  std::string run;
  std::int64_t gpus = 1;
  std::string nccl_version;  ///< Empty if the table does not state it.
  NodeHealth health = NodeHealth::unknown;
  Machine machine;
  std::vector<MeasuredMessage> rows;
};

/// Returns the nodes of every table of collectives, in the order of tables, runs and GPUs. Skips tables of unknown
/// machines and tables that name a machine per row (column hw), rows whose GPUs do not fit the machine, faulty rows,
/// and rows of unknown collectives. Throws ConfigError as read_table does.
std::vector<MeasuredNode> measured_nodes(const std::vector<std::filesystem::path>& tables);

}  // namespace commfuse::expect
