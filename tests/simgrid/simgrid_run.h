// SPDX-License-Identifier: Apache-2.0
// Runs a program in SimGrid, to compare its times with those of the engine.
#pragma once

#include <vector>

#include "model/cost/fluid.h"
#include "model/program/lower.h"
#include "model/program/sizes.h"

namespace commfuse::test {

/// Returns when each op ends, in seconds, ordered by rank and then by position in the rank's commands. Links, routes,
/// latencies and caps are those of the wiring; kernels take their costs and do not slow each other. SimGrid computes
/// the shares of links over time.
///
/// A transfer waits for both its ends, sleeps for its latency and then moves its bytes. Links have no latency in
/// SimGrid, because SimGrid shares a link in proportion to the inverse of latencies, as TCP does; without latencies its
/// shares are max-min fair.
///
/// Requires the program of `lowered` to have no collectives, and its exchanges to use the rendezvous protocol, over
/// wires of one stage.
std::vector<double> ends_in_simgrid(const Lowered& lowered, const Sizes& sizes, const Fluid& fluid);

}  // namespace commfuse::test
