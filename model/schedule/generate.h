// SPDX-License-Identifier: Apache-2.0
// From an operation (one site, or several in a chain) and a strategy to a Program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/schedule/program.h"
#include "model/schedule/strategies.h"
#include "model/workload/sites.h"

namespace commfuse {

/// One site of the unfused operation. Its sizes come later; here are only the names of its dimensions.
struct OperationStage {
  std::string name;  // of the site, and of the tensor it makes: gate_up
  SiteKind kind = SiteKind::ag_gemm;
  std::string contraction;             // dimension of K: whole for ag_gemm, one block a rank for gemm_rs
  std::string columns;                 // dimension of the output: one block a rank for ag_gemm, whole for gemm_rs
  std::int32_t columns_per_rank = 1;   // ag_gemm: 2 when gate and up lie side by side
  std::optional<Function> activation;  // applied to the output of an ag_gemm
};

/// What is computed, whoever computes it. A gemm_rs after an ag_gemm takes in what the latter puts out.
struct Operation {
  std::string name;
  std::vector<OperationStage> stages;
};

/// Aborts unless 1 <= stages and every gemm_rs that is not first follows an ag_gemm.
Program generate(const Operation& operation, const Mesh& mesh, int axis, const Strategy& strategy,
                 const StrategyOptions& options);

}  // namespace commfuse
