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

/// One GPU. Facts that the library does not report are empty.
struct GpuFacts {
  std::string name;
  std::string address;  ///< "0000:1b:00.0", as in /sys.
  std::optional<int> clock_mhz, max_clock_mhz, celsius;
  std::optional<std::uint64_t> throttled_by;                ///< NVML's bit mask of reasons for lower clocks.
  std::optional<int> busy_percent;                          ///< Recent GPU utilization.
  std::optional<double> watts, limit_watts, default_watts;  ///< Current draw, current limit, default limit.
  std::optional<bool> has_ecc;
  std::optional<std::uint64_t> uncorrected;  ///< Memory errors since the driver was loaded.
  std::optional<bool> remap_pending, remap_failed;
  int links = 0;     ///< NVLinks of the GPU.
  int links_up = 0;  ///< NVLinks that are up.
  FabricState fabric = FabricState::not_supported;
  int fabric_error = 0;  ///< Error of the fabric's setup; valid if `fabric` is completed.
};

/// Access of GPU `from` to the memory of GPU `to`, by the indices that nvidia-smi shows. `read` and `write` are 0 if
/// allowed, otherwise the library's reason.
struct PeerFacts {
  int from = 0;
  int to = 0;
  int read = 0;
  int write = 0;
};

struct ManagementFacts {
  std::string missing;     ///< Why the library reports nothing; empty if it reports facts.
  bool is_broken = false;  ///< True if the library is installed but does not start.
  std::string driver;      ///< Version.
  std::vector<GpuFacts> gpus;
  std::vector<PeerFacts> peers;  ///< Every ordered pair that the library reports.
};

using FindFunction = ManagementLibrary::FindFunction;

ManagementFacts management_facts(const FindFunction& find);
/// Uses the library that the dynamic loader finds.
ManagementFacts management_facts();

}  // namespace commfuse::validate
