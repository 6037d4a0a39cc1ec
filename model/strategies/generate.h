// SPDX-License-Identifier: Apache-2.0
// Generates a Program from an operation (one site, or several in a chain) and a strategy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/program/program.h"
#include "model/strategies/strategies.h"
#include "model/workload/sites.h"

namespace commfuse {

/// One site of the unfused operation and the ops around it. It contains only the names of its dimensions; sizes are
/// bound later.
struct OperationStage {
  std::string name;  // name of the site, and of the tensor that it computes: gate_up
  SiteKind kind = SiteKind::ag_gemm;
  // Dimension of K: whole for ag_gemm, its backward pass, mlp_ar, gemm_a2a and weight_ag_gemm; one block per rank for
  // other kinds.
  std::string contraction;
  // Dimension of the output (mlp_ar: of its first GEMM): one block per rank if `contraction` is whole.
  std::string columns;
  std::int32_t columns_per_rank = 1;  // blocks: 2 when gate and up are side by side
  // In the backward pass the dimensions are those of the forward GEMM.
  bool contraction_is_cut = false;  // weight_ag_gemm: also split over the ranks, like the columns of another stage
  // Around an ag_gemm:
  bool norm = false;                   // its input is normalized first
  std::optional<Function> activation;  // applied to its output; mlp_ar: between its GEMMs
  // Around a gemm_rs or attention_rs:
  bool residual = false;  // the previous residual (at first the chain's input) is added to its output
};

/// The operation, independent of strategies. The input of each stage is the output of the previous stage. Stages of
/// kind gradient_rs follow the weight_ag_gemm stages, one for each of them, in reverse order.
struct Operation {
  std::string name;
  std::vector<OperationStage> stages;
};

/// Returns true for data parallelism: each rank has its own tokens, and the weights are sharded.
bool is_data_parallel(const Operation& operation);

/// Returns the ranks of a schedule as a mesh: {tp: ranks}, or {node: ranks / inner, tp: inner} for nested rings.
/// (generate calls the axis dp if the operation is data parallel.)
Mesh mesh_of(std::int32_t ranks, const StrategyOptions& options);

/// Generates the program. Aborts unless the operation has a stage, the dimensions of adjacent stages fit, and the
/// strategy supports the operation with `options` on `ranks` ranks. Throws ConfigError if the schedule needs too much
/// memory for this number of ranks.
Program generate(const Operation& operation, std::int32_t ranks, const Strategy& strategy,
                 const StrategyOptions& options);
/// Generates the program along one axis of a mesh, as a flat ring; the other axes repeat it.
Program generate(const Operation& operation, const Mesh& mesh, int axis, const Strategy& strategy,
                 const StrategyOptions& options);

}  // namespace commfuse
