// SPDX-License-Identifier: Apache-2.0
// Words of tables for the all-reduce kernels of serving frameworks.
#pragma once

#include <optional>
#include <string_view>

#include "model/hardware/link.h"

namespace commfuse::score {

/// Kind of such rows in the key that chooses the held-back ones (model/fit/holdout.h).
inline constexpr std::string_view custom_all_reduce_kind = "custom_all_reduce";

/// Why rows with other kernels are left out.
inline constexpr std::string_view why_not_a_framework =
    "calls that Python issues one at a time, whose cost the time includes";

/// Returns the framework of a column's cell whose kernels were timed as a captured graph runs them; nullopt for calls
/// that Python issues one by one, and for others. TensorRT-LLM's rows do not say, and are as fast as graphs.
std::optional<AllReduceKernel> framework_named(std::string_view cell);

}  // namespace commfuse::score
