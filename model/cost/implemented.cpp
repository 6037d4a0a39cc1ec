// SPDX-License-Identifier: Apache-2.0
#include "model/cost/implemented.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "model/check.h"
#include "model/cost/cut_bound.h"
#include "model/cost/expert_gemm.h"
#include "model/cost/gemm.h"
#include "model/cost/memory_bound.h"
#include "model/cost/op_time.h"
#include "model/cost/price.h"
#include "model/cost/priced_ops.h"
#include "model/cost/shape_sizes.h"
#include "model/math/functions.h"
#include "model/program/work.h"

namespace commfuse {

namespace {

Duration raised(Duration value, double factor) { return from_seconds(to_seconds(value) * factor); }
double raised(double value, double factor) { return value * factor; }
BytesPerSecond raised(BytesPerSecond value, double factor) { return {value.value * factor}; }
int raised(int value, double factor) { return static_cast<int>(std::lround(value * factor)); }

std::optional<NcclGeneration> generation_of(const Machine& machine) {
  const auto& nccl = machine.link.collective.nccl;
  return nccl == nullptr ? std::nullopt : std::optional(nccl->tuning.generation);
}

/// Returns the buffer that holds an operand. Requires `operand` to have a region.
BufferId buffer_of(const Program& program, Slice operand) { return program.regions_of(operand).front().buffer; }

/// Separates the ops of a GEMM whose input is gathered from the ops of a GEMM whose partial sums are scattered, and
/// both from GEMMs and MLPs with an all-reduce.
class Sides {
 public:
  explicit Sides(const Program& program)
      : program_(program), normalizes_(has_switch_sums(program)), reduces_all_(reduces_all(program)) {
    for (const Op& op : program.ops) {
      if (op.kind == OpKind::gemm && !is_partial(op)) {
        gathered_.insert(buffer_of(program, program.inputs_of(op).front()));
      }
    }
  }

  [[nodiscard]] const ImplementedSite& of(const Op& op, const ImplementedSites& sites) const {
    if (normalizes_) {
      return sites.mlp_ar;
    }
    return reduces_all_ ? sites.gemm_ar : scatters(op) ? sites.gemm_rs : sites.ag_gemm;
  }

 private:
  [[nodiscard]] bool is_partial(const Op& op) const {
    const auto& gemm = std::get<GemmShape>(program_.shapes[op.shape]);
    return gemm.k.blocks < program_.dimensions[position(gemm.k.dimension)].blocks;
  }

  [[nodiscard]] bool scatters(const Op& op) const {
    if (op.kind == OpKind::gemm) {
      return is_partial(op);
    }
    const auto is_gathered = [&](Slice operand) { return gathered_.contains(buffer_of(program_, operand)); };
    return !std::ranges::any_of(program_.inputs_of(op), is_gathered) &&
           !std::ranges::any_of(program_.outputs_of(op), is_gathered);
  }

