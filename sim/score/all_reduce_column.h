// SPDX-License-Identifier: Apache-2.0
// Names in tables for the all-reduce kernels of serving frameworks.
#pragma once

#include <optional>
#include <string_view>

#include "model/hardware/link.h"

namespace commfuse::score {

/// Kind of these rows in the key that selects held-out rows (model/fit/holdout.h).
inline constexpr std::string_view custom_all_reduce_kind = "custom_all_reduce";

/// The reason for skipping rows with other kernels.
inline constexpr std::string_view why_not_a_framework =
    "calls issued one at a time from Python; the time includes the cost of the call";

/// Returns the framework that a cell names if its kernel was timed in a captured graph; nullopt for calls that Python
/// issues one by one, and for other cells. TensorRT-LLM's rows do not state how they were timed, but are as fast as
/// graphs.
std::optional<AllReduceKernel> framework_named(std::string_view cell);

}  // namespace commfuse::score
