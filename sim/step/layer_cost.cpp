// SPDX-License-Identifier: Apache-2.0
#include "sim/step/layer_cost.h"

#include <algorithm>
#include <cmath>

#include "model/cost/attention.h"
#include "model/cost/decode_attention.h"
#include "model/cost/gemm.h"
#include "model/cost/memory_bound.h"
#include "model/schedule/strategies.h"
#include "sim/step/group_link.h"

namespace commfuse {

namespace {

/// Bytes of an activation and of what goes over the wires: fp8 products convert on the fly.
constexpr std::int64_t width = 2;

/// A fused backward pass has five products where the forward pass has two, at about four fifths of their speed: Dao,
/// "FlashAttention-2", 2023, figures 4 and 6; Shah et al., "FlashAttention-3", 2024, figures 5 and 6.
constexpr double fused_backward = 2.5 / 0.8;

/// A step lasts far longer than a chip takes to get hot: its products have sustained power, not a burst's.
constexpr Flops hot{1e24};

/// Bytes a score, of 16 bits: read and written; backward softmax, its gradient and the result; dropout, either way, a
/// mask of one byte beside.
constexpr double softmax_bytes = 4.0;
constexpr double softmax_backward_bytes = 6.0;
constexpr double dropout_bytes = 5.0;

/// Of the bytes of the loss, those of its forward pass (38 of 52).
constexpr double loss_forward = 0.73;

Scope scope_of(SiteName name, bool backward) {
  switch (name) {
    case SiteName::qkv: return backward ? Scope::qkv_backward : Scope::qkv;
    case SiteName::out_proj: return backward ? Scope::out_proj_backward : Scope::out_proj;
    case SiteName::gate_up: return backward ? Scope::gate_up_backward : Scope::gate_up;
    case SiteName::down: return backward ? Scope::down_backward : Scope::down;
  }
  return Scope::qkv;
}

bool gathers(SiteName name) { return name == SiteName::qkv || name == SiteName::gate_up; }

/// The largest power of two that divides a row's bytes, at most 16: what a load may be wide.
std::int64_t alignment_of(std::int64_t elements) {
  const std::int64_t bytes = elements * width;
  return std::min<std::int64_t>(16, bytes & -bytes);
}

Duration times(double factor, Duration time) { return from_seconds(factor * to_seconds(time)); }

}  // namespace

LayerCost::LayerCost(const StepPoint& point, SiteTimes& sites)
    : point_(point),
      model_(*point.model),
      machine_(*point.machine),
      plan_(point.plan),
      sites_(sites),
      tokens_(plan_.tokens_per_pass()),
      own_tokens_(plan_.sequence_parallel ? tokens_ / plan_.tensor : tokens_) {}

void LayerCost::kernel(Stream& stream, Duration time) const {
  stream.add(point_.framework.issue.value, time + point_.framework.graph_gap);
}

void LayerCost::weight_kernel(Stream& stream, Duration time) const {
  kernel(weights_ == nullptr ? stream : *weights_, time);
}

void LayerCost::moved_bytes(Stream& stream, double bytes) const {
  const Bytes traffic{static_cast<std::int64_t>(bytes)};
  kernel(stream, memory_bound_time(machine_.accelerator, traffic, machine_.accelerator.sms));
}

void LayerCost::moved(Stream& stream, std::int64_t elements) const {
  moved_bytes(stream, static_cast<double>(width * elements));
}

std::int64_t LayerCost::norm_elements() const { return own_tokens_ * model_.hidden; }

Duration LayerCost::product_time(std::int64_t m, std::int64_t n, std::int64_t k, bool into_gradient, int ctas) const {
  GemmSize size{.m = m, .n = n, .k = k, .dtype = plan_.dtype};
  size.run = hot;
  if (into_gradient && plan_.gradient_dtype == DType::fp32) {
    size.out = DType::fp32;
    size.accumulate = true;
  }
  const int sms = std::max(1, machine_.accelerator.sms - ctas);
  const Duration time = estimate_gemm(machine_.accelerator, size, sms).time;
  const std::int64_t alignment = std::min({alignment_of(m), alignment_of(n), alignment_of(k)});
  return alignment == 16
             ? time
             : times(std::pow(16.0 / static_cast<double>(alignment), point_.framework.misaligned_power.value), time);
}

void LayerCost::product(Stream& stream, std::int64_t m, std::int64_t n, std::int64_t k) const {
  kernel(stream, product_time(m, n, k, false));
}

void LayerCost::product_backward(Stream& stream, std::int64_t m, std::int64_t n, std::int64_t k) const {
  kernel(stream, product_time(m, k, n, false));
  weight_kernel(stream, product_time(k, n, m, true));
}

/// Of the tensor ranks, where they do not share the tokens: the sum of a layer's outputs or gradients.
void LayerCost::reduce(Stream& stream) const {
  if (plan_.tensor > 1 && !plan_.sequence_parallel) {
    kernel(stream, group_of(machine_, 1, plan_.tensor).all_reduce(Bytes{width * tokens_ * model_.hidden}));
  }
}

void LayerCost::site(Stream& stream, SiteName name, Direction direction) {
  const bool backward = direction == Direction::backward;
  const bool shares = plan_.sequence_parallel && plan_.tensor > 1;
  const bool is_split = backward && weights_ != nullptr;
  if (shares && !is_split && !point_.strategies.empty() && plan_.dtype != DType::fp8) {
    const SiteTime time = sites_.fastest({.model = &model_,
                                          .scope = scope_of(name, backward),
                                          .ranks = static_cast<std::int32_t>(plan_.tensor),
                                          .tokens = tokens_,
                                          .dtype = plan_.dtype,
                                          .strategy = nullptr},
                                         point_.strategies);
    kernel(stream, time.time);
    stream.add_host((time.kernels - 1) * point_.framework.issue.value);
    return;
  }
  const Site whole = site_of(model_, name, tokens_);
  const bool first = gathers(name);
  const std::int64_t n = first ? whole.columns / plan_.tensor : whole.columns;
  const std::int64_t k = first ? whole.contraction : whole.contraction / plan_.tensor;
  const Bytes state{width * tokens_ * model_.hidden};
  const Group group = shares ? group_of(machine_, 1, plan_.tensor) : Group{};
  if (!backward) {
    if (shares && first) {
      kernel(stream, group.all_gather(state));
    }
    product(stream, tokens_, n, k);
    if (shares && !first) {
      kernel(stream, group.reduce_scatter(state));
    }
    if (!shares && !first) {
      reduce(stream);
    }
    return;
  }
  site_backward(stream, {tokens_, n, k}, first);
}

/// Under a column the input is gathered again and its gradient scattered, or without sequence parallelism summed; under
/// a row the incoming gradient is gathered. What a column's needs runs beside its two products (Korthikanti et al.
/// 2022, section 4.2.2; Megatron-LM, tensor_parallel/layers.py), where the framework does so.
void LayerCost::site_backward(Stream& stream, const Product& forward, bool column) const {
  const bool shares = plan_.sequence_parallel && plan_.tensor > 1;
  const Bytes state{width * tokens_ * model_.hidden};
  const Duration of_input = product_time(forward.m, forward.k, forward.n, false);
  const Duration of_weight = product_time(forward.k, forward.n, forward.m, true);
  if (plan_.tensor == 1 || (!column && !shares)) {
    kernel(stream, of_input);
    weight_kernel(stream, of_weight);
    return;
  }
  const Group group = group_of(machine_, 1, plan_.tensor);
  if (!column) {
    kernel(stream, group.all_gather(state));
    kernel(stream, of_input);
    weight_kernel(stream, of_weight);
    return;
  }
  const Duration gathered = shares ? group.all_gather(state) : Duration::zero();
  const Duration reduced = shares ? group.reduce_scatter(state) : group.all_reduce(state);
  const std::int64_t collectives = shares ? 2 : 1;
  if (point_.framework.overlaps_backward && weights_ == nullptr) {
    const int ctas = group.parameters.ctas.value;  // the SMs that a collective holds
    kernel(stream, shares ? std::max(gathered, product_time(forward.m, forward.k, forward.n, false, ctas)) : of_input);
    kernel(stream, std::max(reduced, product_time(forward.k, forward.n, forward.m, true, ctas)));
    stream.add_host(collectives * point_.framework.issue.value);
    return;
  }
  if (shares) {
    weight_kernel(stream, gathered);
  }
  kernel(stream, of_input);
  weight_kernel(stream, of_weight);
  kernel(stream, reduced);
}

/// Keys and values of the other tokens of the sequence: gathered before the core, their gradients scattered behind it
/// (Llama team, "The Llama 3 Herd of Models", 2024, section 3.3.2).
void LayerCost::context_exchange(Stream& stream, Direction direction) const {
  if (plan_.context == 1) {
    return;
  }
  const Group group = group_of(machine_, plan_.tensor, plan_.context);
  const std::int64_t columns = 2 * model_.kv_heads * model_.head_dim / plan_.tensor;
  const Bytes all{width * tokens_ * plan_.context * columns};
  kernel(stream, direction == Direction::forward ? group.all_gather(all) : group.reduce_scatter(all));
}

AttentionSize decode_attention_size(const StepPoint& point) {
  const Transformer& model = *point.model;
  const TrainingPlan& plan = point.plan;
  return {.batch = plan.micro_batch,
          .seq = point.cached + 1,
          .heads = model.heads / plan.tensor,
          .kv_heads = std::max<std::int64_t>(1, model.kv_heads / plan.tensor),
          .head_dim = model.head_dim,
          .dtype = plan.dtype == DType::fp8 ? DType::bf16 : plan.dtype};
}

void LayerCost::decode_core(Stream& stream) const {
  kernel(stream, decode_attention_time(machine_.accelerator, decode_attention_size(point_)));
}

/// Queries and keys of latent attention are wider than its values: their mean has the same FLOPs.
std::int64_t LayerCost::score_dim() const {
  return model_.latent ? (model_.head_dim + model_.latent->position_dim + model_.latent->value_dim) / 2
                       : model_.head_dim;
}

/// Tokens through the narrow middle: every tensor rank makes the narrow queries and keys of its own tokens, they are
/// gathered, and each makes the queries, keys and values of its heads of all of them (Megatron-LM,
/// transformer/multi_latent_attention.py). Rotation copies queries and keys.
void LayerCost::latent_forward(Stream& stream) const {
  const LatentAttention& latent = *model_.latent;
  const std::int64_t heads = model_.heads / plan_.tensor;
  const std::int64_t narrow = latent.query_rank + latent.key_value_rank + latent.position_dim;
  product(stream, own_tokens_, latent.query_rank, model_.hidden);
  product(stream, own_tokens_, latent.key_value_rank + latent.position_dim, model_.hidden);
  moved(stream, 2 * own_tokens_ * (latent.query_rank + latent.key_value_rank));
  if (plan_.sequence_parallel && plan_.tensor > 1) {
    kernel(stream, group_of(machine_, 1, plan_.tensor).all_gather(Bytes{width * tokens_ * narrow}));
  }
  product(stream, tokens_, heads * (model_.head_dim + latent.position_dim), latent.query_rank);
  product(stream, tokens_, heads * (model_.head_dim + latent.value_dim), latent.key_value_rank);
  moved(stream, 4 * tokens_ * heads * (model_.head_dim + latent.position_dim));
}

/// The narrow gradients of all tokens are summed over the tensor ranks, each of which has those of its heads.
void LayerCost::latent_backward(Stream& stream) const {
  const LatentAttention& latent = *model_.latent;
  const std::int64_t heads = model_.heads / plan_.tensor;
  const std::int64_t narrow = latent.query_rank + latent.key_value_rank + latent.position_dim;
  moved(stream, 4 * tokens_ * heads * (model_.head_dim + latent.position_dim));
  product_backward(stream, tokens_, heads * (model_.head_dim + latent.position_dim), latent.query_rank);
  product_backward(stream, tokens_, heads * (model_.head_dim + latent.value_dim), latent.key_value_rank);
  if (plan_.tensor > 1) {
    const Group group = group_of(machine_, 1, plan_.tensor);
    const Bytes gradients{width * tokens_ * narrow};
    kernel(stream, plan_.sequence_parallel ? group.reduce_scatter(gradients) : group.all_reduce(gradients));
  }
  moved(stream, 4 * own_tokens_ * (latent.query_rank + latent.key_value_rank));
  product_backward(stream, own_tokens_, latent.query_rank, model_.hidden);
  product_backward(stream, own_tokens_, latent.key_value_rank + latent.position_dim, model_.hidden);
}

void LayerCost::attention_core(Stream& stream, Direction direction) const {
  if (point_.cached > 0) {
    decode_core(stream);
    return;
  }
  const bool forward = direction == Direction::forward;
  const AttentionSize size{.batch = plan_.micro_batch,
                           .seq = plan_.seq,
                           .heads = model_.heads / plan_.tensor,
                           .kv_heads = std::max<std::int64_t>(1, model_.kv_heads / plan_.tensor),
                           .head_dim = score_dim(),
                           .dtype = plan_.dtype == DType::fp8 ? DType::bf16 : plan_.dtype};
  const int sms = machine_.accelerator.sms;
  if (plan_.fused_attention) {
    // Balanced over context ranks (zig-zag): each has its share of the queries and of the scores.
    const auto ranks = static_cast<double>(plan_.context);
    const QueryRows rows{.queries = plan_.seq / plan_.context, .keys = plan_.seq, .share = 0.5 / ranks};
    const Duration time = attention_time(machine_.accelerator, size, rows, sms);
    kernel(stream, forward ? time : times(fused_backward, time));
    return;
  }
  unfused_core(stream, size, direction);
}

/// Kernel by kernel: scores, softmax with scale and mask, dropout, output; backward two products for each product. The
/// products write and read the scores themselves. As Megatron-LM's CoreAttention.
void LayerCost::unfused_core(Stream& stream, const AttentionSize& size, Direction direction) const {
  const std::int64_t rows = size.batch * size.heads * size.seq;
  const auto scores = static_cast<double>(rows * size.seq);
  const bool forward = direction == Direction::forward;
  const auto products = [&] {
    product(stream, rows, size.seq, size.head_dim);
    product(stream, rows, size.head_dim, size.seq);
  };
  products();
  moved_bytes(stream, (forward ? softmax_bytes : softmax_backward_bytes) * scores);
  if (plan_.dropout) {
    moved_bytes(stream, dropout_bytes * scores);
  }
  if (!forward) {
    products();
  }
}

void LayerCost::attention_forward(Stream& stream) {
  const std::int64_t heads = (model_.heads + 2 * model_.kv_heads) * model_.head_dim / plan_.tensor;
  moved(stream, 2 * norm_elements());
  if (model_.latent) {
    latent_forward(stream);
  } else {
    site(stream, SiteName::qkv, Direction::forward);
  }
  if (model_.positions == 0 && !model_.latent) {  // rotation of queries and keys
    moved(stream, 2 * tokens_ * heads);
  }
  context_exchange(stream, Direction::forward);
  attention_core(stream, Direction::forward);
  site(stream, SiteName::out_proj, Direction::forward);
  moved(stream, 3 * norm_elements());
}

/// Dispatch, the products of the experts of this rank, combine; the router's own product and its choice are one kernel
/// each. Tokens are taken to spread evenly over the experts.
void LayerCost::experts(Stream& stream, Direction direction) const {
  const Experts& experts = *model_.experts;
  const bool backward = direction == Direction::backward;
  const std::int64_t sent = own_tokens_ * experts.active;
  const std::int64_t met = tokens_ * experts.active;
  const std::int64_t ups = model_.gated_mlp ? 2 : 1;
  const std::int64_t ffn = experts.ffn / plan_.tensor;
  const Group group = group_of(machine_, plan_.tensor, plan_.expert);
  const auto exchange = [&] {
    if (plan_.expert > 1) {
      kernel(stream, group.all_to_all(Bytes{width * sent * model_.hidden}));
    }
  };
  // One grouped kernel: its tiles fill waves together, and it reads the weights of all experts of the rank.
  const auto grouped = [&](std::int64_t n, std::int64_t k) {
    const Bytes weights{width * (experts.count / plan_.expert) * n * k};
    const Duration read = memory_bound_time(machine_.accelerator, weights, machine_.accelerator.sms);
    kernel(stream, std::max(read, product_time(met, n, k, false)));
    if (backward) {
      weight_kernel(stream, std::max(read, product_time(k, n, met, true)));
    }
  };
  product(stream, own_tokens_, experts.count, model_.hidden);
  moved(stream, 2 * own_tokens_ * experts.count);
  moved(stream, 2 * sent * model_.hidden);
  exchange();
  grouped(ups * ffn, model_.hidden);
  moved(stream, (ups + 1 + (backward ? ups : 0)) * met * ffn);
  grouped(model_.hidden, ffn);
  exchange();
  moved(stream, (experts.active + 1) * own_tokens_ * model_.hidden);
  if (experts.shared > 0) {
    const std::int64_t shared = experts.shared * ffn;
    product(stream, tokens_, ups * shared, model_.hidden);
    product(stream, tokens_, model_.hidden, shared);
    if (backward) {
      weight_kernel(stream, product_time(tokens_, ups * shared, model_.hidden, false));
      weight_kernel(stream, product_time(tokens_, model_.hidden, shared, false));
    }
  }
}

void LayerCost::mlp_forward(Stream& stream, bool mixture) {
  moved(stream, 2 * norm_elements());
  if (mixture) {
    experts(stream, Direction::forward);
  } else {
    const std::int64_t ups = model_.gated_mlp ? 2 : 1;
    site(stream, SiteName::gate_up, Direction::forward);
    moved(stream, (ups + 1) * tokens_ * model_.ffn / plan_.tensor);
    site(stream, SiteName::down, Direction::forward);
  }
  moved(stream, 3 * norm_elements());
}

Stream LayerCost::forward(bool mixture) {
  Stream stream;
  attention_forward(stream);
  mlp_forward(stream, mixture);
  return stream;
}

Stream LayerCost::backward(bool mixture) {
  Stream stream;
  if (plan_.recompute == Recompute::full) {
    stream = forward(mixture);
  }
  const std::int64_t ups = model_.gated_mlp ? 2 : 1;
  const std::int64_t residual = 3 + (plan_.dropout ? 2 : 0) + (model_.biases ? 1 : 0);
  moved(stream, residual * norm_elements());
  if (mixture) {
    experts(stream, Direction::backward);
  } else {
    site(stream, SiteName::down, Direction::backward);
    moved(stream, (2 * ups + 1 + (model_.biases ? 1 : 0)) * tokens_ * model_.ffn / plan_.tensor);
    site(stream, SiteName::gate_up, Direction::backward);
  }
  moved(stream, 4 * norm_elements());
  moved(stream, residual * norm_elements());
  site(stream, SiteName::out_proj, Direction::backward);
  if (plan_.recompute == Recompute::selective && !plan_.fused_attention) {
    attention_core(stream, Direction::forward);
  }
  attention_core(stream, Direction::backward);
  context_exchange(stream, Direction::backward);
  if (model_.latent) {
    latent_backward(stream);
  } else {
    if (model_.positions == 0) {
      moved(stream, 2 * tokens_ * (model_.heads + 2 * model_.kv_heads) * model_.head_dim / plan_.tensor);
    }
    site(stream, SiteName::qkv, Direction::backward);
  }
  moved(stream, 4 * norm_elements());
  return stream;
}

LayerCost::SplitPasses LayerCost::backward_split(bool mixture) {
  SplitPasses split;
  weights_ = &split.weights;
  split.inputs = backward(mixture);
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
    kernel(stream, group_of(machine_, 1, plan_.tensor).reduce_scatter(Bytes{width * tokens_ * model_.hidden}));
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
    kernel(stream, group_of(machine_, 1, plan_.tensor).all_gather(Bytes{width * tokens_ * model_.hidden}));
  }
  moved(stream, 3 * tokens_ * model_.hidden);
  return stream;
}

