// SPDX-License-Identifier: Apache-2.0
// What a GPU has to hold during a training step.
#pragma once

#include <cstdint>

#include "model/units.h"
#include "model/workload/layers.h"
#include "model/workload/training_plan.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// Of one GPU of one stage. Buffers of collectives, the allocator's waste and the framework itself are not in it.
struct StepMemory {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;  ///< At their most: of all micro-batches under way.
  Bytes gathered;     ///< Whole for a while, of weights and gradients that replicas share.
  [[nodiscard]] Bytes total() const { return weights + gradients + optimizer + activations + gathered; }
};

/// Activations that one layer keeps for its backward pass, of one micro-batch on one GPU. Source: Korthikanti et al.
/// 2022, table 2, with its terms taken apart so that grouped queries, gated MLPs, a fused core and no dropout fit as
/// well. Bytes a token, t tensor ranks, 16-bit values:
///
///   on every rank:      norms 4 h, inputs of both first products 4 h, dropout masks 2 h
///   shared by t ranks:  queries and output of the core 4 H d, keys and values 4 K d, MLP 4 ffn (gated: 6 ffn)
///   unfused core:       5 H s (softmax, and with dropout its mask and output; without 2 H s), unless recomputed
///
/// Those of a layer that has one part alone are half of the first line, and what the part needs; of a state space
/// (state-spaces/mamba, ops/triton/ssd_combined.py, which makes its chunks' states again) that is shared by t ranks:
/// the projected 2 P, the convolved 2 C, the output of the scan and the gated one 4 I.
///
/// Sequence parallelism shares the first line as well. Full recomputation keeps the layer's input, 2 h, alone, whole on
/// every rank or, with sequence parallelism, shared. Of routed experts a token fills those it is sent to, and each of
/// these keeps what it read, 2 h or twice the latent width, whole on every tensor rank, since all have a part of every
/// expert (Megatron-LM, transformer/moe/experts.py: the permuted tokens are the input of a product whose weights have
/// gradients).
Bytes layer_activations(const Transformer& whole, const TrainingPlan& plan, const LayerKind& kind);

/// Parameters of a layer on one GPU: those of experts shared by expert ranks and tensor ranks, norms whole.
std::int64_t parameters_on_gpu(const Transformer& model, const TrainingPlan& plan, const LayerKind& kind);

/// Parameters that one GPU of a stage holds before data-parallel ranks share them: its layers and, first and last, the
/// embedding, the logits and the norm before these; tensor ranks share all but norms, which they all hold. Where the
/// embedding is tied and the pipeline has several stages, the first and the last hold a copy each.
std::int64_t parameters_on_gpu(const Transformer& model, const TrainingPlan& plan, std::int64_t stage);

/// What these weights take on one GPU that serves, in the format of the model's checkpoint, or else in `dtype`.
Bytes stored_weights(const Transformer& model, const TrainingPlan& plan, std::int64_t stage);

/// Of these, those of routed experts: there are replicas / expert ranks copies of each; of others, replicas.
std::int64_t experts_on_gpu(const Transformer& model, const TrainingPlan& plan, std::int64_t stage);

/// Mixed precision (Rajbhandari et al. 2020, section 3.1): weights and gradients in their dtypes; Adam 12 bytes a
/// parameter, SGD 8. `zero` says which of them the ranks share that hold copies; of shared weights two layers are
/// gathered at a time, of shared gradients one is whole until it is scattered (all, where those of several
/// micro-batches are: TrainingPlan::scatters_each_pass), or embedding or logits where those are larger. Activations of
/// the micro-batches that 1F1B has under way on that stage: pipeline - stage, zero-bubble: pipeline; interleaved, as
/// Korthikanti et al. 2022, section 4.2.3; the embedding's dropout, the last norm and the logits (their section 4.3) on
/// the stages that have them, or under full recomputation the one layer that is made again where that is more. Requires
/// a possible plan and 0 <= stage < pipeline.
StepMemory step_memory(const Transformer& model, const TrainingPlan& plan, std::int64_t stage);

/// That of the stage that needs the most.
StepMemory largest_step_memory(const Transformer& model, const TrainingPlan& plan);

}  // namespace commfuse
