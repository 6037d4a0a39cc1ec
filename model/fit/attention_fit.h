// SPDX-License-Identifier: Apache-2.0
// Fits the parameters of model/cost/attention.h to measured attention calls.
#pragma once

#include <span>
#include <string>

#include "model/cost/attention.h"
#include "model/fit/call_fit.h"
#include "model/hardware/accelerator.h"

namespace commfuse {

/// One call of a fused kernel on all SMs.
using MeasuredAttention = MeasuredCall<AttentionSize>;
using AttentionFit = CallFit<AttentionSize>;

/// Fits by robust least squares on log(predicted / measured); rows of one layer (heads, kv_heads, head_dim) count as
/// one observation in the standard errors. `machine` is the machine's name in the table (part of the key that selects
/// the held-out rows), `source` the table's name. If fewer than 30 sizes remain for the fit, all rows are fitted with
/// the accelerator's own parameters as the prior (few_rows.h). Requires at least one row, times above 0 and supported
/// dtypes.
AttentionFit fit_attention(const Accelerator& accelerator, std::span<const MeasuredAttention> rows,
                           const std::string& machine, const std::string& source);

/// Returns the lines of a hardware file's `attention:` map that the fit determined, each indented by `indent` spaces.
std::string attention_yaml(const AttentionFit& fit, int indent);

}  // namespace commfuse
