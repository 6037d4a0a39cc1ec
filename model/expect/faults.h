// SPDX-License-Identifier: Apache-2.0
// Faults of a node or between nodes. Every fault is a change of the machine, at several degrees, so the model itself
// predicts how it slows each collective and size.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "model/hardware/machine.h"

namespace commfuse {

struct Fault {
  std::string_view name;     ///< for example "missing_nvls"
  std::string_view summary;  ///< a sentence without its full stop
  std::string_view next;     ///< command that gives more information
  /// Returns the machine at each degree of the fault; empty if the machine cannot have the fault.
  std::vector<Machine> (*degrees)(const Machine& machine);
  double weight = 1.0;  ///< frequency relative to other faults before any measurement: assumed
  /// True if transfers may hide the fault: a slow launch delays only kernels that are shorter than the launch, so
  /// bandwidth-limited messages keep their time.
  bool hides_behind_transfers = false;
};

/// Returns the faults of one node, then those of a network.
std::span<const Fault> all_faults();

/// Returns null if no fault has that name.
const Fault* fault_named(std::string_view name);

}  // namespace commfuse
