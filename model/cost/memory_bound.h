// SPDX-License-Identifier: Apache-2.0
// Adds, packs, copies and norms: kernels that only move bytes.
#pragma once

#include "model/hardware/accelerator.h"
#include "model/units.h"

namespace commfuse {

/// kernel floor + traffic / rate, where rate is the smaller of HBM bandwidth x efficiency and what `sms` SMs can move.
/// `traffic` counts every byte read and written. 0 for no traffic (no kernel). Requires traffic >= 0 and
/// 1 <= sms <= accelerator.sms.
Duration memory_bound_time(const Accelerator& accelerator, Bytes traffic, int sms);

}  // namespace commfuse
