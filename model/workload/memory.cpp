// SPDX-License-Identifier: Apache-2.0
#include "model/workload/memory.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "model/check.h"
#include "model/workload/parameters.h"
#include "model/workload/sites.h"

namespace commfuse {

namespace {

constexpr std::int64_t width = 2;  // bytes of an activation; activations of fp8 products are kept in 16 bits

std::int64_t optimizer_bytes(Optimizer optimizer) { return optimizer == Optimizer::adam ? 12 : 8; }

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Returns the bytes of a token's MLP that tensor ranks share: the output of each first product and the input of the
/// last.
std::int64_t mlp_bytes(const Transformer& model, bool mixture) {
  const std::int64_t ffn = mixture ? model.experts->active * model.experts->ffn + model.experts->shared_ffn : model.ffn;
  const std::int64_t products = model.gated_mlp ? 3 : 2;
  return width * products * ffn;
}

/// Returns the bytes of a token's attention that tensor ranks share: queries, keys, values, output, and scores that are
/// kept.
std::int64_t attention_bytes(const Transformer& model, const TrainingPlan& plan) {
  const std::int64_t heads =
      model.latent ? model.heads * (model.head_dim + model.latent->position_dim) : model.heads * model.head_dim;
  const std::int64_t outputs = model.latent ? heads : model.attended_columns();
  const std::int64_t keys = model.latent ? heads : model.kv_heads * model.head_dim;
  const std::int64_t values = model.latent ? heads : model.kv_heads * model.value_dim();
  const std::int64_t gates = model.gated_attention ? heads : 0;
  const bool keeps_scores = !plan.fused_attention && plan.recompute == Recompute::none;
  const std::int64_t scores = (plan.dropout ? 2 * width + 1 : width) * model.heads * plan.seq;
  return width * (heads + outputs + keys + values + 2 * gates) + (keeps_scores ? scores : 0);
}

/// Returns the sum of `of` over the layers of a stage, called with the kind of each.
template <class Of>
auto sum_over_layers(const Transformer& model, const TrainingPlan& plan, std::int64_t stage, const Of& of) {
  const std::vector<std::int64_t> pieces = layers_by_piece(model, plan);
  decltype(of(LayerKind{})) sum = 0;
  std::int64_t first = 0;
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    if (static_cast<std::int64_t>(piece) % plan.pipeline == stage) {
      for (const LayerRun& run : layer_runs(model, first, pieces[piece])) {
        sum += run.count * of(run.kind);
      }
    }
    first += pieces[piece];
  }
  return sum;
}

/// Returns the largest number of micro-batches whose activations a piece keeps.
double passes_under_way(const TrainingPlan& plan, std::int64_t stage) {
  const auto stages = static_cast<double>(plan.pipeline);
  const auto passes = static_cast<double>(plan.micro_batches());
  if (plan.schedule == PipelineSchedule::zero_bubble) {
    return std::min(passes,
                    stages);  // passes of a stage's warm-up, and passes that wait for the gradients of their weights
  }
  if (plan.interleave == 1) {
    return std::min(passes, stages - static_cast<double>(stage));
  }
  // These are the warm-up passes of Megatron's interleaved schedule and the one under way, spread over a stage's
  // pieces.
  const auto pieces = static_cast<double>(plan.interleave);
  const double warm_up = 2.0 * (stages - static_cast<double>(stage) - 1.0) + (pieces - 1.0) * stages + 1.0;
  return std::min(passes, warm_up / pieces);
}

/// Returns the width of a token on its way to an expert.
std::int64_t routed_width(const Transformer& model) {
  return model.experts->latent > 0 ? model.experts->latent : model.hidden;
}

/// Returns the bytes of a weight; products in fp8 keep their weights in 16 bits.
std::int64_t weight_bytes(DType dtype) { return bytes_of(dtype) == 1 ? width : bytes_of(dtype); }

/// Returns true if replicas that could share gradients sum those of several micro-batches whole.
bool adds_up_whole(const TrainingPlan& plan) {
  return plan.zero == Zero::gradients && plan.micro_batches() > 1 && !plan.scatters_each_pass();
}

Bytes rounded(double bytes) { return Bytes{std::llround(bytes)}; }

}  // namespace

