// SPDX-License-Identifier: Apache-2.0
// Finds transfers that may share the wires, because they are on different lanes and neither is ordered before the
// other.
#pragma once

#include <vector>

#include "model/program/order.h"

namespace commfuse {

/// Fills in `rivals`. Among the sends of another in-order lane that may be under way meanwhile, the one at the same
/// position counts: from the place where the lanes began to run beside each other, the first beside the first, the
/// second beside the second. A lane with fewer sends has ended by then and has no rival. O(exchanges x lanes x log
/// ops); O(ops) if one lane has all exchanges. Requires one entry per op.
void add_rivals(const Program& program, const Order& order, std::vector<Meetings>& meetings);

/// Fills in `contenders`, lane by lane in order: among sends and collectives that may be under way at the same time,
/// all pairs in which one is a collective. O(ops) if no lane has collectives or only one lane has any transfers.
/// Requires one entry per op.
void add_contenders(const Program& program, const Order& order, std::vector<Meetings>& meetings);

}  // namespace commfuse
