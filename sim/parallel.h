// SPDX-License-Identifier: Apache-2.0
// A loop over all cores.
#pragma once

#include <cstddef>
#include <functional>

namespace commfuse {

/// Calls `body` once with every number below `count`, on as many threads as tbb::global_control allows, in any order.
/// What is written before is seen by every call, and what a call writes by whoever comes behind the loop. Throws what
/// a call throws.
void for_each_index(std::size_t count, const std::function<void(std::size_t)>& body);

}  // namespace commfuse
