// SPDX-License-Identifier: Apache-2.0
#include "model/workload/memory.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "model/check.h"
#include "model/workload/parameters.h"
#include "model/workload/recomputation.h"
#include "model/workload/sites.h"

namespace commfuse {

namespace {

constexpr std::int64_t width = 2;  // bytes of an activation that is not an input of an fp8 GEMM

/// Returns the bytes per element of a GEMM's input that is kept for the gradient of the weights.
std::int64_t input_bytes(const TrainingPlan& plan) { return plan.dtype == DType::fp8 ? 1 : width; }

std::int64_t optimizer_bytes(Optimizer optimizer) { return optimizer == Optimizer::adam ? 12 : 8; }

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Returns the bytes per token that are kept around a part of a layer: input and output of the norm before the part,
/// and the mask of the dropout after it. A router reads the norm's output in 16 bits, and shared experts read a narrow
/// copy of it.
std::int64_t norm_bytes(const Transformer& model, const TrainingPlan& plan, bool mixture) {
  const std::int64_t input = input_bytes(plan);
  const bool copied = mixture && input < width && model.experts->shared_ffn > 0;
  const std::int64_t output = mixture ? width + (copied ? input : 0) : input;
  return (width + output + (plan.dropout ? 1 : 0)) * model.hidden;
}

/// Returns the bytes per token that an MLP keeps, all of which tensor ranks share: the output of each first GEMM and
/// the input of the last one.
std::int64_t mlp_bytes(const Transformer& model, const TrainingPlan& plan, bool mixture) {
  const std::int64_t ffn = mixture ? model.experts->active * model.experts->ffn + model.experts->shared_ffn : model.ffn;
  const std::int64_t first_gemms = model.gated_mlp ? 2 : 1;
  return (width * first_gemms + input_bytes(plan)) * ffn;
}

/// Returns the bytes per token that attention keeps, all of which tensor ranks share: queries, keys, values, output,
/// and scores if they are kept. A fused kernel's backward pass reads its output in 16 bits, so the input of an fp8
/// out-projection is a copy.
std::int64_t attention_bytes(const Transformer& model, const TrainingPlan& plan, const SelectiveRecompute& selective) {
  const std::int64_t heads =
      model.latent ? model.heads * (model.head_dim + model.latent->position_dim) : model.heads * model.head_dim;
  const std::int64_t outputs = model.latent ? heads : model.attended_columns();
  const std::int64_t keys = model.latent ? heads : model.kv_heads * model.head_dim;
  const std::int64_t values = model.latent ? heads : model.kv_heads * model.value_dim();
  const std::int64_t gates = model.gated_attention ? heads : 0;
  const bool drops_scores = plan.recompute == Recompute::selective && selective.attention_core;
  const bool keeps_scores = !plan.fused_attention && !drops_scores;
  const std::int64_t scores = (plan.dropout ? 2 * width + 1 : width) * model.heads * plan.seq;
  const std::int64_t input = input_bytes(plan);
  const bool copied = plan.fused_attention && gates == 0 && input < width;
  const std::int64_t output = plan.fused_attention || gates > 0 ? width + (copied ? input : 0) : input;
  return width * (heads + keys + values) + output * outputs + (width + input) * gates + (keeps_scores ? scores : 0);
}

/// Returns the layers of every stage, counted by kind.
std::vector<std::vector<LayerRun>> layers_by_stage(const Transformer& model, const TrainingPlan& plan) {
  std::vector<std::vector<LayerRun>> stages(static_cast<std::size_t>(plan.pipeline));
  std::int64_t first = 0;
  std::size_t stage = 0;
  for (const std::int64_t layers : layers_by_chunk(model, plan)) {
    std::vector<LayerRun>& counts = stages[stage];
    for (const LayerRun& run : layer_runs(model, first, layers)) {
      const auto known =
          std::find_if(counts.begin(), counts.end(), [&](const LayerRun& count) { return count.kind == run.kind; });
      if (known == counts.end()) {
        counts.push_back(run);
      } else {
        known->count += run.count;
      }
    }
    first += layers;
    stage = (stage + 1) % stages.size();
  }
  return stages;
}

/// A number per layer that is computed once for each kind of layer.
template <class Compute>
class ByKind {
 public:
  explicit ByKind(Compute compute) : compute_(std::move(compute)) {}

