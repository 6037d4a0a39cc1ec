// SPDX-License-Identifier: Apache-2.0
#include "sim/step/layer_cost.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "model/check.h"
#include "model/config/implementation.h"
#include "model/cost/attention.h"
#include "model/cost/decode_attention.h"
#include "model/cost/gemm.h"
#include "model/cost/memory_bound.h"
#include "model/math/functions.h"
#include "model/strategies/strategies.h"
#include "model/workload/memory.h"
#include "model/workload/parameters.h"

namespace commfuse {

namespace {

/// A step lasts far longer than a chip takes to heat up, so its GEMMs run at sustained power, not at burst power.
constexpr Flops hot{1e24};

/// Bytes that softmax and dropout move per 16-bit score. The forward softmax reads and writes the score. The backward
/// softmax reads the score and its gradient, and writes the result. Dropout reads and writes the score and reads a mask
/// of one byte, in both directions.
constexpr double softmax_bytes = 4.0;
constexpr double softmax_backward_bytes = 6.0;
constexpr double dropout_bytes = 5.0;

/// Megatron's fused softmax gives a thread block the scores of four heads, so the heads of a rank, counted once per
/// sequence, must be a multiple of four (FusedScaleMaskSoftmax, `attn_batches % batch_per_block`). Otherwise PyTorch's
/// kernels run one after the other. Bytes per score, forward: conversion to fp32, scale, conversion of the mask, mask
/// in place, softmax, conversion to 16 bits. Backward: conversion to fp32, softmax, mask, scale, conversion to 16 bits.
constexpr std::int64_t heads_of_fused_softmax = 4;
constexpr std::array<double, 6> separate_softmax_bytes{6.0, 8.0, 3.0, 9.0, 8.0, 6.0};
constexpr std::array<double, 5> separate_softmax_backward_bytes{6.0, 12.0, 9.0, 8.0, 6.0};

/// Share of the loss's bytes that its forward pass moves (38 of 52).
constexpr double loss_forward = 0.73;

/// Returns the largest power of two that divides a row's bytes, at most 16: the width that a load may have.
std::int64_t alignment_of(std::int64_t bytes) { return std::min<std::int64_t>(16, bytes & -bytes); }

}  // namespace

LayerCost::LayerCost(const StepPoint& point, SiteTimes& sites, int held_sms)
    : point_(point),
      copied_(with_copied_heads(*point.model, point.plan.tensor)),
      model_(copied_ ? *copied_ : *point.model),
      shape_(&model_),
      machine_(*point.machine),
      plan_(point.plan),
      sites_(sites),
      sms_(std::max(1, machine_.accelerator.sms - held_sms)),
      gemm_dtype_(point.plan.dtype),
      tokens_(plan_.tokens_per_pass()),
      own_tokens_(plan_.sequence_parallel ? tokens_ / plan_.tensor : tokens_) {
  if (model_.state_space) {
    mamba_in_ = with_mamba_in(model_);
    mamba_out_ = with_mamba_out(model_);
  }
  if (model_.experts && model_.experts->shared_ffn > 0) {
    shared_experts_ = with_shared_experts(model_);
  }
}

Duration LayerCost::slowed(Duration time) const { return point_.slowdown == 1.0 ? time : times(point_.slowdown, time); }

void LayerCost::kernel(Stream& stream, Duration time) const {
  collective(stream, slowed(time + machine_.accelerator.stream_gap.value));
}

void LayerCost::attention(Stream& stream, Duration time) const { collective(stream, slowed(time)); }

Duration LayerCost::fused(Duration time) const {
  const auto& nccl = machine_.link.collective.nccl;
  const double factor =
      nccl == nullptr ? 1.0 : point_.framework.attention_time[static_cast<std::size_t>(nccl->tuning.generation)].value;
  return factor == 1.0 ? time : times(factor, time);
}

void LayerCost::collective(Stream& stream, Duration time) const {
  stream.add({.issue = point_.framework.issue.value, .time = time});
}

void LayerCost::add_overlap(Stream& stream, const Overlap& times) const {
  collective(stream, std::max(slowed(times.kernel + machine_.accelerator.stream_gap.value), times.communication));
}

Group LayerCost::group_at(GroupLayout layout) const {
  layout.gpus = plan_.gpus();
  Group group = group_of(machine_, layout);
  group.stretch = slowest_of(layout.ranks, point_.communication_sigma);
  return group;
}

void LayerCost::weight_kernel(Stream& stream, Duration time) const {
  kernel(weights_ == nullptr ? stream : *weights_, time);
}

void LayerCost::moved_bytes(Stream& stream, double bytes) const {
  const Bytes traffic{static_cast<std::int64_t>(bytes)};
  kernel(stream, memory_bound_time(machine_.accelerator, traffic, sms_));
}

void LayerCost::moved(Stream& stream, std::int64_t elements) const {
  moved_bytes(stream, static_cast<double>(width * elements));
}

std::int64_t LayerCost::norm_elements() const { return own_tokens_ * model_.hidden; }

std::int64_t LayerCost::residual_elements() const {
  return (3 + (plan_.dropout ? 2 : 0) + (model_.biases ? 1 : 0)) * norm_elements();
}

std::int64_t LayerCost::qkv_columns() const { return shape_->qkv_columns() / plan_.tensor; }

std::int64_t LayerCost::attended_columns() const { return model_.attended_columns() / plan_.tensor; }

Duration LayerCost::gemm_time(std::int64_t m, std::int64_t n, std::int64_t k, bool into_gradient, int ctas) const {
  return gemm_time({.m = m, .n = n, .k = k, .dtype = gemm_dtype_, .weight_bits = weight_bits_}, into_gradient, ctas);
}

Duration LayerCost::logits_time(std::int64_t m, std::int64_t n, std::int64_t k, bool into_gradient) const {
  return gemm_time({.m = m, .n = n, .k = k, .dtype = wide()}, into_gradient, 0);
}

Duration LayerCost::gemm_time(GemmSize size, bool into_gradient, int ctas) const {
  size.run = hot;
  if (size.dtype == DType::fp8) {
    size.out = wide();
  }
  if (into_gradient && adds_to_sums()) {
    size.out = DType::fp32;
    size.accumulate = true;
  }
  const int sms = std::max(1, sms_ - ctas);
  const Duration time = estimate_gemm(machine_.accelerator, size, sms).time;
  // Each row of a tensor belongs to one token or to a weight matrix. The number of tokens (k of a weight gradient) is
  // not the length of a row, so it does not affect alignment.
  const std::int64_t alignment =
      std::min(alignment_of(width * size.n), alignment_of(width * (into_gradient ? size.m : size.k)));
  return alignment == 16
             ? time
             : times(math::pow(16.0 / static_cast<double>(alignment), point_.framework.misaligned_power.value), time);
}

Bytes LayerCost::gathered_state() const {
  return Bytes{(gemm_dtype_ == DType::fp8 ? bytes_of(DType::fp8) : width) * tokens_ * model_.hidden};
}

void LayerCost::gemm(Stream& stream, std::int64_t m, std::int64_t n, std::int64_t k) const {
  kernel(stream, gemm_time(m, n, k, false));
}

void LayerCost::gemm_backward(Stream& stream, std::int64_t m, std::int64_t n, std::int64_t k) const {
  kernel(stream, gemm_time(m, k, n, false));
  weight_kernel(stream, gemm_time(k, n, m, true));
}

/// Returns the time of an all-reduce by NCCL, or by an implementation that sums in the switch.
Duration LayerCost::sum_time() const {
  const Bytes state{width * tokens_ * model_.hidden};
  const Implementation* const kernels = point_.implemented.kernels;
  if (kernels == nullptr || !covers(*kernels, SiteKind::mlp_ar)) {
    return tensor_group().all_reduce(state);
  }
  const ImplementedSite& site = kernels->costs.on(machine_).mlp_ar;
  const double stretch = point_.implemented.slowdown * slowest_of(plan_.tensor, point_.communication_sigma);
  return times(stretch, switch_sum_time(site, machine_.link, static_cast<int>(plan_.tensor), state));
}

/// Sums a layer's outputs or gradients over the tensor ranks, unless sequence parallelism divides the tokens among
/// them.
void LayerCost::reduce(Stream& stream) const {
  if (parts_ != nullptr) {
    parts_->push_back(std::exchange(stream, {}));
  } else if (plan_.tensor > 1 && !plan_.sequence_parallel && !point_.free_sums) {
    collective(stream, sum_time());
  }
}

void LayerCost::exchange(Stream& stream, const GroupLayout& layout, std::int64_t columns) const {
  if (layout.ranks > 1) {
    collective(stream, group_at(layout).all_to_all(Bytes{width * tokens_ * columns}));
  }
}

void LayerCost::ulysses_exchange(Stream& stream, std::int64_t columns) const {
  exchange(stream, {.stride = plan_.tensor, .ranks = plan_.ulysses}, columns);
}

void LayerCost::sequence_exchange(Stream& stream, std::int64_t columns) const {
  exchange(stream, {.stride = plan_.tensor, .ranks = plan_.sequence_ranks()}, columns);
}

namespace {

bool has_narrow_cache(const StepPoint& point) {
  return point.serves && point.model->weights && point.model->weights->narrow_cache &&
         point.machine->accelerator.supports(DType::fp8);
}

}  // namespace

AttentionSize decode_attention_size(const StepPoint& point, const LayerKind& kind) {
  const Transformer& model = *point.model;
  const TrainingPlan& plan = point.plan;
  const std::int64_t kv_heads = kind.kv_heads > 0 ? kind.kv_heads : model.kv_heads;
  return {.batch = plan.micro_batch,
          .seq = last_keys(model, kind, point.cached + 1),
          .heads = model.heads / plan.tensor,
          .kv_heads = std::max<std::int64_t>(1, kv_heads / plan.tensor),
          .head_dim = model.latent ? model.head_dim : (model.head_dim + model.value_dim()) / 2,
          .dtype = has_narrow_cache(point)    ? DType::fp8
                   : plan.dtype == DType::fp8 ? DType::bf16
                                              : plan.dtype};
}

Bytes decode_cache(const StepPoint& point, const LayerKind& kind) {
  const std::optional<Transformer> copied = with_copied_heads(*point.model, point.plan.tensor);
  const Transformer& model = copied ? *copied : *point.model;
  const TrainingPlan& plan = point.plan;
  AttentionSize size = decode_attention_size(point, kind);
  size.seq = kept_keys(kind, point.cached + 1);
  const std::int64_t bytes_per_value = bytes_of(size.dtype);
  Bytes cache;
  if (kind.attention && model.latent) {
    const LatentAttention& latent = *model.latent;
    const std::int64_t wide = size.heads * (model.head_dim + latent.position_dim + latent.value_dim);
    const std::int64_t narrow = latent.key_value_rank + latent.position_dim;
    const std::int64_t columns = point.options.latent_decode == LatentDecode::absorb ? narrow : wide;
    cache += Bytes{size.batch * size.seq * columns * bytes_per_value};
    if (latent.indexer) {  // the indexer's keys, in 8 bits
      cache += Bytes{size.batch * size.seq * latent.indexer->head_dim};
    }
  } else if (kind.attention) {
    cache += cache_of(size);
  }
  if (kind.state_space) {
    const StateSpace& space = *model.state_space;
    const std::int64_t state = space.inner * space.state * space.state_bits / 8;
    const std::int64_t convolution_inputs = 2 * (space.convolution - 1) * space.convolved();
    cache += Bytes{plan.micro_batch * (state + convolution_inputs) / plan.tensor};
  }
  return cache;
}

void LayerCost::decode_core(Stream& stream) const {
  if (model_.latent) {
    latent_decode(stream);
    return;
  }
  attention(stream, decode_attention_time(machine_.accelerator, decode_attention_size(point_, kind_)));
}

DType LayerCost::wide() const { return plan_.dtype == DType::fp8 ? DType::bf16 : plan_.dtype; }

/// Returns the window of keys that attention reads. The keys that an indexer selects are priced like a block of as many
/// keys (AttentionWindow).
AttentionWindow LayerCost::walked() const {
  const bool chooses = model_.latent && model_.latent->indexer && kind_.window == 0;
  return chooses ? AttentionWindow{.keys = model_.latent->indexer->keys, .chunked = true} : window_of(kind_);
}

AttentionSize LayerCost::core_size() const {
  return {.batch = plan_.micro_batch,
          .seq = point_.earlier + plan_.seq,
          .heads = model_.heads / (plan_.tensor * plan_.ulysses),
          .kv_heads = std::max<std::int64_t>(1, shape_->kv_heads / (plan_.tensor * plan_.ulysses)),
          .head_dim = score_dim(),
          .dtype = wide()};
}

Duration LayerCost::core_time(const AttentionSize& size) const {
  // Context ranks are balanced (zig-zag): each has an equal share of the queries and of the scores.
  const auto ranks = static_cast<double>(plan_.context);
  const auto first = static_cast<double>(point_.earlier);
  const auto keys = static_cast<double>(size.seq);
  const double share = point_.earlier == 0 ? mean_keys(model_, kind_, plan_.seq) / keys
                                           : scores_in_window(walked(), first, keys) / (keys * keys);
  const QueryRows rows{.queries = plan_.seq / plan_.context,
                       .keys = size.seq,
                       .share = share / ranks,
                       .window = walked(),
                       .beyond = queries_beyond(walked(), first, keys) / ranks};
  return attention_time(machine_.accelerator, size, rows, sms_);
}

void LayerCost::attention_core(Stream& stream, Direction direction) const {
  if (point_.cached > 0) {
    decode_core(stream);
    return;
  }
  const AttentionSize size = core_size();
  if (passes_blocks()) {
    ring_core(stream, size, direction);
    return;
  }
  if (plan_.fused_attention) {
    const Duration time = core_time(size);
    attention(stream, fused(direction == Direction::forward ? time : times(fused_backward, time)));
    return;
  }
  unfused_core(stream, size, direction);
}

void LayerCost::softmax(Stream& stream, const AttentionSize& size, Direction direction) const {
  const auto scores = static_cast<double>(size.batch * size.heads * size.seq * size.seq);
  const bool forward = direction == Direction::forward;
  if (size.batch * size.heads % heads_of_fused_softmax == 0) {
    moved_bytes(stream, (forward ? softmax_bytes : softmax_backward_bytes) * scores);
    return;
  }
  const auto add = [&](std::span<const double> kernels) {
    for (const double bytes : kernels) {
      moved_bytes(stream, bytes * scores);
    }
  };
  if (forward) {
    add(separate_softmax_bytes);
  } else {
    add(separate_softmax_backward_bytes);
  }
}

/// Adds the kernels of unfused attention: scores, softmax with scale and mask, dropout, output. The backward pass has
/// two GEMMs for each GEMM of the forward pass. The GEMMs write and read the scores themselves, as in Megatron-LM's
/// CoreAttention; they have no weights and stay wide in fp8 recipes.
void LayerCost::unfused_core(Stream& stream, const AttentionSize& size, Direction direction) const {
  const std::int64_t rows = size.batch * size.heads * size.seq;
  const auto scores = static_cast<double>(rows * size.seq);
  const bool forward = direction == Direction::forward;
  const auto gemms = [&] {
    kernel(stream, gemm_time({.m = rows, .n = size.seq, .k = size.head_dim, .dtype = size.dtype}, false, 0));
    kernel(stream, gemm_time({.m = rows, .n = size.head_dim, .k = size.seq, .dtype = size.dtype}, false, 0));
  };
  gemms();
  softmax(stream, size, direction);
  if (plan_.dropout) {
    moved_bytes(stream, dropout_bytes * scores);
  }
  if (!forward) {
    gemms();
  }
}

bool simulates_ulysses(const StepPoint& point) {
  const TrainingPlan& plan = point.plan;
  const Transformer& model = *point.model;
  return plan.ulysses > 1 && plan.tensor == 1 && plan.context == 1 && plan.fused_attention && !model.latent &&
         !model.gated_attention && model.value_dim() == model.head_dim &&
         std::ranges::any_of(point.strategies, [kinds = kinds_of(Scope::ulysses)](const Strategy* strategy) {
           return applies(*strategy, kinds);
         });
}

void LayerCost::ulysses_block(Stream& stream) {
  SitePoint block = ulysses_point(plan_, *shape_);
  block.dtype = gemm_dtype_;
  block.weight_bits = weight_bits_;
  block.window = window_of(kind_);
  add_fastest(stream, block, {.ending = "ulysses"});
  // The block has the attention kernel of the machine's file; the framework's kernel may take longer.
  const Duration time = core_time(core_size());
  stream = stream.longer(slowed(fused(time) - time));
}

/// Serving engines add the previous residual and normalize in one kernel, which reads and writes two tensors (vLLM,
/// fused_add_rms_norm). Training keeps the residual and the normalized tensor, so each has its own kernel.
void LayerCost::norm_before(Stream& stream) const {
  if (parts_ == nullptr) {
    moved(stream, (point_.serves ? 4 : 2) * norm_elements());
  }
}

void LayerCost::residual_after(Stream& stream) const {
  if (parts_ == nullptr && !point_.serves) {
    moved(stream, 3 * norm_elements());
  }
}

Duration LayerCost::block_forward(Stream& stream, void (LayerCost::*block)(Stream&)) {
  norm_before(stream);
  const Duration before = stream.device;
  (this->*block)(stream);
  const Duration time = stream.device - before;
  residual_after(stream);
  return time;
}

void LayerCost::attention_forward(Stream& stream) {
  const std::int64_t columns = qkv_columns();
  const bool block = simulates_ulysses(point_);
  if (block) {
    ulysses_block(stream);
  } else if (model_.latent) {
    latent_forward(stream);
  } else {
    site(stream, {shape_, SiteName::qkv}, Direction::forward);
  }
  if (model_.positions == 0 && !model_.latent) {  // rotation of queries and keys
    moved(stream, 2 * tokens_ * columns);
  }
  if (!block) {
    context_exchange(stream, Direction::forward);
    ulysses_exchange(stream, columns);
    attention_core(stream, Direction::forward);
    ulysses_exchange(stream, attended_columns());
    if (model_.gated_attention) {
      moved(stream, 3 * tokens_ * attended_columns());
    }
    site(stream, {shape_, SiteName::out_proj}, Direction::forward);
  }
}

void LayerCost::attention_backward(Stream& stream) {
  moved(stream, residual_elements());
  site(stream, {shape_, SiteName::out_proj}, Direction::backward);
  if (model_.gated_attention) {
    moved(stream, 5 * tokens_ * attended_columns());
  }
  ulysses_exchange(stream, attended_columns());
  if (plan_.recompute == Recompute::selective && point_.framework.selective.attention_core) {
    core_again(stream);
  }
  attention_core(stream, Direction::backward);
  ulysses_exchange(stream, qkv_columns());
  context_exchange(stream, Direction::backward);
  if (model_.latent) {
    latent_backward(stream);
  } else {
    if (model_.positions == 0) {
      moved(stream, 2 * tokens_ * qkv_columns());
    }
    site(stream, {shape_, SiteName::qkv}, Direction::backward);
  }
  moved(stream, 4 * norm_elements());
}

void LayerCost::mlp_forward(Stream& stream) {
  if (kind_.mlp == MlpKind::mixture) {
    experts(stream, Direction::forward);
    return;
  }
  const std::int64_t ups = model_.gated_mlp ? 2 : 1;
  site(stream, {shape_, SiteName::gate_up}, Direction::forward);
  moved(stream, (ups + 1) * tokens_ * shape_->ffn / plan_.tensor);
  site(stream, {shape_, SiteName::down}, Direction::forward);
}

void LayerCost::mlp_backward(Stream& stream, MlpKind kind) {
  const std::int64_t ups = model_.gated_mlp ? 2 : 1;
  moved(stream, residual_elements());
  if (kind == MlpKind::mixture) {
    experts(stream, Direction::backward);
  } else {
    site(stream, {shape_, SiteName::down}, Direction::backward);
    moved(stream, (2 * ups + 1 + (model_.biases ? 1 : 0)) * tokens_ * shape_->ffn / plan_.tensor);
    site(stream, {shape_, SiteName::gate_up}, Direction::backward);
  }
  moved(stream, 4 * norm_elements());
}

GemmPrecision precision_of(const StepPoint& point, double WeightFormat::*share) {
  constexpr double half = 0.5;  // parts with a smaller share of narrow weights use the wide dtype
  const DType dtype = point.plan.dtype;
  const std::optional<WeightFormat>& weights = point.model->weights;
  if (!point.serves || !weights) {
    return {.dtype = dtype};
  }
  const double narrow = (*weights).*share;
  const bool is_wide = narrow < half && dtype == DType::fp8;
  return {.dtype = is_wide ? DType::bf16 : dtype, .weight_bits = weights->bits_of(narrow)};
}

void LayerCost::read_weights(double WeightFormat::*share) {
  const GemmPrecision precision = precision_of(point_, share);
  gemm_dtype_ = precision.dtype;
  weight_bits_ = precision.weight_bits;
}

void LayerCost::turn_to(const LayerKind& kind) {
  kind_ = kind;
  auto known = shapes_.find(kind);
  if (known == shapes_.end()) {
    known = shapes_.emplace(kind, shape_of(model_, kind)).first;
  }
  shape_ = &known->second;
}

ForwardBlocks LayerCost::forward_blocks(const LayerKind& kind) {
  turn_to(kind);
  ForwardBlocks blocks;
  read_weights(&WeightFormat::attention);
  if (kind.attention) {
    blocks.mixing += block_forward(blocks.pass, &LayerCost::attention_forward);
  }
  if (kind.state_space) {
    blocks.mixing += block_forward(blocks.pass, &LayerCost::state_space_forward);
  }
  read_weights(&WeightFormat::mlp);
  if (kind.mlp != MlpKind::none) {
    blocks.mlp = block_forward(blocks.pass, &LayerCost::mlp_forward);
  }
  weight_bits_ = 0.0;
  gemm_dtype_ = plan_.dtype;
  return blocks;
}

std::vector<Stream> LayerCost::forward_between_sums(const LayerKind& kind) {
  check(plan_.tensor > 1 && !plan_.sequence_parallel && !kind.state_space, "sums follow attention and MLPs");
  std::vector<Stream> parts;
  parts_ = &parts;
  static_cast<void>(forward(kind));
  parts_ = nullptr;
  return parts;
}

Stream LayerCost::backward(const LayerKind& kind) {
  turn_to(kind);
  Stream stream;
  if (plan_.recompute == Recompute::full) {
    stream = forward(kind);
  } else if (plan_.recompute == Recompute::selective) {
    selected_again(stream);
  }
  if (kind.mlp != MlpKind::none) {
    mlp_backward(stream, kind.mlp);
  }
  if (kind.state_space) {
    state_space_backward(stream);
  }
  if (kind.attention) {
    attention_backward(stream);
  }
  accumulation(stream, parameters_on_gpu(model_, plan_, kind));
  return stream;
}

/// Adds a kernel that reads a 16-bit gradient, and reads and writes its 32-bit sum.
void LayerCost::accumulation(Stream& stream, std::int64_t parameters) const {
  if (plan_.gradient_dtype != DType::fp32 || point_.framework.fuses_accumulation) {
    return;
  }
  const std::int64_t bytes_per_parameter = bytes_of(DType::bf16) + 2 * bytes_of(DType::fp32);
  weight_kernel(stream, memory_bound_time(machine_.accelerator, Bytes{parameters * bytes_per_parameter}, sms_));
}

LayerCost::SplitPasses LayerCost::backward_split(const LayerKind& kind) {
  SplitPasses split;
  weights_ = &split.weights;
  split.inputs = backward(kind);
  weights_ = nullptr;
  return split;
}

LayerCost::SplitPasses LayerCost::logits_backward_split() {
  SplitPasses split;
  weights_ = &split.weights;
  split.inputs = logits_backward();
  weights_ = nullptr;
  return split;
}

Stream LayerCost::embedding_forward() const {
  Stream stream;
  moved(stream, 2 * tokens_ * model_.hidden);
  if (plan_.tensor > 1 && plan_.sequence_parallel) {
    collective(stream, tensor_group().reduce_scatter(Bytes{width * tokens_ * model_.hidden}));
  }
  reduce(stream);
  if (plan_.dropout) {
    moved(stream, 3 * norm_elements());
  }
  return stream;
}

Stream LayerCost::embedding_backward() const {
  Stream stream;
  if (plan_.tensor > 1 && plan_.sequence_parallel) {
    collective(stream, tensor_group().all_gather(Bytes{width * tokens_ * model_.hidden}));
  }
  moved(stream, 3 * tokens_ * model_.hidden);
  accumulation(stream, model_.vocab / plan_.tensor * model_.hidden);
  return stream;
}

/// A vocabulary that does not divide among the ranks is not padded, although Megatron-LM pads it: the times of vTrain's
/// table (50257 tokens on two to eight ranks) are those of vocab / tensor columns.
Stream LayerCost::logits_forward() const {
  Stream stream;
  const std::int64_t columns = model_.vocab / plan_.tensor;
  moved(stream, 2 * norm_elements());
  if (plan_.tensor > 1 && plan_.sequence_parallel) {
    collective(stream, tensor_group().all_gather(Bytes{width * tokens_ * model_.hidden}));
  }
  kernel(stream, logits_time(tokens_, columns, model_.hidden, false));
  moved_bytes(stream, loss_forward * point_.framework.loss_bytes * static_cast<double>(tokens_ * columns));
  if (plan_.tensor > 1) {  // maximum, logit of the label, sum of exponentials, in fp32
    const Duration sum = tensor_group().all_reduce(Bytes{4 * tokens_});
    for (int i = 0; i < 3; ++i) {
      collective(stream, sum);
    }
  }
  return stream;
}

Stream LayerCost::logits_backward() const {
  Stream stream;
  const std::int64_t columns = model_.vocab / plan_.tensor;
  moved_bytes(stream, (1.0 - loss_forward) * point_.framework.loss_bytes * static_cast<double>(tokens_ * columns));
  kernel(stream, logits_time(tokens_, model_.hidden, columns, false));
  weight_kernel(stream, logits_time(model_.hidden, columns, tokens_, true));
  accumulation(stream, columns * model_.hidden);
  if (plan_.tensor > 1 && plan_.sequence_parallel) {
    collective(stream, tensor_group().reduce_scatter(Bytes{width * tokens_ * model_.hidden}));
  }
  reduce(stream);
  moved(stream, 4 * norm_elements());
  return stream;
}

Stream LayerCost::last_norm() const {
  Stream stream;
  norm_before(stream);
  return stream;
}

Stream LayerCost::last_logits() const {
  Stream stream;
  if (shares_tokens()) {
    collective(stream, tensor_group().all_gather(Bytes{width * tokens_ * model_.hidden}));
  }
  const bool is_wide = point_.serves && model_.weights.has_value();
  GemmSize logits{.m = plan_.micro_batch,
                  .n = logits_columns(model_, plan_.tensor),
                  .k = model_.hidden,
                  .dtype = is_wide ? wide() : plan_.dtype};
  if (logits.dtype == DType::fp8) {
    logits.out = wide();
  }
  kernel(stream, estimate_gemm(machine_.accelerator, logits, machine_.accelerator.sms).time);
  if (plan_.tensor > 1) {
    collective(stream, tensor_group().all_gather(Bytes{width * logits.m * logits.n * plan_.tensor}));
  }
  return stream;
}

Duration LayerCost::optimizer(std::int64_t parameters) const {
  const std::int64_t states = plan_.optimizer == Optimizer::adam ? 3 : 2;
  const std::int64_t bytes = parameters * (std::int64_t{2} * 4 * states + bytes_of(plan_.gradient_dtype) + width);
  return slowed(memory_bound_time(machine_.accelerator, Bytes{bytes}, machine_.accelerator.sms));
}

}  // namespace commfuse
