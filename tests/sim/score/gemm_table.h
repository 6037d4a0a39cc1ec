// SPDX-License-Identifier: Apache-2.0
// Tables of measured GEMMs, as the tests of scores write them.
#pragma once

#include <string_view>

#include "model/cost/gemm.h"
#include "model/hardware/machine.h"

namespace commfuse::score {

inline constexpr std::string_view gemm_header = "hw,dtype,m,n,k,time_us\n";

/// Returns the predicted time of a GEMM that runs alone.
inline double gemm_us(const Machine& machine, const GemmSize& size) {
  return to_microseconds(estimate_gemm(machine.accelerator, size, machine.accelerator.sms).time);
}

}  // namespace commfuse::score
