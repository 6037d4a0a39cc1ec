// SPDX-License-Identifier: Apache-2.0
// The table of `nvidia-smi topo -m`:
//
//           GPU0  GPU1  GPU2  GPU3  NIC0  NIC1  CPU Affinity  NUMA Affinity
//   GPU0     X    NV4   PIX   SYS   PIX   SYS   0-31          0
//
//   NV#   over # NVLinks
//   PIX   over one PCIe switch        PXB   over several      PHB   over the host bridge of a CPU
//   NODE  between host bridges of a NUMA node                 SYS   between NUMA nodes (SOC in old drivers)
//
// Tables of AMD's tools are converted to this form: XGMI becomes NV#.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/formats/topology_file.h"
#include "model/text/yaml_document.h"

namespace commfuse {

/// Remedy in messages about a wrong table.
inline constexpr std::string_view how_a_table_is_made = "give what `nvidia-smi topo -m` prints";

/// Levels at which two devices meet, from near to far. `relayed` means over NVLinks through other GPUs.
enum class MeetingLevel : std::uint8_t { self, nvlink, relayed, pix, pxb, phb, node, sys };

/// Cell of a table, for two devices.
struct MeetingCell {
  MeetingLevel level = MeetingLevel::self;
  int links = 0;  // NVLinks
  YamlPlace place;
};

struct TopologyTable {
  std::string_view tool = how_a_table_is_made;  // remedy in messages
  std::string_view link = "an NVLink";          // name of the link in messages about nvlink_rate
  bool may_have_crossbar = true;
  int gpus = 0;
  std::vector<std::string> names;               // GPUs first
  std::vector<std::vector<MeetingCell>> cells;  // by GPU, then by device
  std::vector<int> numa;                        // by GPU, from AMD's tables; may be empty
};

/// Largest number of NVLinks of any GPU (H100 and B200).
inline constexpr int max_nvlinks = 18;

/// Reads the table of `nvidia-smi topo -m`. Throws ConfigError `path:line:col: sentence; remedy`.
TopologyTable read_topology_table(const std::string& path, std::string_view text);

/// Returns true if AMD's tools wrote the text.
bool is_rocm_topology(std::string_view text);
/// Reads the output of `rocm-smi --showtopo` or `amd-smi topology`. Throws ConfigError as read_topology_table does.
TopologyTable read_rocm_table(const std::string& path, std::string_view text);

/// Returns the wires that the table of one node implies. Throws ConfigError as read_topology_table does.
NodeWires wires_of(const std::string& path, TopologyTable table, const WireRates& rates);

}  // namespace commfuse
