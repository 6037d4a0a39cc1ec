// SPDX-License-Identifier: Apache-2.0
// What may be wrong with a node or between nodes: every fault is the machine changed as it would be, at several
// degrees, so the model itself says how each collective and size would suffer.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "model/hardware/machine.h"

namespace commfuse {

struct Fault {
  std::string_view name;     ///< "missing_nvls"
  std::string_view summary;  ///< A sentence without its point.
  std::string_view next;     ///< The command that tells more.
  /// The machine at each degree of the fault; none where the machine cannot have it.
  std::vector<Machine> (*degrees)(const Machine& machine);
  double weight = 1.0;  ///< How often beside the others, before anything was measured: assumed.
};

/// The faults of one node, then those of a network.
std::span<const Fault> all_faults();

/// Nothing where there is none of that name.
const Fault* fault_named(std::string_view name);

}  // namespace commfuse
