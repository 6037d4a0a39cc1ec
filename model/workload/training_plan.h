// SPDX-License-Identifier: Apache-2.0
// How a training step is spread over GPUs and over time: degrees of parallelism, batches, what is kept and what is
// computed again.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/dtype.h"
#include "model/workload/model_flops.h"
#include "model/workload/sites.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// What all data-parallel ranks hold one part of each (Rajbhandari et al., "ZeRO", 2020, section 5): nothing, the
/// optimizer's state, its gradients too, the weights too.
enum class Zero : std::uint8_t { none, optimizer, gradients, weights };

enum class Optimizer : std::uint8_t {
  adam,  ///< A copy of the weights and two moments, fp32.
  sgd    ///< A copy of the weights and a momentum, fp32.
};

inline constexpr std::array all_optimizers{Optimizer::adam, Optimizer::sgd};
std::string_view name_of(Optimizer optimizer);
std::optional<Optimizer> optimizer_named(std::string_view name);

/// In which order a stage takes its passes.
enum class PipelineSchedule : std::uint8_t {
  one_forward_one_backward,  ///< 1F1B; interleaved where a stage has several pieces.
  zero_bubble  ///< ZB-H1 (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024): gradients of weights come later.
};

inline constexpr std::array all_pipeline_schedules{PipelineSchedule::one_forward_one_backward,
                                                   PipelineSchedule::zero_bubble};
/// "1f1b", "zero_bubble".
std::string_view name_of(PipelineSchedule schedule);
std::optional<PipelineSchedule> pipeline_schedule_named(std::string_view name);

struct TrainingPlan {
  std::int64_t tensor = 1;         ///< Ranks that share each product. Innermost, so inside a node where it fits.
  bool sequence_parallel = false;  ///< The same ranks share the tokens of norms and residuals.
  std::int64_t pipeline = 1;       ///< Stages.
  std::int64_t interleave = 1;     ///< Pieces of the model a stage has.
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  std::int64_t data = 1;     ///< Replicas.
  std::int64_t context = 1;  ///< Ranks that share the tokens of a sequence, and gather its keys and values.
  /// Ranks that share the tokens of a sequence, and its heads while they attend (Jacobs et al., "DeepSpeed Ulysses",
  /// 2023). With context ranks as well, both at once (Fang and Zhao, "USP", 2024).
  std::int64_t ulysses = 1;
  std::int64_t expert = 1;  ///< Ranks among the replicas that share the experts.
  Zero zero = Zero::none;

  std::int64_t global_batch = 1;  ///< Sequences of a step, all replicas together.
  std::int64_t micro_batch = 1;   ///< Sequences of one pass of a replica.
  std::int64_t seq = 2048;

  Recompute recompute = Recompute::none;
  bool fused_attention = true;  ///< Scores are never written out (FlashAttention).
  bool dropout = false;         ///< Behind attention and MLP, and on scores where those are written out.
  Optimizer optimizer = Optimizer::adam;
  DType dtype = DType::bf16;           ///< Of weights, activations and the wire.
  DType gradient_dtype = DType::fp32;  ///< Gradients are summed up in it.
  bool overlap_gradients = true;       ///< Reduced beside the backward pass, bucket by bucket; else behind it.

  /// Where the product leaves the range, its end.
  [[nodiscard]] std::int64_t gpus() const {
    constexpr std::int64_t most = std::int64_t{1} << 53;
    const std::int64_t a_stage = replicas() < most / tensor ? tensor * replicas() : most;
    return a_stage < most / pipeline ? pipeline * a_stage : most;
  }
  /// Ranks that share the tokens of a sequence, tensor ranks aside.
  [[nodiscard]] std::int64_t sequence_ranks() const { return context * ulysses; }
  /// Ranks that hold the same weights.
  [[nodiscard]] std::int64_t replicas() const { return data * sequence_ranks(); }
  /// How many of tensor, pipeline, data, context, Ulysses and expert parallelism are above 1.
  [[nodiscard]] int kinds_of_parallelism() const {
    return static_cast<int>(tensor > 1) + static_cast<int>(pipeline > 1) + static_cast<int>(data > 1) +
           static_cast<int>(context > 1) + static_cast<int>(ulysses > 1) + static_cast<int>(expert > 1);
  }
  [[nodiscard]] std::int64_t micro_batches() const { return global_batch / (data * micro_batch); }
  /// Whether replicas share the gradients of every micro-batch: with ZeRO 3, or ZeRO 2 without a pipeline, as DeepSpeed
  /// does. With one, whose stages have several micro-batches under way, they are added up whole and shared behind the
  /// last, as PyTorch's FSDP does there (pytorch/torchtitan, distributed/pipeline_parallel.py).
  [[nodiscard]] bool scatters_each_pass() const {
    return zero == Zero::weights || (zero == Zero::gradients && pipeline == 1 && micro_batches() > 1);
  }
  /// Of one pass on one rank, before tensor ranks share them.
  [[nodiscard]] std::int64_t tokens_per_pass() const { return micro_batch * seq / sequence_ranks(); }
};

/// Throws ConfigError, one sentence that names the two settings that clash and a remedy.
void require_possible(const Transformer& model, const TrainingPlan& plan, KeyHeads key_heads = KeyHeads::split);

/// Layers of each piece of the model, in order; the stage of piece i is i mod pipeline. Even, or with one layer less in
/// the first and in the last piece, where embedding and logits stand for a layer each, even if none is left (as in
/// Llama 3 405B: Llama team, 2024, section 3.3.2). Requires a possible plan.
std::vector<std::int64_t> layers_by_piece(const Transformer& model, const TrainingPlan& plan);

}  // namespace commfuse
