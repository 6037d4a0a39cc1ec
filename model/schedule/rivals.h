// SPDX-License-Identifier: Apache-2.0
// Which exchanges may share the wires, because they are on different lanes and neither is ordered before the other.
#pragma once

#include <vector>

#include "model/schedule/order.h"

namespace commfuse {

/// Fills in `rivals`. O(exchanges x lanes x log ops); O(ops) where one lane has all exchanges. Requires one entry an
/// op.
void add_rivals(const Program& program, const Order& order, std::vector<Meetings>& meetings);

}  // namespace commfuse