  std::int64_t operator()(const LayerKind& kind) {
    const auto known =
        std::find_if(known_.begin(), known_.end(), [&](const auto& entry) { return entry.first == kind; });
    return known != known_.end() ? known->second : known_.emplace_back(kind, compute_(kind)).second;
  }
  std::int64_t sum(const std::vector<LayerRun>& layers) {
    std::int64_t sum = 0;
    for (const LayerRun& run : layers) {
      sum += run.count * (*this)(run.kind);
    }
    return sum;
  }
  std::int64_t largest(const std::vector<LayerRun>& layers) {
    std::int64_t largest = 0;
    for (const LayerRun& run : layers) {
      largest = std::max(largest, (*this)(run.kind));
    }
    return largest;
  }

 private:
  Compute compute_;
  std::vector<std::pair<LayerKind, std::int64_t>> known_;
};

/// A moment in the step of a stage: the number of micro-batches whose activations are kept, and the share of the
/// stage's chunks whose gradients have been allocated.
struct Moment {
  double passes = 0.0;
  double share = 1.0;
};

/// Returns the moment of a stage at which the first backward pass of a chunk runs. Forward passes run ahead of backward
/// passes as in Megatron-LM's schedules (sim/step/pipeline.cpp), until none are left. `chunk` counts in the order of
/// backward passes: 0 is the chunk nearest to the loss.
Moment moment_of(const TrainingPlan& plan, std::int64_t stage, std::int64_t chunk) {
  const std::int64_t forwards = plan.micro_batches() * plan.interleave;
  const std::int64_t behind = plan.pipeline - stage - 1;
  const std::int64_t wanted = plan.interleave == 1 ? behind : 2 * behind + (plan.interleave - 1) * plan.pipeline;
  const std::int64_t ahead = std::min(forwards, wanted);
  const std::int64_t done = chunk * plan.pipeline;  // backward passes
  const std::int64_t kept = done < forwards - ahead ? ahead + 1 : forwards - done;
  const auto chunks = static_cast<double>(plan.interleave);
  return {static_cast<double>(kept) / chunks, static_cast<double>(chunk + 1) / chunks};
}

/// Returns the largest number of micro-batches whose activations a stage keeps at once; fractions count chunks.
double passes_under_way(const TrainingPlan& plan, std::int64_t stage) {
  if (plan.schedule == PipelineSchedule::zero_bubble) {
    // Counts the passes of the stage's warm-up, and the passes that wait for the gradients of their weights.
    return static_cast<double>(std::min(plan.micro_batches(), plan.pipeline));
  }
  return moment_of(plan, stage, 0).passes;
}

/// Returns the width of a token on its way to an expert.
std::int64_t routed_width(const Transformer& model) {
  return model.experts->latent > 0 ? model.experts->latent : model.hidden;
}

/// Returns the bytes of a weight; fp8 GEMMs keep their weights in 16 bits.
std::int64_t weight_bytes(DType dtype) { return bytes_of(dtype) == 1 ? width : bytes_of(dtype); }

/// Returns true if every replica sums whole gradients over several micro-batches before the replicas share them
/// (ZeRO 2).
bool adds_up_whole(const TrainingPlan& plan) {
  return plan.replicas() > 1 && plan.zero == Zero::gradients && plan.micro_batches() > 1 && !plan.scatters_each_pass();
}

std::int64_t experts_on_gpu(const Transformer& model, const TrainingPlan& plan, const LayerKind& kind) {
  return ceil_div(layer_parameters(model, kind).routed_experts, plan.tensor * plan.expert);
}

/// Bytes per token that a layer keeps, by the ranks that share them.
struct LayerBytes {
  std::int64_t everywhere = 0;  ///< Shared only under sequence parallelism.
  std::int64_t shared = 0;      ///< Shared by tensor ranks.
  std::int64_t whole = 0;       ///< Whole on every tensor rank.
};

/// Subtracts the outputs of norms and activation functions that selective recomputation drops.
void drop_between_gemms(const Transformer& model, const TrainingPlan& plan, const LayerKind& kind,
                        const SelectiveRecompute& selective, LayerBytes& kept) {
  const std::int64_t input = input_bytes(plan);
  const bool mixture = kind.mlp == MlpKind::mixture;
  if (selective.norms) {
    const std::int64_t copy = mixture && input < width && model.experts->shared_ffn > 0 ? input : 0;
    kept.everywhere -= (input * (kind.parts() - (mixture ? 1 : 0)) + (mixture ? width + copy : 0)) * model.hidden;
  }
  if (selective.activation) {
    kept.shared -= kind.attention && model.gated_attention ? input * model.heads * model.head_dim : 0;
    kept.shared -= kind.mlp == MlpKind::dense ? input * model.ffn : 0;
    kept.shared -= mixture ? input * (model.experts->active * model.experts->ffn + model.experts->shared_ffn) : 0;
  }
}

/// Subtracts what selective recomputation drops. In eager mode, adds the outputs that it keeps although no gradient
/// reads them.
void drop_recomputed(const Transformer& model, const TrainingPlan& plan, const LayerKind& kind,
                     const SelectiveRecompute& selective, LayerBytes& kept) {
  drop_between_gemms(model, plan, kind, selective, kept);
  const bool sums_over_ranks = plan.tensor > 1;
  for (const RecomputedGemm& recomputed : recomputed_gemms(model, kind, selective, sums_over_ranks)) {
    const LayerGemm& gemm = recomputed.gemm;
    if (recomputed.runs_again) {
      kept.shared -= width * gemm.kept_columns;
      kept.everywhere -= gemm.joins_residual && recomputed.is_read ? width * model.hidden : 0;
    }
    kept.whole += recomputed.keeps_unread ? width * model.hidden : 0;
  }
  if (selective.every_second_gemm_eager && sums_over_ranks) {
    kept.everywhere += width * model.hidden;
  }
  if (selective.alternates() && kind.mlp == MlpKind::mixture) {
    const Experts& experts = *model.experts;
    const std::int64_t outputs = width * (model.gated_mlp ? 2 : 1);
    kept.shared -= outputs * experts.active * experts.ffn;
    kept.whole -= plan.expert == 1 ? input_bytes(plan) * experts.active * routed_width(model) : 0;
  }
}

Bytes rounded(double bytes) { return Bytes{std::llround(bytes)}; }

}  // namespace

Bytes layer_activations(const Transformer& whole, const TrainingPlan& plan, const LayerKind& kind,
                        const SelectiveRecompute& selective) {
  const Transformer model = shape_of(whole, kind);
  const std::int64_t tokens = plan.tokens_per_pass();
  const std::int64_t sharers = plan.sequence_parallel ? plan.tensor : 1;
  if (plan.recompute == Recompute::full) {
    return Bytes{ceil_div(width * tokens * model.hidden, sharers)};
  }
  const bool mixture = kind.mlp == MlpKind::mixture;
  const std::int64_t input = input_bytes(plan);
  const std::int64_t everywhere = (kind.parts() - (mixture ? 1 : 0)) * norm_bytes(model, plan, false) +
                                  (mixture ? norm_bytes(model, plan, true) : 0);
  LayerBytes kept{.everywhere = everywhere};
  if (kind.attention) {
    kept.shared += attention_bytes(model, plan, selective);
  }
  if (kind.state_space) {
    const StateSpace& space = *model.state_space;
    kept.shared += width * (space.projected() + space.convolved() + space.inner) + input * space.inner;
  }
  if (kind.mlp != MlpKind::none) {
    kept.shared += mlp_bytes(model, plan, mixture);
  }
  kept.whole += mixture ? input * model.experts->active * routed_width(model) : 0;
  if (plan.recompute == Recompute::selective) {
    drop_recomputed(model, plan, kind, selective, kept);
  }
  return Bytes{ceil_div(tokens * kept.everywhere, sharers) + ceil_div(tokens * kept.shared, plan.tensor) +
               tokens * kept.whole};
}

std::int64_t parameters_on_gpu(const Transformer& model, const TrainingPlan& plan, const LayerKind& kind) {
  const LayerParameters layer = layer_parameters(model, kind);
  const std::int64_t per_norm = model.norm == Norm::layer ? 2 : 1;
  const std::int64_t norms = kind.parts() * per_norm * model.hidden;
  return norms + ceil_div(layer.attention + layer.state_space + layer.mlp - norms, plan.tensor) +
         ceil_div(layer.routed_experts, plan.tensor * plan.expert);
}

std::vector<StageParameters> parameters_by_stage(const Transformer& model, const TrainingPlan& plan) {
  ByKind whole([&](const LayerKind& kind) { return parameters_on_gpu(model, plan, kind); });
  ByKind experts([&](const LayerKind& kind) { return experts_on_gpu(model, plan, kind); });
  std::vector<StageParameters> stages;
  for (const std::vector<LayerRun>& layers : layers_by_stage(model, plan)) {
    stages.push_back({whole.sum(layers), experts.sum(layers)});
  }
  const ModelParameters model_parameters = parameters_of(model);
  const bool is_one_stage = plan.pipeline == 1;
  const std::int64_t logits =
      model.tied_embeddings && !is_one_stage ? model.vocab * model.hidden : model_parameters.logits;
  stages.front().embedding = ceil_div(model_parameters.embedding, plan.tensor);
  stages.front().around_layers = stages.front().embedding;
  stages.back().around_layers += ceil_div(logits, plan.tensor) + model_parameters.final_norm;
  for (StageParameters& stage : stages) {
    stage.whole += stage.around_layers;
  }
  return stages;
}

std::int64_t parameters_on_gpu(const Transformer& model, const TrainingPlan& plan, std::int64_t stage) {
  check(stage >= 0 && stage < plan.pipeline, "the stage is one of the pipeline");
  return parameters_by_stage(model, plan)[static_cast<std::size_t>(stage)].whole;
}

Bytes stored_weights(const Transformer& whole, const TrainingPlan& plan, std::int64_t stage) {
  const std::optional<Transformer> copied = with_copied_heads(whole, plan.tensor);
  const Transformer& model = copied ? *copied : whole;
  const std::int64_t parameters = parameters_on_gpu(model, plan, stage);
  if (!model.weights) {
    return Bytes{parameters * bytes_of(plan.dtype)};
  }
  const WeightFormat& format = *model.weights;
  ByKind saved([&](const LayerKind& kind) {
    const LayerParameters layer = layer_parameters(model, kind);
    const auto shared = static_cast<double>(plan.tensor);
    const double narrow =
        format.attention * static_cast<double>(layer.attention + layer.state_space) / shared +
        format.mlp * static_cast<double>(layer.mlp) / shared +
        format.experts * static_cast<double>(layer.routed_experts) / static_cast<double>(plan.tensor * plan.expert);
    return std::int64_t{std::llround(narrow * (16.0 - format.bits) / 8.0)};
  });
  const std::vector<LayerRun> layers = layers_by_stage(model, plan)[static_cast<std::size_t>(stage)];
  return Bytes{width * parameters - saved.sum(layers)};
}

std::int64_t experts_on_gpu(const Transformer& model, const TrainingPlan& plan, std::int64_t stage) {
  check(stage >= 0 && stage < plan.pipeline, "the stage is one of the pipeline");
  return parameters_by_stage(model, plan)[static_cast<std::size_t>(stage)].experts;
}

namespace {

/// Computes the memory of the stages of one plan; the needs of a kind of layer are computed only once.
class StageMemories {
 public:
  StageMemories(const Transformer& model, const TrainingPlan& plan, const MemoryRules& rules)
      : model_(model),
        plan_(plan),
        selective_(rules.selective),
        loss_memory_(rules.loss_memory),
        layer_weight_bytes_(plan.dtype == DType::fp8 && rules.fp8_weights == Fp8Weights::narrow
                                ? bytes_of(DType::fp8)
                                : weight_bytes(plan.dtype)),
        layers_(layers_by_stage(model, plan)),
        stage_parameters_(parameters_by_stage(model, plan)) {}

