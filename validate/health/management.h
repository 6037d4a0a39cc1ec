// SPDX-License-Identifier: Apache-2.0
// Facts about all GPUs from NVIDIA's management library (NVML): errors, clocks, access between peers, the fabric.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "validate/cuda/management_library.h"

namespace commfuse::validate {

/// States of a GPU on NVSwitches, in the order of nvml.h.
enum class FabricState : std::uint8_t { not_supported, not_started, in_progress, completed };

/// One GPU; what the library does not say is missing.
struct GpuFacts {
  std::string name;
  std::string address;  ///< "0000:1b:00.0", as /sys writes it.
  std::optional<int> clock_mhz, most_clock_mhz, celsius;
  std::optional<std::uint64_t> held_back;                   ///< Why clocks are lower than they could be, as bits.
  std::optional<int> busy_percent;                          ///< Share of the last moments in which a kernel ran.
  std::optional<double> watts, limit_watts, default_watts;  ///< Drawn now; the limit in force, and as delivered.
  std::optional<bool> has_ecc;
  std::optional<std::uint64_t> uncorrected;  ///< Memory errors since the driver was loaded.
  std::optional<bool> remap_pending, remap_failed;
  int links = 0;     ///< NVLinks that the GPU has,
  int links_up = 0;  ///< and that are up.
  FabricState fabric = FabricState::not_supported;
  int fabric_error = 0;  ///< Error of a fabric that is completed.
};

/// Access of one GPU to another one's memory: 0 where it may read or write it, else the library's reason.
struct PeerFacts {
  int from = 0;
  int to = 0;
  int read = 0;
  int write = 0;
};

struct ManagementFacts {
  std::string missing;     ///< Why the library says nothing; empty where it does.
  bool is_broken = false;  ///< The library is here, and does not start.
  std::string driver;      ///< Version.
  std::vector<GpuFacts> gpus;
  std::vector<PeerFacts> peers;  ///< Every ordered pair, where the library knows.
};

using FindFunction = ManagementLibrary::FindFunction;

ManagementFacts management_facts(const FindFunction& find);
/// Asks the library that the loader finds.
ManagementFacts management_facts();

}  // namespace commfuse::validate
