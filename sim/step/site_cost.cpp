// SPDX-License-Identifier: Apache-2.0
// Prices the GEMMs of a layer that meet a collective of the tensor ranks: simulated with a strategy's schedule, or
// priced as Megatron-LM runs them.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/config/implementation.h"
#include "model/config_error.h"
#include "model/strategies/strategies.h"
#include "sim/step/layer_cost.h"

namespace commfuse {

SitePoint LayerCost::point_of(const Transformer& shape, Scope scope) const {
  SitePoint point = site_point(plan_, shape, scope);
  point.dtype = gemm_dtype_;
  point.weight_bits = weight_bits_;
  return point;
}

std::string LayerCost::name_of_site(const SiteLabel& label) const {
  std::string name;
  if (label.projection != nullptr) {
    const auto& [shape, site] = *label.projection;
    const auto is_of = [shape = shape](const std::optional<Transformer>& plain) { return plain && shape == &*plain; };
    name = is_of(mamba_in_)         ? "mamba_in"
           : is_of(mamba_out_)      ? "mamba_out"
           : is_of(shared_experts_) ? fmt::format("shared_{}", name_of(site))
                                    : site_name(model_, *shape, site);
  }
  return name.append(label.ending);
}

void LayerCost::record(const SitePoint& site, const SiteTime& time, const SiteLabel& label) const {
  if (point_.used == nullptr) {
    return;
  }
  std::string name = name_of_site(label);
  if (std::ranges::find(*point_.used, name, &UsedSchedule::site) == point_.used->end()) {
    point_.used->push_back({.site = std::move(name),
                            .scope = site.scope,
                            .ranks = site.ranks,
                            .strategy = time.strategy,
                            .options = time.options,
                            .implementation = site.implementation});
  }
}

void LayerCost::add_fastest(Stream& stream, const SitePoint& site, const SiteLabel& label) {
  const SiteTime time = sites_.fastest(site, point_.strategies);
  record(site, time, label);
  add_site(stream, site, time);
}

SitePoint LayerCost::point_of(const Projection& projection, const Implementation& kernels) const {
  SitePoint point = point_of(*projection.shape, *forward_scope(projection.name, plan_));
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
    add_fastest(stream, point_of(*projection.shape, scope_of(projection.name, true)), {&projection, "_backward"});
    return;
  }
  if (implemented_backward(stream, projection)) {
    return;
  }
  const Site whole = site_of(*projection.shape, projection.name, tokens_);
  const bool column = gathers(projection.name);
  site_backward(stream,
                {tokens_, column ? whole.columns / plan_.tensor : whole.columns,
                 column ? whole.contraction : whole.contraction / plan_.tensor},
                column);
}

void LayerCost::site_forward(Stream& stream, const Projection& projection) {
  if (const Implementation* const kernels = point_.implemented.kernels) {
    if (const ImplementedGemm* const gemm = point_.implemented.find(*projection.shape, projection.name)) {
      const SitePoint site = point_of(projection, *kernels);
      const SiteTime time = sites_.again(site, gemm->schedule);
      record(site, time, {&projection, ""});
      add_site(stream, site, time, point_.implemented.slowdown);
      return;
    }
  }
  baseline_forward(stream, projection);
}

void LayerCost::baseline_forward(Stream& stream, const Projection& projection) {
  const Implementation* const kernels = point_.framework.implementation.get();
  if (kernels != nullptr && shares_tokens() && !simulates_schedules()) {
    framework_forward(stream, projection);
  } else {
    usual_forward(stream, projection);
  }
}

void LayerCost::usual_forward(Stream& stream, const Projection& projection) {
  const SitePoint site = point_of(*projection.shape, scope_of(projection.name, false));
  if (simulates_schedules()) {
    add_fastest(stream, site, {&projection, ""});
    return;
  }
  if (point_.implemented.kernels != nullptr && shares_tokens()) {
    record(site, {.strategy = &serial_strategy, .options = {}}, {&projection, ""});
  }
  stream = stream.then(exposed_forward(projection));
  if (!gathers(projection.name) && !shares_tokens()) {
    reduce(stream);
  }
}

bool LayerCost::is_implementation_site(Scope scope) const {
  const std::optional<std::vector<Scope>>& sites = point_.framework.implementation_sites;
  return sites && std::ranges::find(*sites, scope) != sites->end();
}

