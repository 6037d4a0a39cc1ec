// SPDX-License-Identifier: Apache-2.0
// Time of adds, packs, copies and norms: kernels that only move bytes.
#pragma once

#include "model/hardware/accelerator.h"
#include "model/units.h"

namespace commfuse {

/// Returns kernel floor + traffic / rate, where rate is the smaller of HBM bandwidth x efficiency and the rate that
/// `sms` SMs can move. `traffic` counts every byte read and written; no traffic needs no kernel and takes 0. Requires
/// traffic >= 0 and 1 <= sms <= accelerator.sms.
Duration memory_bound_time(const Accelerator& accelerator, Bytes traffic, int sms);

}  // namespace commfuse