  StepMemory of(std::int64_t stage) {
    const std::int64_t experts = stage_parameters(stage).experts;
    const std::int64_t other_parameters = stage_parameters(stage).whole - experts;
    const auto shared = [&](Zero zero, Bytes others, Bytes routed) {
      const bool shares = plan_.zero >= zero;
      return Bytes{ceil_div(others.count, shares ? plan_.replicas() : 1) +
                   ceil_div(routed.count, shares ? plan_.replicas() / plan_.expert : 1)};
    };
    const auto shared_from = [&](Zero zero, std::int64_t bytes) {
      return shared(zero, Bytes{other_parameters * bytes}, Bytes{experts * bytes});
    };
    const std::int64_t around_layers = stage_parameters(stage).around_layers;
    StepMemory memory;
    memory.weights = shared(
        Zero::weights,
        Bytes{(other_parameters - around_layers) * layer_weight_bytes_ + around_layers * weight_bytes(plan_.dtype)},
        Bytes{experts * layer_weight_bytes_});
    const bool is_whole = adds_up_whole(plan_);
    const Bytes gradients = is_whole ? Bytes{(other_parameters + experts) * bytes_of(plan_.gradient_dtype)}
                                     : shared_from(Zero::gradients, bytes_of(plan_.gradient_dtype));
    const Moment fullest = is_whole ? fullest_moment(stage, gradients) : Moment{passes_under_way(plan_, stage)};
    memory.gradients = rounded(fullest.share * static_cast<double>(gradients.count));
    memory.optimizer = shared_from(Zero::optimizer, optimizer_bytes(plan_.optimizer));
    memory.gathered = gathered_bytes(stage);
    memory.activations = rounded(activation_bytes(stage, fullest.passes));
    return memory;
  }