std::optional<LayerCost::Implemented> LayerCost::as_implemented(const Transformer& shape, Scope scope) {
  const Implementation* const implementation = point_.framework.implementation.get();
  const auto ranks = static_cast<std::int32_t>(plan_.tensor);
  if (implementation == nullptr || !shares_tokens() || !covers(*implementation, kinds_of(scope).front()) ||
      !refusal_of(*implementation, machine_, ranks, plan_.dtype).empty()) {
    return std::nullopt;
  }
  Implemented implemented{.site = point_of(shape, scope), .time = {}, .stream = {}};
  implemented.site.implementation = implementation;
  implemented.site.strategy = implementation->strategy;
  implemented.time = sites_.of(implemented.site);
  const Implementation* const kernels = point_.implemented.kernels;
  const bool is_other = kernels != nullptr && kernels->name != implementation->name;
  add_site(implemented.stream, implemented.site, implemented.time, is_other ? 1.0 : point_.implemented.slowdown);
  return implemented;
}

namespace {

/// Returns whether the first sequence saves device time over the second and does not take longer because of its host:
/// a ring issues many kernels, and a step whose host is late waits for them.
bool saves_over(const Stream& first, const Stream& second) {
  return first.device < second.device && first.in_step().end <= second.in_step().end;
}

}  // namespace

/// Adds a forward GEMM of a framework with an implementation. Unless the framework names the GEMMs of its
/// implementation, uses the implementation only where it has a schedule and saves time, because users would switch it
/// on only there.
void LayerCost::framework_forward(Stream& stream, const Projection& projection) {
  const bool names_sites = point_.framework.implementation_sites.has_value();
  const Scope scope = scope_of(projection.name, false);
  const Stream exposed = exposed_forward(projection);
  std::optional<Implemented> implemented;
  if (is_implementation_site(scope)) {
    implemented = as_implemented(*projection.shape, scope);
  } else if (!names_sites) {
    try {
      implemented = as_implemented(*projection.shape, scope);
    } catch (const ConfigError&) {  // its schedule cannot split so few tokens
      implemented.reset();
    }
    if (implemented && !saves_over(implemented->stream, exposed)) {
      implemented.reset();
    }
  }
  record(implemented ? implemented->site : point_of(*projection.shape, scope),
         implemented ? implemented->time : SiteTime{.strategy = &serial_strategy, .options = {}}, {&projection, ""});
  stream = stream.then(implemented ? implemented->stream : exposed);
}

/// Adds the backward pass of a row-parallel GEMM whose gather the framework's implementation overlaps with the GEMM of
/// the input's gradient, after which the gathered gradient is at hand for the weight. Returns false if the
/// implementation overlaps no such gather.
bool LayerCost::implemented_backward(Stream& stream, const Projection& projection) {
  if (!is_implementation_site(scope_of(projection.name, true))) {
    return false;
  }
  const LayerSite gradient = input_gradient(projection);
  const std::optional<Implemented> implemented = as_implemented(gradient.shape, gradient.scope);
  if (!implemented) {
    return false;
  }
  record(implemented->site, implemented->time, {&projection, "_dgrad"});
  stream = stream.then(implemented->stream);
  const Site whole = site_of(*projection.shape, projection.name, tokens_);
  weight_kernel(stream, gemm_time(whole.contraction / plan_.tensor, whole.columns, tokens_, true));
  return true;
}

std::vector<ImplementedGemm> LayerCost::saved_by(const Implementation& kernels) {
  const Framework& framework = point_.framework;
  const bool replaces_itself = framework.implementation != nullptr && framework.implementation->name == kernels.name &&
                               !framework.implementation_sites;
  std::vector<ImplementedGemm> saved;
  for (const LayerSite& site : layer_sites(model_, plan_)) {
    const std::optional<Scope> scope = forward_scope(site.projection, plan_);
    if (site.backward || !scope || !covers(kernels, kinds_of(*scope).front())) {
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
    Stream baseline;
    if (replaces_itself) {
      usual_forward(baseline, projection);
    } else {
      baseline_forward(baseline, projection);
    }
    if (saves_over(implemented, baseline)) {
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
      collective(stream, tensor_group().all_gather(gathered_state()));
    }
    gemm(stream, tokens_, whole.columns / plan_.tensor, whole.contraction);
    return stream;
  }
  gemm(stream, tokens_, whole.columns, whole.contraction / plan_.tensor);
  if (shares_tokens()) {
    collective(stream, tensor_group().reduce_scatter(state));
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
    collective(stream, group.all_gather(gathered_state()));
    kernel(stream, input_time);
    weight_kernel(stream, weight_time);
    return;
  }
  const Duration gathered = shares ? group.all_gather(gathered_state()) : Duration::zero();
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
  add_fastest(stream, point_of(gradient.shape, gradient.scope), {&projection, "_dgrad"});
  if (gathers(projection.name)) {
    collective(*weights_, tensor_group().all_gather(gathered_state()));
    weight_kernel(stream, gemm_time(whole.contraction, whole.columns / plan_.tensor, tokens_, true));
  } else {
    weight_kernel(stream, gemm_time(whole.contraction / plan_.tensor, whole.columns, tokens_, true));
  }
}

}  // namespace commfuse
