// SPDX-License-Identifier: Apache-2.0
// Sanitizers and counters of lines slow proofs a hundredfold. Those over all schedules then stop at fewer ranks, where
// the code that runs is the same.
#pragma once

namespace commfuse {

#ifdef COMMFUSE_SLOW_BUILD
inline constexpr bool slow_build = true;
#else
inline constexpr bool slow_build = false;
#endif

}  // namespace commfuse
