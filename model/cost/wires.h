// SPDX-License-Identifier: Apache-2.0
// What the exchanges of a program take on a machine, beside those of other lanes.
#pragma once

#include <vector>

#include "model/cost/costs.h"
#include "model/hardware/machine.h"
#include "model/schedule/order.h"
#include "model/schedule/sizes.h"

namespace commfuse {

/// Sets the durations of exchanges, and where pairs of GPUs differ every op's by rank. Rank r runs on GPU r.
///
/// Lanes whose exchanges may be under way at once (Meetings::rivals) share the wires all the time, whenever they meet:
/// prices stay fixed, and a schedule whose lanes seldom meet is priced too high on a switch. Exchanges across nodes do
/// not share with those inside. That is the wire's own doing and no interference, so it holds without interference too;
/// docs/decisions/0005 says why. Requires durations of all ops, undisturbed ones too.
void price_exchanges(const Program& program, const std::vector<Meetings>& meetings, const Sizes& sizes,
                     const Machine& machine, Costs& costs);

/// Whether exchanges of several lanes may share wires.
bool shares_wires(const Program& program);

}  // namespace commfuse
