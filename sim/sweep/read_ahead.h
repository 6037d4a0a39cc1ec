// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "sim/sweep/result_store.h"

namespace commfuse {

/// Calls `take` with every row that the store has left, in the order of points. One thread reads and checks rows while
/// another takes those before, if tbb::global_control allows two. A row is valid during its call. Throws what
/// StoreReader::next_point() and `take` throw.
void read_ahead(StoreReader& store, const std::function<void(const StoreRow& row)>& take);

}  // namespace commfuse
