// SPDX-License-Identifier: Apache-2.0
// Sanitizers and line counters slow proofs a hundredfold. Proofs of all schedules then stop at fewer ranks, which run
// the same code.
#pragma once

namespace commfuse {

#ifdef COMMFUSE_SLOW_BUILD
inline constexpr bool slow_build = true;
#else
inline constexpr bool slow_build = false;
#endif

}  // namespace commfuse
