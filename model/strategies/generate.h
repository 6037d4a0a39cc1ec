// SPDX-License-Identifier: Apache-2.0
// From an operation (one site, or several in a chain) and a strategy to a Program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/program/program.h"
#include "model/strategies/strategies.h"
#include "model/workload/sites.h"

namespace commfuse {

/// One site of the unfused operation and what surrounds it. Its sizes come later; here are only the names of its
/// dimensions.
struct OperationStage {
  std::string name;  // of the site, and of the tensor it makes: gate_up
  SiteKind kind = SiteKind::ag_gemm;
  std::string contraction;            // dimension of K: whole for *_gemm and gemm_a2a, one block a rank for the others
  std::string columns;                // dimension of the output: one block a rank where that of K is whole
  std::int32_t columns_per_rank = 1;  // ag_gemm: 2 when gate and up lie side by side
  // Backward the dimensions are those of the forward product.
  bool contraction_is_cut = false;  // weight_ag_gemm: over the ranks too, as the columns of another stage
  // Around an ag_gemm:
  bool norm = false;                   // its input is normed first
  std::optional<Function> activation;  // its output goes through this
  // Around a gemm_rs or attention_rs:
  bool residual = false;  // what the chain began with, or the residual before, is added to its output
};

/// What is computed, whoever computes it. Every stage takes in what the one before puts out; stages of kind gradient_rs
/// go back through the weight_ag_gemm stages before them, the last first.
struct Operation {
  std::string name;
  std::vector<OperationStage> stages;
};

/// Whether its ranks have tokens of their own and share the weights, and not the reverse.
bool is_data_parallel(const Operation& operation);

/// The ranks of a schedule as a mesh: {tp: ranks}, or {node: ranks / inner, tp: inner} for nested rings. (generate
/// calls the axis dp where the operation is data parallel.)
Mesh mesh_of(std::int32_t ranks, const StrategyOptions& options);

/// Aborts unless there is a stage, the dimensions of neighbours fit, and the strategy applies and does not refuse.
/// Throws ConfigError where there are too many ranks to hold the schedule.
Program generate(const Operation& operation, std::int32_t ranks, const Strategy& strategy,
                 const StrategyOptions& options);
/// The same along one axis of a mesh, as a flat ring; the other axes repeat it.
Program generate(const Operation& operation, const Mesh& mesh, int axis, const Strategy& strategy,
                 const StrategyOptions& options);

}  // namespace commfuse
