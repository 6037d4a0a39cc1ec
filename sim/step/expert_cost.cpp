// SPDX-License-Identifier: Apache-2.0
// Prices a mixture of experts in a layer: router, dispatch, grouped GEMMs, combine, and the shared experts of all
// tokens.
#include <algorithm>
#include <cmath>
#include <utility>

#include "model/cost/expert_layer.h"
#include "model/cost/memory_bound.h"
#include "model/math/functions.h"
#include "sim/step/layer_cost.h"

namespace commfuse {

namespace {

/// Returns the mean number of the `experts` that at least one token uses, where each of `tokens` tokens uses `active`
/// of `in_total` experts: a token skips an expert with probability 1 - active / in_total.
double experts_used(double experts, double active, double in_total, double tokens) {
  return experts * (1.0 - math::pow(1.0 - active / in_total, tokens));
}

}  // namespace

/// Adds one kernel for all experts of the rank: their tiles fill waves together. It reads the weights of the experts
/// that at least one token uses, or writes their gradients; where GEMMs add to 32-bit sums, the kernel reads and writes
/// these sums.
void LayerCost::grouped(Stream& stream, std::int64_t n, std::int64_t k, Direction direction) const {
  const Experts& experts = *model_.experts;
  const std::int64_t routed_tokens = tokens_ * experts.active;
  const std::int64_t own_experts = experts.count / plan_.expert;
  const double used_experts =
      experts_used(static_cast<double>(own_experts), static_cast<double>(experts.active),
                   static_cast<double>(experts.count), static_cast<double>(tokens_ * plan_.expert));
  const auto traffic_time = [&](double bytes_per_weight) {
    const Bytes traffic{std::llround(used_experts * static_cast<double>(n * k) * bytes_per_weight)};
    return memory_bound_time(machine_.accelerator, traffic, sms_);
  };
  const Duration read = traffic_time(bits_of_weights() / 8.0);
  if (direction == Direction::forward) {
    kernel(stream, std::max(read, gemm_time(routed_tokens, n, k, false)));
    return;
  }
  kernel(stream, std::max(read, gemm_time(routed_tokens, k, n, false)));
  const double gradient_bytes = static_cast<double>(adds_to_sums() ? 2 * bytes_of(DType::fp32) : width);
  weight_kernel(stream, std::max(traffic_time(gradient_bytes), gemm_time(k, n, routed_tokens, true)));
}

/// Returns the bits per weight that the next GEMMs read.
double LayerCost::bits_of_weights() const {
  return weight_bits_ > 0.0 ? weight_bits_ : 8.0 * static_cast<double>(bytes_of(gemm_dtype_));
}

/// A decoding step runs all routed experts of a rank as one call of the serving framework, where its kernels were
/// fitted for weights of this format. Tokens choose experts at random, so the call runs the expected number of experts,
/// each with equally many rows. After a dispatch, only the rank's own rows are sorted. Prefills keep the price of
/// GEMMs: at this price, prefills of Mixtral 8x22B in vLLM are predicted 1 to 10% too fast; with the fitted kernels,
/// which are TensorRT-LLM's, they would be predicted 5 to 14% too fast.
std::optional<Duration> LayerCost::served_experts() const {
  if (point_.cached == 0 || std::lround(bits_of_weights()) != 8 * bytes_of(gemm_dtype_) ||
      expert_layer_of(machine_.accelerator, gemm_dtype_) == nullptr) {
    return std::nullopt;
  }
  const Experts& experts = *model_.experts;
  const double hit =
      std::max(1.0, experts_used(static_cast<double>(experts.count / plan_.expert), static_cast<double>(experts.active),
                                 static_cast<double>(experts.count), static_cast<double>(tokens_ * plan_.expert)));
  const double rows = std::max(hit, static_cast<double>(tokens_ * experts.active));
  return expert_layer_time(machine_.accelerator,
                           {.tokens = tokens_,
                            .hidden = routed_width(),
                            .ffn = experts.ffn,
                            .active = experts.active,
                            .experts = experts.count,
                            .tp = plan_.tensor,
                            .ep = plan_.expert,
                            .gated = model_.gated_mlp,
                            .dtype = gemm_dtype_},
                           with_tiles({.rows = rows, .hit = hit}));
}

std::int64_t LayerCost::routed_width() const {
  return model_.experts->latent > 0 ? model_.experts->latent : model_.hidden;
}

/// Forward and backward passes have the same exchanges: one pass gathers what the other scatters. Each tensor rank
/// holds a part of every expert, and this part processes all tokens of the tensor ranks. Under sequence parallelism,
/// tokens are gathered before the experts and their outputs are scattered afterwards: once per token or, after a
/// dispatch, once per expert of each token (Megatron-LM, transformer/moe/token_dispatcher.py, by gathering and by
/// all-to-all). Without sequence parallelism, outputs are summed once, together with the outputs of the shared experts.
/// Tokens are assumed to be spread evenly over the experts.
void LayerCost::routed_experts(Stream& stream, Direction direction) {
  const Experts& experts = *model_.experts;
  const bool dispatches = plan_.expert > 1;
  const std::int64_t routed_tokens = tokens_ * experts.active;
  const std::int64_t permuted = dispatches ? own_tokens_ * experts.active : routed_tokens;
  const std::int64_t ups = model_.gated_mlp ? 2 : 1;
  const std::int64_t ffn = experts.ffn / plan_.tensor;
  const std::int64_t routed = routed_width();
  const Bytes gathered{width * (dispatches ? routed_tokens : tokens_) * routed};
  const auto exchange = [&] {
    if (dispatches) {
      collective(
          stream,
          group_at({.stride = plan_.tensor, .ranks = plan_.expert}).all_to_all(Bytes{width * permuted * routed}));
    }
  };
  router(stream, direction);
  if (direction == Direction::forward) {
    read_weights(&WeightFormat::experts);
  }
  moved(stream, 2 * own_tokens_ * experts.count);
  if (experts.latent > 0) {
    own_tokens_gemm(stream, routed, model_.hidden, direction);
  }
  const std::optional<Duration> served = served_experts();  // contains sorting and adding up
  if (!served) {
    moved(stream, 2 * permuted * routed);
  }
  exchange();
  if (shares_tokens()) {
    collective(stream, tensor_group().all_gather(gathered));
  }
  if (served) {
    attention(stream, *served);
  } else {
    grouped(stream, ups * ffn, routed, direction);
    moved(stream, (ups + 1 + (direction == Direction::backward ? ups : 0)) * routed_tokens * ffn);
    grouped(stream, routed, ffn, direction);
  }
  if (shares_tokens()) {
    collective(stream, tensor_group().reduce_scatter(gathered));
  }
  exchange();
  if (!served) {
    moved(stream, (experts.active + 1) * (dispatches ? own_tokens_ : tokens_) * routed);
  }
  if (experts.latent > 0) {
    own_tokens_gemm(stream, model_.hidden, routed, direction);
  }
}

/// Adds the router, which has 16 bits in every recipe (Megatron-LM, transformer/moe/router.py) and checkpoint.
void LayerCost::router(Stream& stream, Direction direction) {
  const double bits = std::exchange(weight_bits_, 0.0);
  const DType dtype = std::exchange(gemm_dtype_, wide());
  own_tokens_gemm(stream, model_.experts->count, model_.hidden, direction);
  weight_bits_ = bits;
  gemm_dtype_ = dtype;
}

/// Adds a GEMM that every tensor rank runs on its own tokens: the router, or the GEMM that narrows or widens tokens.
void LayerCost::own_tokens_gemm(Stream& stream, std::int64_t n, std::int64_t k, Direction direction) const {
  if (direction == Direction::forward) {
    gemm(stream, own_tokens_, n, k);
  } else {
    gemm_backward(stream, own_tokens_, n, k);
  }
}

/// Adds the shared experts. Under sequence parallelism they are an MLP like any other. Otherwise their outputs are
/// summed over the ranks together with those of the routed experts.
void LayerCost::shared_experts(Stream& stream, Direction direction) {
  if (shares_tokens()) {
    const bool forward = direction == Direction::forward;
    site(stream, {&*shared_experts_, forward ? SiteName::gate_up : SiteName::down}, direction);
    site(stream, {&*shared_experts_, forward ? SiteName::down : SiteName::gate_up}, direction);
    return;
  }
  const std::int64_t ups = model_.gated_mlp ? 2 : 1;
  const std::int64_t ffn = shared_experts_->ffn / plan_.tensor;
  if (direction == Direction::forward) {
    gemm(stream, tokens_, ups * ffn, model_.hidden);
    gemm(stream, tokens_, model_.hidden, ffn);
  } else {
    gemm_backward(stream, tokens_, model_.hidden, ffn);
    gemm_backward(stream, tokens_, ups * ffn, model_.hidden);
  }
}

void LayerCost::experts(Stream& stream, Direction direction) {
  routed_experts(stream, direction);
  if (direction == Direction::forward) {
    read_weights(&WeightFormat::mlp);
  }
  if (shared_experts_) {
    shared_experts(stream, direction);
  }
  reduce(stream);
}

}  // namespace commfuse
