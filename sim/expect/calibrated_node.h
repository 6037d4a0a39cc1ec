// SPDX-License-Identifier: Apache-2.0
// The machine that `commfuse-sim calibrate` derives from the measurements of one node.
#pragma once

#include "model/hardware/machine.h"
#include "sim/expect/measured_nodes.h"

namespace commfuse::expect {

/// Returns the node's machine with the collectives fitted to the node's rows; parameters that the rows do not determine
/// keep their values. The hardware file is written to a temporary folder and read again, as an operator would do.
/// Requires `node.machine` to have a single node. Throws ConfigError if nothing can be fitted, and std::runtime_error
/// if the file cannot be written.
Machine calibrated_on(const MeasuredNode& node);

}  // namespace commfuse::expect
