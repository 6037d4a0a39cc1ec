// SPDX-License-Identifier: Apache-2.0
// Layout of a training step over GPUs and over time: degrees of parallelism, batches, and which data are kept or
// recomputed. A new setting is a member here and an entry in run_settings::of_plan.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/describe/setting.h"
#include "model/dtype.h"
#include "model/workload/model_flops.h"
#include "model/workload/sites.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// Data that data-parallel ranks shard (Rajbhandari et al., "ZeRO", 2020, section 5): nothing; the optimizer's state;
/// the gradients too; the weights too.
enum class Zero : std::uint8_t { none, optimizer, gradients, weights };

enum class Optimizer : std::uint8_t {
  adam,  ///< state: a copy of the weights and two moments, fp32
  sgd    ///< state: a copy of the weights and a momentum, fp32
};

inline constexpr std::array all_optimizers{Optimizer::adam, Optimizer::sgd};
std::string_view name_of(Optimizer optimizer);
std::optional<Optimizer> optimizer_named(std::string_view name);

/// Order of a stage's passes.
enum class PipelineSchedule : std::uint8_t {
  one_forward_one_backward,  ///< 1F1B; interleaved if a stage has several chunks
  /// ZB-H1 (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024), which defers gradients of weights.
  zero_bubble
};

inline constexpr std::array all_pipeline_schedules{PipelineSchedule::one_forward_one_backward,
                                                   PipelineSchedule::zero_bubble};
/// Returns "1f1b" or "zero_bubble".
std::string_view name_of(PipelineSchedule schedule);
std::optional<PipelineSchedule> pipeline_schedule_named(std::string_view name);

/// Exchange of keys and values between the context ranks of a sequence.
enum class ContextExchange : std::uint8_t {
  /// Keys and values are gathered before attention, and their gradients scattered after it (Llama team, "The Llama 3
  /// Herd of Models", 2024, section 3.3.2).
  all_gather,
  /// Attention runs block by block while the next block arrives from a neighbour (Liu et al., "Ring Attention", 2023;
  /// TransformerEngine's cp_comm_type p2p). Layers whose attention has a window gather, as TransformerEngine requires.
  ring
};

inline constexpr std::array context_exchange_choices{Choice<ContextExchange>{"all_gather", ContextExchange::all_gather},
                                                     Choice<ContextExchange>{"ring", ContextExchange::ring}};

struct TrainingPlan {
  std::int64_t tensor = 1;         ///< ranks that share each GEMM; innermost, so inside a node if it fits
  bool sequence_parallel = false;  ///< tensor ranks also share the tokens of norms and residuals
  std::int64_t pipeline = 1;       ///< stages
  std::int64_t interleave = 1;     ///< chunks of the model per stage
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  std::int64_t data = 1;     ///< replicas
  std::int64_t context = 1;  ///< ranks that share the tokens of a sequence
  ContextExchange context_exchange = ContextExchange::all_gather;
  /// Ranks that share the tokens of a sequence, and its heads during attention (Jacobs et al., "DeepSpeed Ulysses",
  /// 2023). Can be combined with context ranks (Fang and Zhao, "USP", 2024).
  std::int64_t ulysses = 1;
  std::int64_t expert = 1;  ///< ranks among the replicas that share the experts
  Zero zero = Zero::none;

  std::int64_t global_batch = 1;  ///< sequences of a step, all replicas together
  std::int64_t micro_batch = 1;   ///< sequences of one pass of a replica
  std::int64_t seq = 2048;

  Recompute recompute = Recompute::none;
  bool fused_attention = true;  ///< scores are never written to memory (FlashAttention)
  bool dropout = false;         ///< after attention and MLP, and on scores that are written to memory
  Optimizer optimizer = Optimizer::adam;
  DType dtype = DType::bf16;           ///< dtype of weights, activations and the wire
  DType gradient_dtype = DType::fp32;  ///< dtype in which gradients are summed
  bool overlap_gradients = true;       ///< reduced during the backward pass, bucket by bucket; otherwise after it

