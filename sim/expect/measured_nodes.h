// SPDX-License-Identifier: Apache-2.0
// Nodes in tables of measured collectives, and which of those are known to be healthy or degraded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "model/expect/evidence.h"
#include "model/hardware/machine.h"

namespace commfuse::expect {

enum class Known : std::uint8_t { healthy, degraded, unknown };

/// By the table's name without its ending and the GPUs that take part. The one list of both.
Known known_of(std::string_view table, std::int64_t gpus);

/// What one group of GPUs of one run of one table measured.
struct MeasuredNode {
  std::string table;
  std::string run;
  std::int64_t gpus = 1;
  std::string nccl_version;  ///< Empty where the table does not say.
  Known known = Known::unknown;
  Machine machine;
  std::vector<MeasuredMessage> rows;
};

/// Nodes of every table of collectives in a folder: all but those whose machine nobody knows, whose GPUs do not fit it,
/// and rows of other collectives. In the order of tables, runs and GPUs. Throws ConfigError as read_table.
std::vector<MeasuredNode> measured_nodes(const std::vector<std::filesystem::path>& tables);

}  // namespace commfuse::expect
