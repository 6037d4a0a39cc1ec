// SPDX-License-Identifier: Apache-2.0
// The wires of a node as its own tools print them: the topology of NCCL and RCCL (NCCL_TOPO_DUMP_FILE),
// `nvidia-smi topo -m`, `rocm-smi --showtopo` and `amd-smi topology`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/hardware/topology.h"
#include "model/units.h"

namespace commfuse {

/// Rates that such a file does not state, or that overrule its own. One direction.
struct WireRates {
  std::optional<BytesPerSecond> nvlink;  ///< One NVLink or xGMI link; NCCL's files tell it by the GPUs' generation.
  std::optional<BytesPerSecond> pcie;    ///< A PCIe wire; NCCL's files have it.
  std::optional<BytesPerSecond> root;    ///< Between two sockets; without it they are not joined.
};

/// Most GPUs of a file.
inline constexpr int most_gpus_of_a_file = 64;

/// Whichever of these formats it is, told by what it contains. Throws ConfigError, `path:line:col: sentence; remedy`.
NodeWires read_topology_file(const std::string& path, const WireRates& rates);

NodeWires read_nccl_topology(const std::string& path, const std::string& text, const WireRates& rates);
NodeWires read_topology_matrix(const std::string& path, const std::string& text, const WireRates& rates);
NodeWires read_rocm_topology(const std::string& path, const std::string& text, const WireRates& rates);

/// Returns the NIC that each GPU uses when distances[gpu][nic] are known: among its nearest NICs, the one that fewest
/// GPUs before it use, then the lowest. NICs that any GPU uses are renumbered from 0, in their order.
std::vector<int> nearest_nics(const std::vector<std::vector<int>>& distances);

}  // namespace commfuse