Stream LayerCost::logits_forward() const {
  Stream stream;
  const std::int64_t columns = model_.vocab / plan_.tensor;
  moved(stream, 2 * norm_elements());
  if (plan_.tensor > 1 && plan_.sequence_parallel) {
    kernel(stream, group_of(machine_, 1, plan_.tensor).all_gather(Bytes{width * tokens_ * model_.hidden}));
  }
  product(stream, tokens_, columns, model_.hidden);
  moved_bytes(stream, loss_forward * point_.framework.loss_bytes * static_cast<double>(tokens_ * columns));
  if (plan_.tensor > 1) {  // maximum, logit of the label, sum of exponentials, in fp32
    const Duration sum = group_of(machine_, 1, plan_.tensor).all_reduce(Bytes{4 * tokens_});
    for (int i = 0; i < 3; ++i) {
      kernel(stream, sum);
    }
  }
  return stream;
}

Stream LayerCost::logits_backward() const {
  Stream stream;
  const std::int64_t columns = model_.vocab / plan_.tensor;
  moved_bytes(stream, (1.0 - loss_forward) * point_.framework.loss_bytes * static_cast<double>(tokens_ * columns));
  product_backward(stream, tokens_, columns, model_.hidden);
  if (plan_.tensor > 1 && plan_.sequence_parallel) {
    kernel(stream, group_of(machine_, 1, plan_.tensor).reduce_scatter(Bytes{width * tokens_ * model_.hidden}));
  }
  reduce(stream);
  moved(stream, 4 * norm_elements());
  return stream;
}

Duration LayerCost::optimizer(std::int64_t parameters) const {
  const std::int64_t states = plan_.optimizer == Optimizer::adam ? 3 : 2;
  const std::int64_t bytes = parameters * (std::int64_t{2} * 4 * states + bytes_of(plan_.gradient_dtype) + width);
  return memory_bound_time(machine_.accelerator, Bytes{bytes}, machine_.accelerator.sms);
}

}  // namespace commfuse
