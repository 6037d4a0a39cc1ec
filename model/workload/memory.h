// SPDX-License-Identifier: Apache-2.0
// Memory that a GPU needs during a training step.
#pragma once

#include <cstdint>
#include <vector>

#include "model/units.h"
#include "model/workload/layers.h"
#include "model/workload/recomputation.h"
#include "model/workload/training_plan.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// Width of the weights of fp8 GEMMs in memory, and in the gathers of replicas.
enum class Fp8Weights : std::uint8_t {
  wide,   ///< in 16 bits, or in 8 bits by row and again by column
  narrow  ///< in 8 bits
};

/// Choices of a framework that memory depends on besides the plan.
struct MemoryRules {
  Fp8Weights fp8_weights = Fp8Weights::wide;
  SelectiveRecompute selective{};
  double loss_memory = 4.0;  ///< bytes per logit of the loss's tensors that are live at the same time
};

/// Memory of one GPU of one stage, without buffers of collectives, the allocator's waste and the framework itself.
struct StepMemory {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;  ///< their maximum over the step, for all micro-batches under way
  Bytes gathered;     ///< weights and gradients that replicas share, while they are whole
  [[nodiscard]] Bytes total() const { return weights + gradients + optimizer + activations + gathered; }
};

/// Returns the activations that one layer keeps for its backward pass, for one micro-batch on one GPU. Source:
/// Korthikanti et al. 2022, table 2, with its terms separated so that it also covers grouped queries, gated MLPs, a
/// fused core and no dropout. Bytes per token, with hidden size h, H heads and K kv heads of width d, sequence length
/// s, t tensor ranks and 16-bit values:
///
///   on every rank:      norms 4 h, inputs of both first GEMMs 4 h, dropout masks 2 h
///   shared by t ranks:  queries and output of the core 4 H d, keys and values 4 K d, MLP 4 ffn (gated: 6 ffn)
///   unfused core:       5 H s with dropout (softmax, mask, output), 2 H s without (softmax); 0 if recomputed
///
/// Selective recomputation of more than the core drops the outputs of norms (2 h per part), of activation functions
/// (the input of the last GEMM, 2 ffn), and of the GEMMs that run again: 2 bytes per column and, for the GEMM in front
/// of a residual that no sum over tensor ranks keeps, the residual (2 h). It drops everything that routed experts keep,
/// except an input that came from another rank. In eager mode it also keeps outputs that no gradient reads: 2 h of a
/// GEMM, whole on every rank, and 2 h of a layer's last sum.
///
/// A layer with a single part keeps half of the first line, and the part's own activations. A state space
/// (state-spaces/mamba, ops/triton/ssd_combined.py, which computes the states of its chunks again) keeps, shared by t
/// ranks, 2 P for the output of the projection, 2 C for the output of the convolution, and 4 I for the outputs of the
/// scan and the gate (P, C and I are projected(), convolved() and inner of StateSpace).
///
/// Sequence parallelism shares the first line as well. Full recomputation keeps only the layer's input, 2 h, whole on
/// every rank or, with sequence parallelism, shared. For each token, each of its routed experts keeps an input of 2 h
/// or twice the latent width. It is whole on every tensor rank, because every tensor rank has a part of every expert
/// (Megatron-LM, transformer/moe/experts.py: the permuted tokens are the input of a GEMM whose weights have gradients).
///
/// With fp8 GEMMs, values that are kept as the input of a GEMM use 8 bits, and all others use 16 (TransformerEngine,
/// pytorch/module/linear.py: only the quantized input is saved, by row or by column). So the 4 h in front of a part
/// become 3 h, the 4 ffn of the MLP become 3 ffn (gated: the 6 ffn become 5 ffn), and the 2 h of an expert's input
/// become h. Values that two kernels read in different widths are kept twice: the output of a fused core (H d more),
/// and the input of shared experts, which the router reads in 16 bits. torchao's float8 layers, which keep inputs in 16
/// bits, are not covered.
Bytes layer_activations(const Transformer& whole, const TrainingPlan& plan, const LayerKind& kind,
                        const SelectiveRecompute& selective = {});

/// Returns the number of parameters of a layer on one GPU. Tensor ranks share all parameters except norms, which each
/// rank holds whole; expert ranks share routed experts as well.
std::int64_t parameters_on_gpu(const Transformer& model, const TrainingPlan& plan, const LayerKind& kind);

/// Returns the number of parameters that one GPU of a stage holds before data-parallel ranks share them: its layers
/// and, on the first and last stage, the embedding, the logits and the norm before the logits. Tensor ranks share
/// everything except norms, which they all hold. If the embedding is tied and the pipeline has several stages, the
/// first and the last hold a copy each.
std::int64_t parameters_on_gpu(const Transformer& model, const TrainingPlan& plan, std::int64_t stage);

/// Numbers of parameters on one GPU of a stage.
struct StageParameters {
  std::int64_t whole = 0;      ///< parameters_on_gpu.
  std::int64_t experts = 0;    ///< Only routed experts: experts_on_gpu.
  std::int64_t embedding = 0;  ///< Only the embedding of the first stage.
  /// Outside of layers: the embedding of the first stage, and logits and the norm before them on the last stage.
  std::int64_t around_layers = 0;
};
/// Returns the numbers of parameters of every stage, in order. This takes about as long as for a single stage.
std::vector<StageParameters> parameters_by_stage(const Transformer& model, const TrainingPlan& plan);

/// Returns the bytes of a stage's weights on one GPU for inference, in the format of the model's checkpoint if it has
/// one, else in the plan's `dtype`.
Bytes stored_weights(const Transformer& model, const TrainingPlan& plan, std::int64_t stage);

/// Returns how many parameters of a stage on one GPU belong to routed experts. With e expert ranks, each of these
/// parameters has replicas / e copies; all other parameters have `replicas` copies.
std::int64_t experts_on_gpu(const Transformer& model, const TrainingPlan& plan, std::int64_t stage);

/// Returns the memory of a stage in mixed precision (Rajbhandari et al. 2020, section 3.1). Requires a possible plan
/// and 0 <= stage < pipeline.
/// - Weights and gradients have their dtypes; the optimizer takes 12 bytes per parameter (Adam) or 8 (SGD). `zero`
///   decides which of these the replicas share. With narrow fp8 weights, all parameters of layers have 8 bits, among
///   them norms, biases and routers, which are few; embedding and logits keep 16 bits.
/// - Shared weights are gathered for two layers at a time.
/// - Shared gradients are whole for one layer, or for embedding or logits if these are larger, until they are
///   scattered. Gradients that are first summed over several micro-batches (see TrainingPlan::scatters_each_pass) are
///   whole for all layers. The first backward pass of a chunk allocates them, and gradients and activations are counted
///   at the moment at which both together need the most memory.
/// - Activations are kept for the micro-batches under way on that stage: pipeline - stage of them with 1F1B, pipeline
///   with zero-bubble, and as in Korthikanti et al. 2022, section 4.2.3, with interleaving.
/// - The first stage also holds the masks of the embedding's dropout. Every stage also holds what recomputation adds to
///   the activations of one layer; the last stage holds the last norm and the loss's tensors instead if these are
///   larger (Korthikanti et al., section 4.3, where the tensors are the logits in 32 bits). The scores of a recomputed
///   core are not counted.
StepMemory step_memory(const Transformer& model, const TrainingPlan& plan, std::int64_t stage,
                       const MemoryRules& rules = {});

/// Returns the memory of the stage that needs the most.
StepMemory largest_step_memory(const Transformer& model, const TrainingPlan& plan, const MemoryRules& rules = {});

}  // namespace commfuse
