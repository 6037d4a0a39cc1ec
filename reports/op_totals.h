// SPDX-License-Identifier: Apache-2.0
// Operations and bytes of an op at one point, for readers of a report or trace who price the op themselves.
#pragma once

#include "model/program/program.h"
#include "model/program/sizes.h"
#include "model/units.h"

namespace commfuse::reports {

struct OpTotals {
  // Floating-point operations: a fused multiply-add counts as two, causal attention as half of full attention. Counts
  // that exceed 64 bits are capped.
  std::int64_t operations = 0;
  Bytes moved;  // bytes read and written if every operand moves once
};

/// Returns the totals of a gemm, an attention or an elementwise op; zeros for communication.
OpTotals totals_of(const Sizes& sizes, const Shape& shape);

}  // namespace commfuse::reports