 private:
  [[nodiscard]] const std::vector<LayerRun>& layers(std::int64_t stage) const {
    return layers_[static_cast<std::size_t>(stage)];
  }
  [[nodiscard]] const StageParameters& stage_parameters(std::int64_t stage) const {
    return stage_parameters_[static_cast<std::size_t>(stage)];
  }

  /// Returns the bytes that recomputation adds to one layer before its backward pass: all activations if only inputs
  /// are kept, otherwise those that were dropped.
  std::int64_t recomputed_bytes(std::int64_t stage) {
    return plan_.recompute == Recompute::full ? whole_activations_.largest(layers(stage))
           : plan_.recompute == Recompute::selective && selective_.exceeds_core()
               ? dropped_activations_.largest(layers(stage))
               : 0;
  }

  /// Returns the bytes of gradients and weights that are whole at the same time: gradients of one layer, or of
  /// embedding or logits, and weights of two layers, the current layer and the next.
  Bytes gathered_bytes(std::int64_t stage) {
    if (plan_.replicas() == 1 || plan_.zero < Zero::gradients || adds_up_whole(plan_)) {
      return {};
    }
    const std::int64_t layer = parameters_.largest(layers(stage));
    const bool has_table = stage == 0 || stage == plan_.pipeline - 1;
    const std::int64_t table = has_table ? ceil_div(model_.vocab * model_.hidden, plan_.tensor) : 0;
    const Bytes gradients{std::max(layer, table) * bytes_of(plan_.gradient_dtype)};
    return plan_.zero == Zero::gradients
               ? gradients
               : gradients + Bytes{std::max(2 * layer * layer_weight_bytes_, table * weight_bytes(plan_.dtype))};
  }

