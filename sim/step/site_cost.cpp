// SPDX-License-Identifier: Apache-2.0
// Prices the GEMMs of a layer that meet a collective of the tensor ranks: simulated with a strategy's schedule, or
// priced as Megatron-LM runs them.
#include <algorithm>
#include <optional>

#include "model/config/implementation.h"
#include "model/strategies/strategies.h"
#include "sim/step/layer_cost.h"

namespace commfuse {

SitePoint LayerCost::point_of(const Transformer& shape, Scope scope) const {
  SitePoint point = site_point(plan_, shape, scope);
  point.weight_bits = weight_bits_;
  return point;
}

void LayerCost::add_site(Stream& stream, const SitePoint& site) {
  add_site(stream, site, sites_.fastest(site, point_.strategies));
}

void LayerCost::add_site(Stream& stream, const SitePoint& site, const SiteTime& time) {
  const double fewer_sms = static_cast<double>(machine_.accelerator.sms) / sms_;
  const Slowdown slowdown{.kernels = point_.slowdown * fewer_sms,
                          .collectives = slowest_of(site.ranks, point_.communication_sigma),
                          .exchanges = slowest_of(2, point_.communication_sigma)};
  collective(stream, sites_.slowed(site, time, slowdown));
  stream.add_host((time.kernels - 1) * point_.framework.issue.value);
}

void LayerCost::site(Stream& stream, const Projection& projection, Direction direction) {
  const bool backward = direction == Direction::backward;
  if (simulates_schedules() && backward && weights_ != nullptr) {
    site_backward_split(stream, projection);
    return;
  }
  if (simulates_schedules()) {
    add_site(stream, point_of(*projection.shape, scope_of(projection.name, backward)));
    return;
  }
  if (!backward) {
    site_forward(stream, projection);
    return;
  }
  const Site whole = site_of(*projection.shape, projection.name, tokens_);
  const bool column = gathers(projection.name);
  site_backward(stream,
                {tokens_, column ? whole.columns / plan_.tensor : whole.columns,
                 column ? whole.contraction : whole.contraction / plan_.tensor},
                column);
}

/// Uses an implementation only where it saves time, because users would switch it on only there.
void LayerCost::site_forward(Stream& stream, const Projection& projection) {
  const Stream exposed = exposed_forward(projection);
  const std::optional<Stream> implemented = implemented_forward(projection);
  stream = stream.then(implemented && implemented->device < exposed.device ? *implemented : exposed);
}

/// Returns nothing if the framework has no implementation, or none for this site.
std::optional<Stream> LayerCost::implemented_forward(const Projection& projection) {
  const Implementation* const implementation = point_.framework.implementation.get();
  const SiteKind kind = gathers(projection.name) ? SiteKind::ag_gemm : SiteKind::gemm_rs;
  const auto ranks = static_cast<std::int32_t>(plan_.tensor);
  if (implementation == nullptr || !shares_tokens() ||
      std::ranges::find(implementation->sites, kind) == implementation->sites.end() ||
      !refusal_of(*implementation, machine_, ranks, plan_.dtype).empty()) {
    return std::nullopt;
  }
  SitePoint site = point_of(*projection.shape, scope_of(projection.name, false));
  site.implementation = implementation;
  site.strategy = implementation->strategy;
  Stream stream;
  add_site(stream, site, sites_.of(site));
  return stream;
}

Stream LayerCost::exposed_forward(const Projection& projection) const {
  Stream stream;
  const Site whole = site_of(*projection.shape, projection.name, tokens_);
  const bool column = gathers(projection.name);
  const Bytes state{width * tokens_ * model_.hidden};
  if (column) {
    if (shares_tokens()) {
      collective(stream, tensor_group().all_gather(state));
    }
    gemm(stream, tokens_, whole.columns / plan_.tensor, whole.contraction);
    return stream;
  }
  gemm(stream, tokens_, whole.columns, whole.contraction / plan_.tensor);
  if (shares_tokens()) {
    collective(stream, tensor_group().reduce_scatter(state));
  } else {
    reduce(stream);
  }
  return stream;
}

/// For a column-parallel GEMM, the input is gathered again and its gradient is scattered (summed, without sequence
/// parallelism). For a row-parallel GEMM, the incoming gradient is gathered. If the framework overlaps them, the
/// collectives of a column-parallel GEMM run during its two GEMMs (Korthikanti et al. 2022, section 4.2.2; Megatron-LM,
/// tensor_parallel/layers.py).
void LayerCost::site_backward(Stream& stream, const GemmExtents& forward, bool column) const {
  const bool shares = shares_tokens();
  const Bytes state{width * tokens_ * model_.hidden};
  const Duration input_time = gemm_time(forward.m, forward.k, forward.n, false);
  const Duration weight_time = gemm_time(forward.k, forward.n, forward.m, true);
  if (plan_.tensor == 1 || (!column && !shares)) {
    kernel(stream, input_time);
    weight_kernel(stream, weight_time);
    return;
  }
  const Group group = tensor_group();
  if (!column) {
    collective(stream, group.all_gather(state));
    kernel(stream, input_time);
    weight_kernel(stream, weight_time);
    return;
  }
  const Duration gathered = shares ? group.all_gather(state) : Duration::zero();
  const Duration reduced = shares ? group.reduce_scatter(state) : group.all_reduce(state);
  const std::int64_t collectives = shares ? 2 : 1;
  if (point_.framework.overlaps_backward && weights_ == nullptr) {
    const int ctas = group.wires->ctas.value;  // the SMs that a collective holds
    add_overlap(stream, {.kernel = shares ? gemm_time(forward.m, forward.k, forward.n, false, ctas) : input_time,
                         .communication = gathered});
    add_overlap(stream, {.kernel = gemm_time(forward.k, forward.n, forward.m, true, ctas), .communication = reduced});
    stream.add_host(collectives * point_.framework.issue.value);
    return;
  }
  if (shares) {
    collective(weights_ == nullptr ? stream : *weights_, gathered);
  }
  kernel(stream, input_time);
  weight_kernel(stream, weight_time);
  collective(stream, reduced);
}

/// For the weight of a row-parallel GEMM, the gradient is already gathered; for the weight of a column-parallel GEMM,
/// the input is gathered again, and no kernel overlaps this gather.
void LayerCost::site_backward_split(Stream& stream, const Projection& projection) {
  const Site whole = site_of(*projection.shape, projection.name, tokens_);
  const LayerSite gradient = input_gradient(projection);
  add_site(stream, point_of(gradient.shape, gradient.scope));
  if (gathers(projection.name)) {
    collective(*weights_, tensor_group().all_gather(Bytes{width * tokens_ * model_.hidden}));
    weight_kernel(stream, gemm_time(whole.contraction, whole.columns / plan_.tensor, tokens_, true));
  } else {
    weight_kernel(stream, gemm_time(whole.contraction / plan_.tensor, whole.columns, tokens_, true));
  }
}

}  // namespace commfuse
