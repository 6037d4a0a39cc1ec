// SPDX-License-Identifier: Apache-2.0
// Reads the wires of a node from the output of its tools: the topology file that NCCL or RCCL writes
// (NCCL_TOPO_DUMP_FILE), `nvidia-smi topo -m`, `rocm-smi --showtopo` and `amd-smi topology`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/hardware/topology.h"
#include "model/units.h"

namespace commfuse {

/// Rates in one direction that the file does not state, or that override its own.
struct WireRates {
  std::optional<BytesPerSecond> nvlink;  ///< One NVLink or xGMI link; NCCL's files state the GPUs' generation instead.
  std::optional<BytesPerSecond> pcie;    ///< One PCIe wire; NCCL's files state it.
  std::optional<BytesPerSecond> root;    ///< Between two sockets; without this rate, they are not joined.
};

/// Largest number of GPUs in a file.
inline constexpr int max_gpus_of_a_file = 64;

/// Reads a file in any of these formats, which it detects from the contents. Throws ConfigError `path:line:col:
/// sentence; remedy`.
NodeWires read_topology_file(const std::string& path, const WireRates& rates);

NodeWires read_nccl_topology(const std::string& path, const std::string& text, const WireRates& rates);
NodeWires read_topology_matrix(const std::string& path, const std::string& text, const WireRates& rates);
NodeWires read_rocm_topology(const std::string& path, const std::string& text, const WireRates& rates);

/// Returns the NIC that each GPU uses, given distances[gpu][nic]: among its nearest NICs, the one that the fewest
/// lower-numbered GPUs use; on ties, the lowest. NICs that any GPU uses are renumbered from 0, in their order.
std::vector<int> nearest_nics(const std::vector<std::vector<int>>& distances);

}  // namespace commfuse
