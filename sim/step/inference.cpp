// SPDX-License-Identifier: Apache-2.0
// Predicts a prefill or a decoding step of a whole model: one pass through all layers on one stage.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include "model/check.h"
#include "model/config_error.h"
#include "model/cost/decode_attention.h"
#include "model/workload/layers.h"
#include "sim/step/passes.h"
#include "sim/step/step.h"
#include "sim/step/woven.h"

namespace commfuse {

namespace {

ForwardBlocks all_layers(LayerCost& costs) {
  ForwardBlocks layers;
  std::map<LayerKind, ForwardBlocks> known;
  for (const LayerRun& run : layer_runs(costs.model())) {
    const auto [layer, is_new] = known.try_emplace(run.kind);
    if (is_new) {
      layer->second = costs.forward_blocks(run.kind);
    }
    layers.pass = layers.pass.then(repeated(layer->second.pass, run.count));
    layers.mixing += run.count * layer->second.mixing;
    layers.mlp += run.count * layer->second.mlp;
  }
  return layers;
}

/// Returns all layers of a pass whose tokens are two halves, as one stream.
Stream woven_layers(const StepPoint& point, SiteTimes& sites) {
  const WovenPass woven = woven_pass(point, sites);
  return {.host = woven.host, .device = woven.device, .end = counted(std::max(woven.host, woven.device))};
}

/// Time of one pass: all layers, and the logits of each sequence's last token. A woven pass has no parts.
struct WholePass {
  Duration time{};
  std::optional<InferenceBreakdown> parts{};
};

WholePass forward_pass(const StepPoint& point, SiteTimes& sites) {
  LayerCost costs(point, sites);
  const Implementation* const kernels = point.implemented.kernels;
  const Stream embedding = costs.embedding_forward();
  const Stream logits = costs.last_logits();
  if (kernels != nullptr && weaves(*kernels)) {  // The last sum contains the last norm.
    return {.time = embedding.then(woven_layers(point, sites)).then(logits).after({}, Duration::zero()).device};
  }
  const ForwardBlocks layers = all_layers(costs);
  const Stream pass = embedding.then(layers.pass).then(costs.last_norm()).then(logits);
  const Duration time = pass.after({}, Duration::zero()).device;
  return {.time = time,
          .parts = InferenceBreakdown{.mixing = layers.mixing,
                                      .mlp = layers.mlp,
                                      .other = pass.device - layers.mixing - layers.mlp,
                                      .waiting = time - pass.device}};
}

/// Throws ConfigError where the bytes exceed 64 bits.
Bytes cache_of_layers(const StepPoint& point) {
  constexpr double limit = 4e18;
  Bytes total;
  for (const LayerRun& run : layer_runs(*point.model)) {
    const Bytes layer = decode_cache(point, run.kind);
    const double more = static_cast<double>(run.count) * static_cast<double>(layer.count);
    if (static_cast<double>(total.count) + more > limit) {
      throw ConfigError(
          fmt::format("{} sequences of {} tokens of {} need a KV cache of more than {:.0e} bytes; choose a smaller "
                      "batch or sequence",
                      point.plan.micro_batch, point.cached, point.model->name, limit));
    }
    total += run.count * layer;
  }
  return total;
}

/// Returns the cache that a GPU would have if the plan had a tensor rank for each head.
Bytes least_cache_of_layers(StepPoint point) {
  point.plan.tensor = std::max(point.plan.tensor, point.model->heads);
  return cache_of_layers(point);
}

}  // namespace

StepPercentiles inference_percentiles(const StepPoint& point, SiteTimes& sites) {
  return over_machines(point, [&](const StepPoint& of) { return forward_pass(of, sites).time; });
}

PrefillPrediction predict_prefill(const StepPoint& point, SiteTimes& sites) {
  const Tokens tokens{point.plan.micro_batch, point.plan.seq};
  const ForwardFlops flops = forward_flops(*point.model, tokens, AttentionCount::causal);
  const Flops last_logits = forward_flops(*point.model, {point.plan.micro_batch, 1}, AttentionCount::causal).logits;
  const WholePass pass = forward_pass(on_average(point), sites);
  PrefillPrediction prediction;
  prediction.time = pass.time;
  prediction.parts = pass.parts;
  const double seconds = to_seconds(prediction.time);
  prediction.tokens_per_second = static_cast<double>(tokens.count()) / seconds;
  prediction.mfu = (flops.layers + flops.attention + last_logits).count / (seconds * peak_of(point));
  StepPoint filled = point;
  filled.cached = std::max<std::int64_t>(1, point.plan.seq / point.plan.sequence_ranks()) - 1;  // plus the new token
  prediction.weights = stored_weights(*point.model, point.plan, 0);
  prediction.cache = cache_of_layers(filled);
  prediction.least_cache = least_cache_of_layers(filled);
  prediction.fits = prediction.weights + prediction.cache <= point.machine->accelerator.hbm_capacity;
  return prediction;
}

DecodePrediction predict_decode(const StepPoint& point, SiteTimes& sites) {
  check(point.cached > 0 && point.plan.seq == 1, "a decoding step has one token per sequence, and cached keys");
  const Transformer& model = *point.model;
  const TrainingPlan& plan = point.plan;
  const ForwardFlops flops = forward_flops(model, {plan.micro_batch, 1}, AttentionCount::causal);
  // Attention has two GEMMs: a query with all keys, and the scores with all values. An indexer first scores every key.
  const LatentAttention latent = model.latent.value_or(LatentAttention{.value_dim = model.value_dim()});
  const Indexer indexer = latent.indexer.value_or(Indexer{});
  const auto keys = static_cast<double>(point.cached + 1);
  const auto score_width = static_cast<double>(model.heads * (model.head_dim + latent.position_dim + latent.value_dim));
  const double indexed = keys * static_cast<double>(indexer.heads * indexer.head_dim);
  double products = 0.0;  // number of multiplications of one sequence over all layers
  for (const LayerRun& run : layer_runs(model)) {
    if (run.kind.attention) {
      const auto seen = static_cast<double>(last_keys(model, run.kind, point.cached + 1));
      products += static_cast<double>(run.count) * (seen * score_width + indexed);
    }
  }
  const double attention = 2.0 * static_cast<double>(plan.micro_batch) * products;
  const WholePass pass = forward_pass(on_average(point), sites);
  DecodePrediction prediction;
  prediction.time = pass.time;
  prediction.parts = pass.parts;
  const double seconds = to_seconds(prediction.time);
  prediction.tokens_per_second = static_cast<double>(plan.micro_batch) / seconds;
  prediction.mfu = ((flops.layers + flops.logits).count + attention) / (seconds * peak_of(point));
  prediction.weights = stored_weights(model, plan, 0);
  prediction.cache = cache_of_layers(point);
  prediction.least_cache = least_cache_of_layers(point);
  prediction.fits = prediction.weights + prediction.cache <= point.machine->accelerator.hbm_capacity;
  return prediction;
}

}  // namespace commfuse