  const Program& program_;
  bool normalizes_;
  bool reduces_all_;
  std::set<BufferId> gathered_;
};

/// Calls `change` with every price of an op.
template <class Change>
void for_each_price(Costs& costs, std::size_t op, const Change& change) {
  for (std::vector<Duration>* prices :
       {&costs.duration, &costs.undisturbed, &costs.by_rank, &costs.undisturbed_by_rank}) {
    for (std::size_t i = op; i < prices->size(); i += costs.duration.size()) {
      change((*prices)[i]);
    }
  }
}

/// Times of a slice of a GEMM.
struct SliceTimes {
  Duration part{};        ///< Time as a part of one kernel.
  Duration own_kernel{};  ///< Time as a separate kernel.
};

Duration implemented_gemm(const SliceTimes& times, const ImplementedSite& site, const Accelerator& accelerator) {
  const double whole = to_seconds(times.part);
  const double cut = std::max(0.0, to_seconds(times.own_kernel) - whole);
  const double remaining_sms = std::max(1, accelerator.sms - site.sms.value);
  return op_time(site.product_time.value * (whole + site.cut_cost.value * cut) * accelerator.sms / remaining_sms,
                 "a GEMM of an implementation");
}

/// Returns the time that a part of a kernel would take if the kernel's rows were cut into a separate GEMM for each
/// rank; zero for other ops.
Duration time_of_separate_shards(const Program& program, const Sizes& sizes, const Accelerator& accelerator,
                                 const PriceOptions& options, const GemmShape& gemm) {
  const KernelCut cut = kernel_cut_of(gemm);
  if (cut.whole == 0) {
    return {};
  }
  GemmSize shard = priced_gemm(gemm, sizes, options, heating_work(program, sizes, options));
  const double rows = static_cast<double>(shard.m) * cut.part / cut.whole;  // rows with the work of this part
  shard.m = largest_part({.rows = shard.m, .parts = program.mesh.ranks()});
  const double parts = rows / static_cast<double>(shard.m);
  const GemmSize kernel = grouped(options.experts, shard);
  return op_time(to_seconds(estimate_gemm(accelerator, kernel, accelerator.sms).time) * parts, "a GEMM of a shard");
}

/// Returns how often a transfer of partial or complete sums crosses its link, compared with a transfer between two
/// ranks.
double crossings_of(const ImplementedSite& site, int ranks, bool is_of_all_reduce) {
  if (!site.sums_in_switch) {
    return 1.0;
  }
  return is_of_all_reduce ? crossings_with_switch_sums(ranks) : static_cast<double>(ranks) / (ranks - 1);
}

/// Returns the shortest time that the transport allows for a transfer to one of the other ranks.
Duration transfer_time(Bytes bytes, double crossings, const ImplementedSite& site, const Link& link) {
  const double share = site.rate_share.value * link.nominal_rate.value.value;
  const double rate = site.rate ? std::min(site.rate->value.value, share) : share;
  return op_time(crossings * static_cast<double>(bytes.count) / rate, "a transfer of an implementation");
}

/// The GEMMs with which a call of an operator begins: the first op of each weight.
class Calls {
 public:
  explicit Calls(const Program& program) : program_(program) {}
  /// Returns whether a GEMM begins a call. Requires the GEMMs in the order of the program.
  bool begin_with(const Op& gemm) {
    return called_weights_.insert(buffer_of(program_, program_.inputs_of(gemm).back())).second;
  }

