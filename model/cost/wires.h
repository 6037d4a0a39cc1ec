// SPDX-License-Identifier: Apache-2.0
// What the exchanges of a program take on a machine, beside those of other lanes.
#pragma once

#include <vector>

#include "model/cost/costs.h"
#include "model/hardware/machine.h"
#include "model/program/order.h"
#include "model/program/sizes.h"

namespace commfuse {

struct PriceOptions;

/// Sets the durations of exchanges, and where pairs of GPUs differ every op's by rank. Rank r runs on GPU r.
///
/// An exchange shares the wires with those that stand abreast of it on other lanes (Meetings::rivals), all ranks being
/// at the same op: of each segment that it crosses it gets an equal part, and never more than its own rate. So prices
/// stay fixed, and are those of lanes that are all busy: what seldom meets is priced too high. That is the wire's own
/// doing and no interference, so it holds without interference too; docs/decisions/0040 says why. Requires durations of
/// all ops, undisturbed ones too.
void price_exchanges(const Program& program, const std::vector<Meetings>& meetings, const Sizes& sizes,
                     const Machine& machine, Costs& costs);
/// Sets the same durations as if every exchange had its wires for itself.
void price_exchanges_alone(const Program& program, const Sizes& sizes, const Machine& machine, Costs& costs);

/// As price(), with exchanges that have the wires for themselves; kernels lose SMs as `meetings` say.
Costs price_alone(const Program& program, const std::vector<Meetings>& meetings, const Sizes& sizes,
                  const Machine& machine, const PriceOptions& options);

/// Whether exchanges of several lanes may share wires.
bool shares_wires(const Program& program);

}  // namespace commfuse
