// SPDX-License-Identifier: Apache-2.0
// Prices the GEMMs of a layer that meet a collective of the tensor ranks: simulated with a strategy's schedule, or
// priced as Megatron-LM runs them.
#include <algorithm>
#include <optional>

#include "model/config/implementation.h"
#include "model/config_error.h"
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

SitePoint LayerCost::point_of(const Projection& projection, const Implementation& kernels) const {
  SitePoint point = point_of(*projection.shape, scope_of(projection.name, false));
  point.implementation = &kernels;
  point.strategy = kernels.strategy;
  return point;
}

void LayerCost::add_site(Stream& stream, const SitePoint& site, const SiteTime& time, double slower) {
  const double fewer_sms = static_cast<double>(machine_.accelerator.sms) / sms_;
  const Slowdown slowdown{.kernels = point_.slowdown * fewer_sms,
                          .collectives = slowest_of(site.ranks, point_.communication_sigma),
                          .exchanges = slowest_of(2, point_.communication_sigma)};
  const Duration duration = sites_.slowed(site, time, slowdown);
  collective(stream, slower == 1.0 ? duration : stream_time(slower * to_seconds(duration)));
  stream.add_host((time.kernels - 1) * point_.framework.issue.value);
}

void LayerCost::site(Stream& stream, const Projection& projection, Direction direction) {
  if (direction == Direction::forward) {
    site_forward(stream, projection);
    return;
  }
  if (simulates_schedules() && weights_ != nullptr) {
    site_backward_split(stream, projection);
    return;
  }
  if (simulates_schedules()) {
    add_site(stream, point_of(*projection.shape, scope_of(projection.name, true)));
    return;
  }
  const Site whole = site_of(*projection.shape, projection.name, tokens_);
  const bool column = gathers(projection.name);
  site_backward(stream,
                {tokens_, column ? whole.columns / plan_.tensor : whole.columns,
                 column ? whole.contraction : whole.contraction / plan_.tensor},
                column);
}

/// The implementation of a framework is used only where it saves time, because users would switch it on only there.
void LayerCost::site_forward(Stream& stream, const Projection& projection) {
  if (const Implementation* const kernels = point_.implemented.kernels) {
    if (const ImplementedGemm* const gemm = point_.implemented.find(*projection.shape, projection.name)) {
      const SitePoint site = point_of(projection, *kernels);
      add_site(stream, site, sites_.again(site, gemm->schedule), point_.implemented.slowdown);
    } else {
      usual_forward(stream, projection);
    }
    return;
  }
  const std::optional<Stream> implemented = framework_forward(projection);
  if (!implemented) {
    usual_forward(stream, projection);
    return;
  }
  const Stream exposed = exposed_forward(projection);
  stream = stream.then(implemented->device < exposed.device ? *implemented : exposed);
}

void LayerCost::usual_forward(Stream& stream, const Projection& projection) {
  if (simulates_schedules()) {
    add_site(stream, point_of(*projection.shape, scope_of(projection.name, false)));
  } else {
    stream = stream.then(exposed_forward(projection));
  }
}

namespace {

SiteKind forward_kind(SiteName name) { return gathers(name) ? SiteKind::ag_gemm : SiteKind::gemm_rs; }

}  // namespace

/// Returns nothing if strategies are simulated, and if the framework has no implementation, or none for this site.
std::optional<Stream> LayerCost::framework_forward(const Projection& projection) {
  const Implementation* const kernels = point_.framework.implementation.get();
  const auto ranks = static_cast<std::int32_t>(plan_.tensor);
  if (kernels == nullptr || !shares_tokens() || simulates_schedules() ||
      !covers(*kernels, forward_kind(projection.name)) || !refusal_of(*kernels, machine_, ranks, plan_.dtype).empty()) {
    return std::nullopt;
  }
  const SitePoint site = point_of(projection, *kernels);
  Stream stream;
  add_site(stream, site, sites_.of(site));
  return stream;
}

std::vector<ImplementedGemm> LayerCost::saved_by(const Implementation& kernels) {
  std::vector<ImplementedGemm> saved;
  for (const LayerSite& site : layer_sites(model_, plan_)) {
    if (site.backward || !covers(kernels, forward_kind(site.projection))) {
      continue;
    }
    read_weights(site.weights);
    const Projection projection{&site.shape, site.projection};
    const SitePoint point = point_of(projection, kernels);
    std::optional<SiteTime> schedule;
    try {
      schedule = sites_.of(point);
    } catch (const ConfigError&) {  // its schedule cannot split so few tokens
      continue;
    }
    Stream implemented;
    add_site(implemented, point, *schedule);
    Stream usual;
    usual_forward(usual, projection);
    if (implemented.device < usual.device) {
      const Site whole = site_of(site.shape, site.projection, 1);
      saved.push_back({.site = site.name,
                       .name = site.projection,
                       .columns = whole.columns,
                       .contraction = whole.contraction,
                       .schedule = *schedule});
    }
  }
  weight_bits_ = 0.0;
  gemm_dtype_ = plan_.dtype;
  return saved;
}

const ImplementedGemm* ImplementedForward::find(const Transformer& shape, SiteName name) const {
  const Site whole = site_of(shape, name, 1);
  const auto gemm = std::ranges::find_if(gemms, [&](const ImplementedGemm& candidate) {
    return candidate.name == name && candidate.columns == whole.columns && candidate.contraction == whole.contraction;
  });
  return gemm == gemms.end() ? nullptr : &*gemm;
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