 private:
  const Program& program_;
  std::set<BufferId> called_weights_;
};

}  // namespace

const ImplementedSites& ImplementationCosts::on(const Machine& machine) const {
  return generations[static_cast<std::size_t>(generation_of(machine).value_or(NcclGeneration::hopper))];
}

bool ImplementationCosts::was_measured_on(const Machine& machine) const {
  const std::optional<NcclGeneration> generation = generation_of(machine);
  return generation && measured[static_cast<std::size_t>(*generation)];
}

std::string_view name_of(Transport transport) {
  switch (transport) {
    case Transport::nccl: return "nccl";
    case Transport::copy_engine: return "copy_engine";
    case Transport::stores: return "stores";
    case Transport::tma: return "tma";
    case Transport::multimem: return "multimem";
    case Transport::rdma: return "rdma";
  }
  return "";
}

/// Source: ParallelKittens (arXiv 2511.13940), relative to 450 GB/s on H100 and 900 GB/s on B200.
Parameter<double> rate_share_of(Transport transport, NcclGeneration generation) {
  const bool is_blackwell = generation == NcclGeneration::blackwell;
  const auto measured = [&](double hopper, double blackwell) {
    return Parameter<double>{is_blackwell ? blackwell / 900.0 : hopper / 450.0, 0.05, Provenance::published,
                             "arXiv 2511.13940, rates by transport"};
  };
  switch (transport) {
    case Transport::copy_engine: return measured(369.0, 726.0);
    case Transport::tma: return measured(350.0, 669.0);
    case Transport::stores:
    case Transport::multimem: return measured(343.0, 628.0);
    case Transport::nccl:
    case Transport::rdma: return {1.0};
  }
  return {1.0};
}

std::vector<RaisedImplementation> raised_by_error(const ImplementedSites& sites) {
  std::vector<RaisedImplementation> raised_sites;
  ImplementedSites changed = sites;
  each_parameter(changed, std::string{}, [&](const std::string& name, auto& parameter) {
    if (parameter.standard_error == 0.0 || name == "residual") {
      return;
    }
    const auto original = parameter;
    parameter.value = raised(parameter.value, math::exp(parameter.standard_error));
    raised_sites.push_back({name, original.standard_error, original.provenance, original.source, changed});
    parameter = original;
  });
  return raised_sites;
}

std::string_view in_words(Handicap handicap) {
  switch (handicap) {
    case Handicap::gemm: return "its GEMM";
    case Handicap::transfers: return "its transfers";
    case Handicap::calls: return "the cost of its calls";
    case Handicap::sums: return "the time of its separate sums";
  }
  return "";
}

ImplementedSites without(ImplementedSites sites, Handicap handicap) {
  const ImplementedSite ideal;
  for (const ImplementedKind& kind : implemented_kinds) {
    ImplementedSite& site = sites.*kind.costs;
    switch (handicap) {
      case Handicap::gemm:
        site.product_time = ideal.product_time;
        site.cut_cost = ideal.cut_cost;
        site.sms = ideal.sms;
        break;
      case Handicap::transfers:
        site.rate_share = ideal.rate_share;
        site.rate = ideal.rate;
        site.per_step = ideal.per_step;
        // The ideal kernel of an all-reduce sums in the switch, too.
        site.sums_in_switch = site.sums_in_switch && kind.kind == SiteKind::gemm_ar;
        break;
      case Handicap::calls:
        site.per_call = ideal.per_call;
        site.host_per_call = ideal.host_per_call;
        site.host_per_step = ideal.host_per_step;
        break;
      case Handicap::sums:
        site.separate_sum = ideal.separate_sum;
        site.sum_time = ideal.sum_time;
        break;
    }
  }
  return sites;
}

bool is_issued_from_python(const ImplementedSites& sites) {
  return std::ranges::any_of(implemented_kinds, [&](const ImplementedKind& kind) {
    const ImplementedSite& site = sites.*kind.costs;
    return site.host_per_call.value > 0 || site.host_per_step.value > 0;
  });
}

void add_host_calls(const Program& program, const Machine& machine, const ImplementedSites& sites, Costs& costs) {
  if (program.mesh.ranks() == 1 || !is_issued_from_python(sites)) {
    return;
  }
  const Sides sides(program);
  Calls calls(program);
  const Duration call = machine.accelerator.eager_cost.value;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (op.kind == OpKind::gemm && calls.begin_with(op)) {
      costs.issue[i] += sides.of(op, sites).host_per_call.value * call;
    } else if (op.kind == OpKind::exchange) {
      costs.issue[i] += sides.of(op, sites).host_per_step.value * call;
    }
  }
}

/// Only MLPs with an all-reduce have norms among the programs of implementations.
bool has_switch_sums(const Program& program) {
  return std::ranges::any_of(program.ops, [&](const Op& op) {
    const auto* map = std::get_if<ElementwiseShape>(&program.shapes[op.shape]);
    return map != nullptr && map->function == Function::norm;
  });
}

bool is_inside_switch_sum(const Program& program, std::size_t op) {
  const auto* collective = std::get_if<CollectiveShape>(&program.shapes[program.ops[op].shape]);
  return collective != nullptr ? collective->kind == CollectiveKind::all_gather
                               : program.lanes[program.ops[op].lane].kind == LaneKind::aux;
}

bool sums_in_switch(const Machine& machine) {
  const bool has_switch = machine.plan == nullptr || machine.plan->kind == NodeKind::nvswitch;
  const auto& nccl = machine.link.collective.nccl;
  return has_switch && nccl != nullptr && nccl->nvls;
}

