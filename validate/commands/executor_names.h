// SPDX-License-Identifier: Apache-2.0
// The values of --executor.
#pragma once

#include <array>
#include <string_view>

namespace commfuse::validate {

/// Executors that can measure times.
inline constexpr std::array<std::string_view, 5> timed_executors{"cpu", "cuda-virtual", "cuda-peer", "mpi", "nccl"};

/// Executors that `check` can verify.
inline constexpr std::array<std::string_view, 6> checked_executors{"reference", "cpu", "cuda-virtual",
                                                                   "cuda-peer", "mpi", "nccl"};

}  // namespace commfuse::validate
