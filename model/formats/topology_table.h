// SPDX-License-Identifier: Apache-2.0
// The table of `nvidia-smi topo -m`:
//
//           GPU0  GPU1  GPU2  GPU3  NIC0  NIC1  CPU Affinity  NUMA Affinity
//   GPU0     X    NV4   PIX   SYS   PIX   SYS   0-31          0
//
//   NV#   that many NVLinks
//   PIX   over one PCIe switch        PXB   over several      PHB   over the host bridge of a CPU
//   NODE  between host bridges of a NUMA node                 SYS   between NUMA nodes (SOC in old drivers)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/text/yaml_document.h"

namespace commfuse {

/// The remedy where a file cannot be what it should be.
inline constexpr std::string_view how_a_table_is_made = "give what `nvidia-smi topo -m` prints";

/// How two devices meet, from near to far.
enum class MeetingLevel : std::uint8_t { self, nvlink, pix, pxb, phb, node, sys };

/// What stands at the crossing of two devices.
struct MeetingCell {
  MeetingLevel level = MeetingLevel::self;
  int links = 0;  // NVLinks
  YamlPlace place;
};

struct TopologyTable {
  int gpus = 0;
  std::vector<std::string> names;               // GPUs first
  std::vector<std::vector<MeetingCell>> cells;  // by GPU, then by device
};

/// No GPU has more NVLinks: H100 and B200.
inline constexpr int most_nvlinks = 18;

/// Throws ConfigError, `path:line:col: sentence; remedy`.
TopologyTable read_topology_table(const std::string& path, std::string_view text);

}  // namespace commfuse
