// SPDX-License-Identifier: Apache-2.0
// Finds transfers that may share the wires, because they are on different lanes and neither is ordered before the
// other.
#pragma once

#include <vector>

#include "model/program/order.h"

namespace commfuse {

/// Fills in `rivals`. Among the concurrent sends of another in-order lane, the rival is the send at the same position,
/// counted from where the two lanes begin to run concurrently: the first is paired with the first, the second with the
/// second. A lane with fewer sends has completed them by then and has no rival. O(exchanges x lanes x log ops); O(ops)
/// if one lane has all exchanges. Requires `meetings` to have one entry per op.
void add_rivals(const Program& program, const Order& order, std::vector<Meetings>& meetings);

/// Fills in `contenders`, lane by lane in order: among sends and collectives that may be under way at the same time,
/// all pairs in which one is a collective. O(ops) if no lane has collectives or only one lane has any transfers.
/// Requires `meetings` to have one entry per op.
void add_contenders(const Program& program, const Order& order, std::vector<Meetings>& meetings);

}  // namespace commfuse
