// SPDX-License-Identifier: Apache-2.0
// Memory that a GPU needs during a training step.
#pragma once

#include <cstdint>
#include <vector>

#include "model/units.h"
#include "model/workload/layers.h"
#include "model/workload/training_plan.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// Memory of one GPU of one stage, without buffers of collectives, the allocator's waste and the framework itself.
struct StepMemory {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;  ///< at their maximum: of all micro-batches under way
  Bytes gathered;     ///< weights and gradients that replicas share, while they are whole
  [[nodiscard]] Bytes total() const { return weights + gradients + optimizer + activations + gathered; }
};

/// Returns the activations that one layer keeps for its backward pass, for one micro-batch on one GPU. Source:
/// Korthikanti et al. 2022, table 2, with its terms separated so that it also covers grouped queries, gated MLPs, a
/// fused core and no dropout. Bytes per token, with t tensor ranks and 16-bit values:
///
///   on every rank:      norms 4 h, inputs of both first products 4 h, dropout masks 2 h
///   shared by t ranks:  queries and output of the core 4 H d, keys and values 4 K d, MLP 4 ffn (gated: 6 ffn)
///   unfused core:       5 H s (softmax, and with dropout its mask and output; without 2 H s), unless recomputed
///
/// A layer with a single part keeps half of the first line, and the part's own activations. A state space
/// (state-spaces/mamba, ops/triton/ssd_combined.py, which computes the states of its chunks again) keeps, shared by t
/// ranks, the projected 2 P, the convolved 2 C, and the output of the scan and the gated one 4 I.
///
/// Sequence parallelism shares the first line as well. Full recomputation keeps only the layer's input, 2 h, whole on
/// every rank or, with sequence parallelism, shared. Each routed expert that a token is sent to keeps its input, 2 h or
/// twice the latent width, whole on every tensor rank, since all have a part of every expert (Megatron-LM,
/// transformer/moe/experts.py: the permuted tokens are the input of a product whose weights have gradients).
///
/// With fp8 GEMMs, what is kept as the input of one has 8 bits and everything else 16 (TransformerEngine,
/// pytorch/module/linear.py: only the quantized input is saved, by row or by column). So of the 4 h in front of a part
/// 3 h are left; of the MLP's 4 ffn 3 (gated: of 6 ffn 5); of the input of an expert h. What two kernels read in
/// different widths is kept twice: a fused core's output (H d more), the input of shared experts beside a router's.
/// torchao's float8 layers, which keep inputs in 16 bits, are not covered.
Bytes layer_activations(const Transformer& whole, const TrainingPlan& plan, const LayerKind& kind);

/// Returns the parameters of a layer on one GPU: expert ranks and tensor ranks share those of experts, and norms are
/// whole.
std::int64_t parameters_on_gpu(const Transformer& model, const TrainingPlan& plan, const LayerKind& kind);

/// Returns the parameters that one GPU of a stage holds before data-parallel ranks share them: its layers and, on the
/// first and last stage, the embedding, the logits and the norm before these. Tensor ranks share everything except
/// norms, which they all hold. If the embedding is tied and the pipeline has several stages, the first and the last
/// hold a copy each.
std::int64_t parameters_on_gpu(const Transformer& model, const TrainingPlan& plan, std::int64_t stage);

/// Parameters of one GPU of a stage.
struct StageParameters {
  std::int64_t whole = 0;    ///< parameters_on_gpu.
  std::int64_t experts = 0;  ///< Routed experts alone: experts_on_gpu.
};
/// Returns them for every stage, in order, in about the time that one takes.
std::vector<StageParameters> parameters_by_stage(const Transformer& model, const TrainingPlan& plan);

/// Returns the bytes of these weights on one GPU that serves, in the format of the model's checkpoint, or else in
/// `dtype`.
Bytes stored_weights(const Transformer& model, const TrainingPlan& plan, std::int64_t stage);

/// Returns how many of these belong to routed experts: there are replicas / expert ranks copies of each, and `replicas`
/// copies of the others.
std::int64_t experts_on_gpu(const Transformer& model, const TrainingPlan& plan, std::int64_t stage);

/// Returns the memory of a stage in mixed precision (Rajbhandari et al. 2020, section 3.1): weights and gradients in
/// their dtypes; Adam 12 bytes per parameter, SGD 8. `zero` says which of them the ranks with copies share. Of shared
/// weights two layers are gathered at a time. Of shared gradients one layer is whole until it is scattered (all, if
/// those of several micro-batches are: TrainingPlan::scatters_each_pass), or embedding or logits if those are larger.
/// Where all are whole, a piece's are allocated by its first backward pass, and gradients and activations are those of
/// the moment at which both together take most.
/// Activations are those of the micro-batches that 1F1B has under way on that stage: pipeline - stage; zero-bubble:
/// pipeline; interleaved: as in Korthikanti et al. 2022, section 4.2.3. Stages with an embedding or logits also hold
/// the embedding's dropout, the last norm and the logits (their section 4.3), or under full recomputation the one layer
/// that is computed again if that is more. Requires a possible plan and 0 <= stage < pipeline.
StepMemory step_memory(const Transformer& model, const TrainingPlan& plan, std::int64_t stage);

/// Returns the memory of the stage that needs the most.
StepMemory largest_step_memory(const Transformer& model, const TrainingPlan& plan);

}  // namespace commfuse
