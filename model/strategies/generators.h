// SPDX-License-Identifier: Apache-2.0
// Generators that are defined outside the file of their strategy.
#pragma once

#include "model/strategies/options.h"
#include "model/strategies/stage.h"

namespace commfuse {

Done fuse_ag_ring(const Stage& stage, const StrategyOptions& options);
Done fuse_ag_direct(const Stage& stage, const StrategyOptions& options);
Done fuse_ag_nested(const Stage& stage, const StrategyOptions& options);
Done fuse_rs_ring(const Stage& stage, const StrategyOptions& options);
Done fuse_rs_direct(const Stage& stage, const StrategyOptions& options);
Done serial_ag_gemm_backward(const Stage& stage, const StrategyOptions& options);
Done serial_gemm_rs_backward(const Stage& stage, const StrategyOptions& options);
Done sliced_ag_gemm_backward(const Stage& stage, const StrategyOptions& options);
Done sliced_gemm_rs_backward(const Stage& stage, const StrategyOptions& options);
Done fuse_ag_gemm_backward(const Stage& stage, const StrategyOptions& options);
Done fuse_gemm_rs_backward(const Stage& stage, const StrategyOptions& options);
Done serial_gemm_a2a(const Stage& stage, const StrategyOptions& options);
Done serial_attention_a2a(const Stage& stage, const StrategyOptions& options);
Done sliced_gemm_a2a(const Stage& stage, const StrategyOptions& options);
Done sliced_attention_a2a(const Stage& stage, const StrategyOptions& options);
Done fuse_gemm_a2a(const Stage& stage, const StrategyOptions& options);
Done fuse_attention_a2a(const Stage& stage, const StrategyOptions& options);
Done serial_weight_ag_gemm(const Stage& stage, const StrategyOptions& options);
Done serial_gradient_rs(const Stage& stage, const StrategyOptions& options);
Done sliced_weight_ag_gemm(const Stage& stage, const StrategyOptions& options);
Done sliced_gradient_rs(const Stage& stage, const StrategyOptions& options);
Done fuse_weight_ag_gemm(const Stage& stage, const StrategyOptions& options);
Done fuse_gradient_rs(const Stage& stage, const StrategyOptions& options);
Done fuse_rs_nested(const Stage& stage, const StrategyOptions& options);

}  // namespace commfuse