  /// Returns the moment at which activations and gradients together need the most memory. The first backward pass of a
  /// chunk allocates the chunk's gradients, as in PyTorch's FSDP while it does not reduce them.
  Moment fullest_moment(std::int64_t stage, Bytes gradients) {
    if (plan_.schedule == PipelineSchedule::zero_bubble) {
      return {passes_under_way(plan_, stage)};  // gradients of weights come after the passes that are counted here
    }
    const auto layer_bytes = static_cast<double>(activations_.sum(layers(stage)));
    const auto bytes_at = [&](const Moment& moment) {
      return moment.passes * layer_bytes + moment.share * static_cast<double>(gradients.count);
    };
    Moment fullest = moment_of(plan_, stage, 0);
    for (std::int64_t chunk = 1; chunk < plan_.interleave; ++chunk) {
      const Moment moment = moment_of(plan_, stage, chunk);
      fullest = bytes_at(moment) > bytes_at(fullest) ? moment : fullest;
    }
    return fullest;
  }

  /// Returns the bytes of the activations that a stage keeps for this many micro-batches, plus the largest transient
  /// ones: those of a recomputed layer, or those around the logits.
  double activation_bytes(std::int64_t stage, double passes) {
    const auto layer_bytes = static_cast<double>(activations_.sum(layers(stage)));
    const std::int64_t tokens = plan_.tokens_per_pass();
    const std::int64_t sharers = plan_.sequence_parallel ? plan_.tensor : 1;
    double bytes = layer_bytes * passes;
    if (stage == 0 && plan_.dropout) {
      bytes += static_cast<double>(std::min(plan_.pipeline, plan_.micro_batches())) *
               static_cast<double>(ceil_div(tokens * model_.hidden, sharers));
    }
    std::int64_t transient = recomputed_bytes(stage);
    if (stage == plan_.pipeline - 1) {
      // Counts the last norm, the input of the logits, and the loss. All are freed before a layer is recomputed.
      transient = std::max(transient, ceil_div(2 * width * tokens * model_.hidden, sharers) + loss_tensor_bytes());
    }
    return bytes + static_cast<double>(transient);
  }