  /// Returns the product of all degrees except `expert`, whose ranks are among the replicas; limited to 2^53.
  [[nodiscard]] std::int64_t gpus() const {
    constexpr std::int64_t limit = std::int64_t{1} << 53;
    const std::int64_t gpus_per_stage = replicas() < limit / tensor ? tensor * replicas() : limit;
    return gpus_per_stage < limit / pipeline ? pipeline * gpus_per_stage : limit;
  }
  /// Returns the number of ranks that share the tokens of a sequence, without tensor ranks.
  [[nodiscard]] std::int64_t sequence_ranks() const { return context * ulysses; }
  /// Returns the number of ranks that hold the same weights.
  [[nodiscard]] std::int64_t replicas() const { return data * sequence_ranks(); }
  /// Returns how many of tensor, pipeline, data, context, Ulysses and expert parallelism are above 1.
  [[nodiscard]] int kinds_of_parallelism() const {
    return static_cast<int>(tensor > 1) + static_cast<int>(pipeline > 1) + static_cast<int>(data > 1) +
           static_cast<int>(context > 1) + static_cast<int>(ulysses > 1) + static_cast<int>(expert > 1);
  }
  [[nodiscard]] std::int64_t micro_batches() const { return global_batch / (data * micro_batch); }
  /// Returns true if replicas scatter the gradients of every micro-batch: with ZeRO 3, or with ZeRO 2 and several
  /// micro-batches without a pipeline, as in DeepSpeed. With a pipeline, whose stages have several micro-batches under
  /// way, gradients are summed whole and shared after the last micro-batch, as in PyTorch's FSDP (pytorch/torchtitan,
  /// distributed/pipeline_parallel.py). A single replica scatters nothing.
  [[nodiscard]] bool scatters_each_pass() const {
    return replicas() > 1 &&
           (zero == Zero::weights || (zero == Zero::gradients && pipeline == 1 && micro_batches() > 1));
  }
  /// Returns the number of tokens of one pass on one rank, before tensor ranks share them.
  [[nodiscard]] std::int64_t tokens_per_pass() const { return micro_batch * seq / sequence_ranks(); }
};