Bytes layer_activations(const Transformer& whole, const TrainingPlan& plan, const LayerKind& kind) {
  const Transformer model = shape_of(whole, kind);
  const std::int64_t tokens = plan.tokens_per_pass();
  const std::int64_t sharers = plan.sequence_parallel ? plan.tensor : 1;
  if (plan.recompute == Recompute::full) {
    return Bytes{ceil_div(width * tokens * model.hidden, sharers)};
  }
  const std::int64_t mask = plan.dropout ? model.hidden : 0;
  const std::int64_t everywhere = kind.parts() * (2 * width * model.hidden + mask);
  std::int64_t shared = 0;
  if (kind.attention) {
    shared += attention_bytes(model, plan);
  }
  if (kind.state_space) {
    const StateSpace& space = *model.state_space;
    shared += width * (space.projected() + space.convolved() + 2 * space.inner);
  }
  if (kind.mlp != MlpKind::none) {
    shared += mlp_bytes(model, kind.mlp == MlpKind::mixture);
  }
  const std::int64_t routed = kind.mlp == MlpKind::mixture ? width * model.experts->active * routed_width(model) : 0;
  return Bytes{ceil_div(tokens * everywhere, sharers) + ceil_div(tokens * shared, plan.tensor) + tokens * routed};
}

std::int64_t parameters_on_gpu(const Transformer& model, const TrainingPlan& plan, const LayerKind& kind) {
  const LayerParameters layer = layer_parameters(model, kind);
  const std::int64_t a_norm = model.norm == Norm::layer ? 2 : 1;
  const std::int64_t norms = kind.parts() * a_norm * model.hidden;
  return norms + ceil_div(layer.attention + layer.state_space + layer.mlp - norms, plan.tensor) +
         ceil_div(layer.routed_experts, plan.tensor * plan.expert);
}

std::int64_t parameters_on_gpu(const Transformer& model, const TrainingPlan& plan, std::int64_t stage) {
  check(stage >= 0 && stage < plan.pipeline, "the stage is one of the pipeline");
  std::int64_t parameters =
      sum_over_layers(model, plan, stage, [&](const LayerKind& kind) { return parameters_on_gpu(model, plan, kind); });
  const ModelParameters of_model = parameters_of(model);
  const bool is_first = stage == 0;
  const bool is_last = stage == plan.pipeline - 1;
  if (is_first) {
    parameters += ceil_div(of_model.embedding, plan.tensor);
  }
  if (is_last) {
    const std::int64_t logits = model.tied_embeddings && !is_first ? model.vocab * model.hidden : of_model.logits;
    parameters += ceil_div(logits, plan.tensor) + of_model.final_norm;
  }
  return parameters;
}

Bytes stored_weights(const Transformer& whole, const TrainingPlan& plan, std::int64_t stage) {
  const std::optional<Transformer> copied = with_copied_heads(whole, plan.tensor);
  const Transformer& model = copied ? *copied : whole;
  const std::int64_t parameters = parameters_on_gpu(model, plan, stage);
  if (!model.weights) {
    return Bytes{parameters * bytes_of(plan.dtype)};
  }
  const WeightFormat& format = *model.weights;
  const std::int64_t saved = sum_over_layers(model, plan, stage, [&](const LayerKind& kind) {
    const LayerParameters layer = layer_parameters(model, kind);
    const auto shared = static_cast<double>(plan.tensor);
    const double narrow =
        format.attention * static_cast<double>(layer.attention + layer.state_space) / shared +
        format.mlp * static_cast<double>(layer.mlp) / shared +
        format.experts * static_cast<double>(layer.routed_experts) / static_cast<double>(plan.tensor * plan.expert);
    return std::llround(narrow * (16.0 - format.bits) / 8.0);
  });
  return Bytes{width * parameters - saved};
}

std::int64_t experts_on_gpu(const Transformer& model, const TrainingPlan& plan, std::int64_t stage) {
  return sum_over_layers(model, plan, stage, [&](const LayerKind& kind) {
    return ceil_div(layer_parameters(model, kind).routed_experts, plan.tensor * plan.expert);
  });
}