  /// Returns the bytes of the loss's tensors for one micro-batch; tensor ranks share them.
  [[nodiscard]] std::int64_t loss_tensor_bytes() const {
    const auto logits = static_cast<double>(plan_.tokens_per_pass() * model_.vocab);
    return std::llround(std::ceil(loss_memory_ * logits / static_cast<double>(plan_.tensor)));
  }

  [[nodiscard]] std::int64_t activations_with(const LayerKind& kind, Recompute recompute) const {
    TrainingPlan plan = plan_;
    plan.recompute = recompute;
    return layer_activations(model_, plan, kind, selective_).count;
  }

  using NumberOfKind = std::function<std::int64_t(const LayerKind&)>;

  const Transformer& model_;
  const TrainingPlan& plan_;
  SelectiveRecompute selective_;
  double loss_memory_;
  std::int64_t layer_weight_bytes_;                // for each weight of a layer
  std::vector<std::vector<LayerRun>> layers_;      // by stage
  std::vector<StageParameters> stage_parameters_;  // by stage
  ByKind<NumberOfKind> parameters_{[this](const LayerKind& kind) { return parameters_on_gpu(model_, plan_, kind); }};
  ByKind<NumberOfKind> activations_{[this](const LayerKind& kind) { return activations_with(kind, plan_.recompute); }};
  ByKind<NumberOfKind> whole_activations_{
      [this](const LayerKind& kind) { return activations_with(kind, Recompute::none); }};
  ByKind<NumberOfKind> dropped_activations_{[this](const LayerKind& kind) {
    return activations_with(kind, Recompute::none) - activations_with(kind, Recompute::selective);
  }};
};

}  // namespace

StepMemory step_memory(const Transformer& model, const TrainingPlan& plan, std::int64_t stage,
                       const MemoryRules& rules) {
  check(stage >= 0 && stage < plan.pipeline, "the stage is one of the pipeline");
  return StageMemories(model, plan, rules).of(stage);
}

StepMemory largest_step_memory(const Transformer& model, const TrainingPlan& plan, const MemoryRules& rules) {
  StageMemories memories(model, plan, rules);
  StepMemory largest;
  for (std::int64_t stage = 0; stage < plan.pipeline; ++stage) {
    const StepMemory memory = memories.of(stage);
    if (memory.total() > largest.total()) {
      largest = memory;
    }
  }
  return largest;
}

}  // namespace commfuse
