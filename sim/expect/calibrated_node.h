// SPDX-License-Identifier: Apache-2.0
// A machine as `commfuse-sim calibrate` makes it from what one node measured.
#pragma once

#include "model/hardware/machine.h"
#include "sim/expect/measured_nodes.h"

namespace commfuse::expect {

/// The node's own machine with its collectives fitted to the node's rows; what they leave open stays. The file is
/// written to a temporary folder and read again, as an operator's would be. Requires rows of one node. Throws
/// ConfigError where nothing can be fitted, std::runtime_error where no file can be written.
Machine calibrated_on(const MeasuredNode& node);

}  // namespace commfuse::expect