Duration switch_sum_time(const ImplementedSite& site, const Link& link, int ranks, Bytes tensor) {
  const double share = site.rate_share.value * link.nominal_rate.value.value;
  const double rate = site.rate ? std::min(site.rate->value.value, share) : share;
  const double carried = static_cast<double>(tensor.count) * (ranks + 1) / ranks;
  return site.per_call.value + op_time(carried / rate, "a sum of an implementation");
}

namespace {

/// Prices MLPs whose all-reduce is one kernel. If a program splits the all-reduce, its reduce-scatter gets the kernel's
/// whole time; residual, norm and all-gather get no time, and are not launched. GEMMs lose the SMs of that kernel
/// instead of those of NCCL's kernels.
void implement_switch_sums(const Program& program, const Sizes& sizes, const Machine& machine,
                           const ImplementedSite& site, Costs& costs) {
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const Shape& shape = program.shapes[op.shape];
    if (is_inside_switch_sum(program, i)) {
      for_each_price(costs, i, [&](Duration& price) { price = Duration::zero(); });
    } else if (const auto* collective = std::get_if<CollectiveShape>(&shape)) {
      const Duration time = switch_sum_time(site, machine.link, program.mesh.ranks(), load_of(*collective, sizes));
      for_each_price(costs, i, [&](Duration& price) { price = time; });
    } else if (op.kind == OpKind::gemm) {
      const Duration undisturbed = costs.undisturbed.empty() ? costs.duration[i] : costs.undisturbed[i];
      const Duration time = implemented_gemm({.part = undisturbed, .own_kernel = {}}, site, machine.accelerator);
      for_each_price(costs, i, [&](Duration& price) { price = time; });
    }
  }
}

}  // namespace

void implement(const Program& program, const Sizes& sizes, const Machine& machine, const PriceOptions& options,
               Costs& costs) {
  check(options.implementation != nullptr, "an implementation has costs");
  if (program.mesh.ranks() == 1) {
    return;  // a single rank has no transfers
  }
  const ImplementedSites& sites = *options.implementation;
  if (has_switch_sums(program)) {
    implement_switch_sums(program, sizes, machine, sites.mlp_ar, costs);
    return;
  }
  const Sides sides(program);
  const Accelerator& accelerator = machine.accelerator;
  Calls calls(program);
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const ImplementedSite& site = sides.of(op, sites);
    const Shape& shape = program.shapes[op.shape];
    if (const auto* gemm = std::get_if<GemmShape>(&shape)) {
      const bool is_call = calls.begin_with(op);
      const Duration own_kernel = time_of_separate_shards(program, sizes, accelerator, options, *gemm);
      for_each_price(costs, i, [&](Duration& price) {
        price = implemented_gemm({.part = price, .own_kernel = own_kernel}, site, accelerator) +
                (is_call ? site.per_call.value : Duration{});
      });
    } else if (const auto* exchange = std::get_if<ExchangeShape>(&shape)) {
      const Duration least =
          transfer_time(load_of(*exchange, sizes), crossings_of(site, program.mesh.ranks(), &site == &sites.gemm_ar),
                        site, machine.link);
      for_each_price(costs, i, [&](Duration& price) { price = std::max(price, least) + site.per_step.value; });
    } else if (const auto* sum = std::get_if<ElementwiseShape>(&shape);
               sum != nullptr && op.purpose == Purpose::local && sum->function == Function::add) {
      const Duration pass = site.separate_sum.value == 0
                                ? Duration::zero()
                                : memory_bound_time(accelerator, priced_traffic(*sum, sizes, options), accelerator.sms);
      for_each_price(costs, i, [&](Duration& price) {
        price = op_time(site.sum_time.value * to_seconds(std::max(price, pass)), "a sum of an implementation");
      });
    }
  }
}

}  // namespace commfuse