namespace {

/// Returns the largest value of `of` over the stage's layers.
template <class Of>
std::int64_t largest_of_layers(const Transformer& model, const TrainingPlan& plan, std::int64_t stage, const Of& of) {
  std::int64_t largest = 0;
  sum_over_layers(model, plan, stage, [&](const LayerKind& kind) {
    largest = std::max(largest, of(kind));
    return std::int64_t{0};
  });
  return largest;
}

/// Returns the bytes of the one layer whose activations are whole for its backward pass, if only inputs are kept.
std::int64_t computed_again_bytes(const Transformer& model, TrainingPlan plan, std::int64_t stage) {
  if (plan.recompute != Recompute::full) {
    return 0;
  }
  plan.recompute = Recompute::none;
  return largest_of_layers(model, plan, stage,
                           [&](const LayerKind& kind) { return layer_activations(model, plan, kind).count; });
}

/// Returns the bytes of the gradients of one layer, or of embedding or logits, and of the weights of two layers: the
/// one under way and the next.
Bytes gathered_bytes(const Transformer& model, const TrainingPlan& plan, std::int64_t stage) {
  if (plan.replicas() == 1 || plan.zero < Zero::gradients || adds_up_whole(plan)) {
    return {};
  }
  const std::int64_t layer = largest_of_layers(
      model, plan, stage, [&](const LayerKind& kind) { return parameters_on_gpu(model, plan, kind); });
  const bool has_table = stage == 0 || stage == plan.pipeline - 1;
  const std::int64_t table = has_table ? ceil_div(model.vocab * model.hidden, plan.tensor) : 0;
  const Bytes gradients{std::max(layer, table) * bytes_of(plan.gradient_dtype)};
  return plan.zero == Zero::gradients ? gradients
                                      : gradients + Bytes{std::max(2 * layer, table) * weight_bytes(plan.dtype)};
}

/// Returns the bytes that a stage keeps for all micro-batches under way, at the outputs of its layers and inside them.
double activation_bytes(const Transformer& model, const TrainingPlan& plan, std::int64_t stage) {
  const auto of_layers = static_cast<double>(sum_over_layers(
      model, plan, stage, [&](const LayerKind& kind) { return layer_activations(model, plan, kind).count; }));
  const std::int64_t tokens = plan.tokens_per_pass();
  const std::int64_t sharers = plan.sequence_parallel ? plan.tensor : 1;
  double bytes = of_layers * passes_under_way(plan, stage);
  if (stage == 0 && plan.dropout) {
    bytes += static_cast<double>(std::min(plan.pipeline, plan.micro_batches())) *
             static_cast<double>(ceil_div(tokens * model.hidden, sharers));
  }
  std::int64_t passing = computed_again_bytes(model, plan, stage);
  if (stage == plan.pipeline - 1) {
    // Last norm, input of the logits, logits in fp32: all are freed before a layer is computed again.
    passing = std::max(passing, ceil_div(2 * width * tokens * model.hidden, sharers) +
                                    ceil_div(4 * tokens * model.vocab, plan.tensor));
  }
  return bytes + static_cast<double>(passing);
}

}  // namespace

StepMemory step_memory(const Transformer& model, const TrainingPlan& plan, std::int64_t stage) {
  const std::int64_t experts = experts_on_gpu(model, plan, stage);
  const std::int64_t others = parameters_on_gpu(model, plan, stage) - experts;
  const auto shared_from = [&](Zero zero, std::int64_t bytes) {
    const bool shares = plan.zero >= zero;
    return Bytes{ceil_div(others * bytes, shares ? plan.replicas() : 1) +
                 ceil_div(experts * bytes, shares ? plan.replicas() / plan.expert : 1)};
  };
  StepMemory memory;
  memory.weights = shared_from(Zero::weights, weight_bytes(plan.dtype));
  memory.gradients = adds_up_whole(plan) ? Bytes{(others + experts) * bytes_of(plan.gradient_dtype)}
                                         : shared_from(Zero::gradients, bytes_of(plan.gradient_dtype));
  memory.optimizer = shared_from(Zero::optimizer, optimizer_bytes(plan.optimizer));
  memory.gathered = gathered_bytes(model, plan, stage);
  memory.activations = rounded(activation_bytes(model, plan, stage));
  return memory;
}

StepMemory largest_step_memory(const Transformer& model, const TrainingPlan& plan) {
  StepMemory largest;
  for (std::int64_t stage = 0; stage < plan.pipeline; ++stage) {
    const StepMemory memory = step_memory(model, plan, stage);
    if (memory.total() > largest.total()) {
      largest = memory;
    }
  }
  return largest;
}

}  // namespace commfuse