namespace run_settings {

using enum Use;

/// Dtypes of gradients; sums need at least 16 bits.
inline constexpr std::array gradient_dtypes{DType::fp32, DType::bf16, DType::fp16};

/// Settings that fill a plan, in the order of every listing.
inline constexpr std::array of_plan{
    SettingEntry<TrainingPlan>{.key = "parallel.sequence_parallel",
                               .flag = "sequence-parallel",
                               .group = whole,
                               .doc = "Split norms and residuals over tensor ranks by tokens",
                               .preset = "on",
                               .example = "on",
                               .uses = {step, prefill, decode, tune, plan}}
        .fills(word<switch_choices, &TrainingPlan::sequence_parallel>),
    SettingEntry<TrainingPlan>{.key = "parallel.pipeline",
                               .flag = "pipeline",
                               .group = whole,
                               .doc = "Pipeline stages",
                               .preset = "1",
                               .example = "1",
                               .uses = {step, prefill, decode, tune, plan},
                               .most = kibi,
                               .unit = "stages",
                               .growth = Growth::by_one}
        .fills(count<&TrainingPlan::pipeline>),
    SettingEntry<TrainingPlan>{.key = "parallel.interleave",
                               .flag = "interleave",
                               .group = whole,
                               .doc = "Model chunks per pipeline stage",
                               .preset = "1",
                               .example = "1",
                               .uses = {step, prefill, decode, tune, plan},
                               .most = kibi,
                               .unit = "chunks",
                               .growth = Growth::by_one}
        .fills(count<&TrainingPlan::interleave>),
    SettingEntry<TrainingPlan>{.key = "parallel.schedule",
                               .flag = "pipeline-schedule",
                               .group = whole,
                               .doc = "Pipeline schedule; zero_bubble (ZB-H1) defers weight gradients",
                               .preset = "1f1b",
                               .example = "zero_bubble",
                               .uses = {step, prefill, decode, tune, plan},
                               .noun = "pipeline schedule"}
        .fills(one_of<all_pipeline_schedules, &TrainingPlan::schedule>),
    SettingEntry<TrainingPlan>{.key = "parallel.data",
                               .flag = "data-parallel",
                               .group = whole,
                               .doc = "Data-parallel replicas",
                               .preset = "1",
                               .example = "1",
                               .uses = {step, prefill, decode, tune, plan},
                               .most = kibi * kibi,
                               .unit = "replicas",
                               .growth = Growth::by_one}
        .fills(count<&TrainingPlan::data>),
    SettingEntry<TrainingPlan>{.key = "parallel.context",
                               .flag = "context",
                               .group = whole,
                               .doc = "Context-parallel ranks, each with a part of every sequence",
                               .preset = "1",
                               .example = "1",
                               .uses = {step, prefill, decode, tune, plan},
                               .most = kibi,
                               .unit = "ranks",
                               .growth = Growth::by_one}
        .fills(count<&TrainingPlan::context>),
    SettingEntry<TrainingPlan>{.key = "parallel.context_exchange",
                               .flag = "context-exchange",
                               .group = whole,
                               .doc = "Exchange of context ranks' keys: gather before attention, or ring during it",
                               .preset = "all_gather",
                               .example = "ring",
                               .uses = {step, prefill, tune, plan},
                               .noun = "exchange of keys and values",
                               .nouns = "exchanges of keys and values"}
        .fills(word<context_exchange_choices, &TrainingPlan::context_exchange>),
    SettingEntry<TrainingPlan>{.key = "parallel.ulysses",
                               .flag = "ulysses",
                               .group = whole,
                               .doc = "Ulysses ranks: split by tokens, and by heads in attention",
                               .preset = "1",
                               .example = "1",
                               .uses = {step, prefill, decode, tune, plan},
                               .most = kibi,
                               .unit = "ranks",
                               .growth = Growth::by_one}
        .fills(count<&TrainingPlan::ulysses>),
    SettingEntry<TrainingPlan>{.key = "parallel.experts",
                               .flag = "expert-parallel",
                               .group = whole,
                               .doc = "Expert-parallel ranks",
                               .preset = "1",
                               .example = "1",
                               .uses = {step, prefill, decode, tune, plan},
                               .most = kibi,
                               .unit = "ranks",
                               .growth = Growth::by_one}
        .fills(count<&TrainingPlan::expert>),
    SettingEntry<TrainingPlan>{.key = "parallel.zero",
                               .flag = "zero",
                               .group = whole,
                               .doc = "ZeRO stage: 1 shards optimizer state, 2 also gradients, 3 also weights",
                               .preset = "0",
                               .example = "0",
                               .uses = {step, tune, plan},
                               .least = 0,
                               .most = 3,
                               .unit = "",
                               .growth = Growth::by_one}
        .fills(count<&TrainingPlan::zero>),
    SettingEntry<TrainingPlan>{.key = "step.micro_batch",
                               .flag = "micro-batch",
                               .group = whole,
                               .doc = "Micro-batch size in sequences; batch counts all replicas",
                               .preset = "1",
                               .example = "1",
                               .uses = {step, tune, plan},
                               .most = kibi * kibi,
                               .unit = "sequences",
                               .growth = Growth::by_one}
        .fills(count<&TrainingPlan::micro_batch>),
    SettingEntry<TrainingPlan>{.key = "step.recompute",
                               .flag = "recompute",
                               .group = whole,
                               .doc = "Activations that the backward pass recomputes",
                               .preset = "none",
                               .example = "none",
                               .uses = {step, tune, plan},
                               .noun = "recomputation"}
        .fills(one_of<all_recomputes, &TrainingPlan::recompute>),
    SettingEntry<TrainingPlan>{.key = "step.optimizer",
                               .flag = "optimizer",
                               .group = whole,
                               .doc = "Optimizer whose state is held in memory",
                               .preset = "adam",
                               .example = "adam",
                               .uses = {step, tune, plan},
                               .noun = "optimizer"}
        .fills(one_of<all_optimizers, &TrainingPlan::optimizer>),
    SettingEntry<TrainingPlan>{.key = "step.dropout",
                               .flag = "dropout",
                               .group = whole,
                               .doc = "Dropout after attention and MLP, and on scores that are in memory",
                               .preset = "off",
                               .example = "on",
                               .uses = {step, tune, plan}}
        .fills(word<switch_choices, &TrainingPlan::dropout>),
    SettingEntry<TrainingPlan>{.key = "step.gradient_dtype",
                               .flag = "gradient-dtype",
                               .group = whole,
                               .doc = "Element type in which gradients are summed and reduced",
                               .preset = "fp32",
                               .example = "bf16",
                               .uses = {step, tune, plan},
                               .noun = "dtype of gradients",
                               .nouns = "dtypes of gradients"}
        .fills(one_of<gradient_dtypes, &TrainingPlan::gradient_dtype>),
    SettingEntry<TrainingPlan>{.key = "step.overlap_gradients",
                               .flag = "overlap-gradients",
                               .group = whole,
                               .doc = "on: gradients are reduced during the backward pass; off: after it",
                               .preset = "on",
                               .example = "off",
                               .uses = {step, tune, plan}}
        .fills(word<switch_choices, &TrainingPlan::overlap_gradients>)};

}  // namespace run_settings

/// Throws ConfigError if the plan is impossible; the message names the conflicting settings and a remedy.
void require_possible(const Transformer& model, const TrainingPlan& plan, KeyHeads key_heads = KeyHeads::split);

/// Returns whether the layers split into this number of chunks of a pipeline: evenly, or with one layer fewer in the
/// first and the last chunk, which have the embedding and the loss.
bool splits_over(const Transformer& model, std::int64_t chunks);

/// Returns the number of layers of each chunk of the model, in order; the stage of chunk i is i mod pipeline. The split
/// is even if possible. Otherwise the first and the last chunk have one layer fewer than the others, or none, because
/// embedding and logits count as a layer each (as in Llama 3 405B: Llama team, 2024, section 3.3.2). Requires a
/// possible plan.
std::vector<std::int64_t> layers_by_chunk(const Transformer& model, const TrainingPlan& plan);

}  // namespace commfuse
