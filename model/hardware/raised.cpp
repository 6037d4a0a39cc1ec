// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/raised.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <mutex>
#include <utility>

#include "model/check.h"
#include "model/hardware/change_shared.h"
#include "model/hardware/described.h"

namespace commfuse {

namespace {

template <class Visit>
void visit(Accelerator& accelerator, const std::string& at, const Visit& visitor) {
  each_parameter(accelerator, at, visitor);
  for (const DType dtype : all_dtypes) {
    if (std::optional<MatrixUnit>& unit = accelerator.matrix_units[index_of(dtype)]) {
      auto& [peak, gemm, kernel_choice, fit] = *unit;
      const std::string unit_prefix = fmt::format("{}matrix_units.{}.", at, name_of(dtype));
      visitor(unit_prefix + "dense_peak", peak);
      each_parameter(gemm, unit_prefix + "gemm.", visitor);
    }
  }
}

// The functions below use structured bindings, so a new member of NcclKernels, AllToAllParameters or Link does not
// compile until they name it.

template <class Visit>
void visit(NcclKernels& nccl, const std::string& at, const Visit& visitor) {
  auto& [tuning, ll, ll128, nvls] = nccl;
  each_parameter(ll, at + "ll.", visitor);
  each_parameter(ll128, at + "ll128.", visitor);
  each_parameter(nvls, at + "nvls.", visitor);
}

template <class Visit>
void visit(AllToAllParameters& direct, const std::string& at, const Visit& visitor) {
  auto& [up_to, small, large, fit] = direct;
  visitor(at + "small_up_to", up_to);
  each_parameter(small, at + "small.", visitor);
  each_parameter(large, at + "large.", visitor);
}

/// Parts of a machine to visit: all, or only those that may hold the parameter called `name`.
struct Parts {
  std::string_view name;  // empty: all parts

  [[nodiscard]] bool may_hold(std::string_view prefix) const { return name.empty() || name.starts_with(prefix); }
};

/// Does not copy parts that cannot hold the parameter: they stay shared with other machines.
template <class Visit>
void visit(CollectiveParameters& collective, const std::string& at, const Parts& parts, const Visit& visitor) {
  each_parameter(static_cast<RingParameters&>(collective), at, visitor);
  visitor(at + "ctas", collective.ctas);
  visitor(at + "issue_cost", collective.issue_cost);
  const auto change = [&](auto& shared, const std::string& prefix, const auto& visit_part) {
    if (parts.may_hold(prefix)) {
      change_shared(shared, [&](auto& part) { visit_part(part, prefix); });
    }
  };
  const auto visit_described = [&](auto& part, const std::string& prefix) { visit(part, prefix, visitor); };
  change(collective.nccl, at + "nccl.", visit_described);
  change(collective.all_to_all, at + "all_to_all.", visit_described);
  each_algorithm([&](const auto& entry) {
    change(collective.*entry.member, fmt::format("{}{}.", at, entry.key),
           [&](auto& algorithm, const std::string& prefix) { each_parameter(algorithm, prefix, visitor); });
  });
}

template <class Visit>
void visit(Link& link, const std::string& at, const Parts& parts, const Visit& visitor) {
  auto& [name, nominal, peer, collective, capacity] = link;
  visitor(at + "nominal_rate", nominal);
  each_parameter(peer, at + "peer.", visitor);
  visit(collective, at + "collective.", parts, visitor);
}

/// Visits the parameters that the files state.
template <class Visit>
void visit_given(Machine& machine, const Parts& parts, const Visit& visitor) {
  if (parts.may_hold("accelerator.")) {
    visit(machine.accelerator, "accelerator.", visitor);
  }
  if (parts.may_hold("link.")) {
    visit(machine.link, "link.", parts, visitor);
  }
  if (machine.network && parts.may_hold("network.")) {
    visit(*machine.network, "network.", parts, visitor);
  }
  if (machine.plan != nullptr && machine.plan->kind == NodeKind::pcie_tree && !machine.plan->wires &&
      parts.may_hold("topology.")) {
    change_shared(machine.plan, [&](TopologyPlan& plan) {
      visitor("topology.bridge_rate", plan.bridge_rate);
      if (plan.root_rate) {
        visitor("topology.root_rate", *plan.root_rate);
      }
    });
  }
}

/// Visits the parameters that are derived from the stated ones, under the same names.
template <class Visit>
void visit_derived(Machine& machine, const Parts& parts, const Visit& visitor) {
  if (parts.may_hold("link.peer.")) {
    change_shared(machine.pair_peers, [&](PairPeers& pairs) {
      for (PeerParameters& kind : pairs.kinds) {
        each_parameter(kind, std::string("link.peer."), visitor);
      }
    });
  }
  const auto visit_groups = [&](std::shared_ptr<const std::vector<CollectiveParameters>>& shared,
                                const std::string& at) {
    if (parts.may_hold(at)) {
      change_shared(shared, [&](std::vector<CollectiveParameters>& groups) {
        for (CollectiveParameters& group : groups) {
          visit(group, at, parts, visitor);
        }
      });
    }
  };
  visit_groups(machine.group_collectives, "link.collective.");
  visit_groups(machine.network_groups, "network.collective.");
}

void raise(Duration& value, double share) { value += Duration{std::llround(to_seconds(value) * share * 1e12)}; }
void raise(Bytes& value, double share) { value.count += std::llround(static_cast<double>(value.count) * share); }
void raise(int& value, double share) { value += static_cast<int>(std::lround(value * share)); }
void raise(double& value, double share) { value *= 1.0 + share; }
void raise(BytesPerSecond& value, double share) { value.value *= 1.0 + share; }
void raise(FlopsPerSecond& value, double share) { value.value *= 1.0 + share; }

}  // namespace

std::vector<NamedParameter> parameters_of(const Machine& machine) {
  std::vector<NamedParameter> parameters;
  Machine copy = machine;  // a copy, because the visitors change it
  visit_given(copy, Parts{}, [&](const std::string& name, const auto& parameter) {
    parameters.push_back({name, parameter.standard_error, parameter.provenance, parameter.source});
  });
  return parameters;
}

Machine raised(const Machine& machine, std::string_view name, double share) {
  Machine copy = machine;
  bool is_found = false;
  const auto raise_named = [&](const std::string& at, auto& parameter) {
    if (at == name) {
      raise(parameter.value, share);
      is_found = true;
    }
  };
  const Parts parts{name};
  visit_given(copy, parts, raise_named);
  visit_derived(copy, parts, raise_named);
  check(is_found, "the machine has this parameter");
  if (name.starts_with("topology.")) {
    connect(copy, copy.plan);
  }
  copy.link.capacity = unlimited;  // The raised rate may exceed that of the real wires.
  if (copy.network) {
    copy.network->capacity = unlimited;
  }
  return copy;
}

namespace {

constexpr std::string_view units = "accelerator.matrix_units.";

AffectedOps ops_affected_by(std::string_view name) {
  if (name.ends_with(".ctas")) {  // concurrent kernels have fewer SMs
    return AffectedOps::anything;
  }
  if (name.starts_with(units)) {
    return AffectedOps::gemms;
  }
  if (name.starts_with("accelerator.attention.")) {
    return AffectedOps::attention;
  }
  if (name.starts_with("accelerator.decode_attention") || name.starts_with("accelerator.latent_decode")) {
    return AffectedOps::decoding;
  }
  if (name.starts_with("accelerator.experts")) {
    return AffectedOps::experts;
  }
  if (name.starts_with("accelerator.quantization.")) {
    return AffectedOps::quantization;
  }
  if (name.starts_with("link.collective.") || name.starts_with("network.collective.")) {
    const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
    return has(".nvls.") || has(".tree.") ? AffectedOps::all_reduces
           : has(".all_to_all.")          ? AffectedOps::all_to_alls
                                          : AffectedOps::collectives;
  }
  return name.starts_with("link.peer.") ? AffectedOps::exchanges : AffectedOps::anything;
}

/// Returns bf16 for "accelerator.matrix_units.bf16.gemm.ramp".
std::optional<DType> dtype_of_unit(std::string_view name) {
  if (!name.starts_with(units)) {
    return std::nullopt;
  }
  name.remove_prefix(units.size());
  return dtype_named(name.substr(0, name.find('.')));
}

/// Returns one raised machine for each of `parameters` that has a standard error and affects wanted ops.
template <class Wanted>
std::vector<RaisedMachine> raised_where(Machine machine, const std::vector<NamedParameter>& parameters,
                                        const Wanted& is_wanted) {
  const auto base = std::make_shared<const Machine>(std::move(machine));
  std::vector<RaisedMachine> machines;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = parameters[i].name;
    const AffectedOps affects = ops_affected_by(name);
    if (parameters[i].standard_error > 0.0 && is_wanted(affects)) {
      machines.push_back({.parameter = i,
                          .machine = MachineOnDemand(base, name, parameters[i].standard_error),
                          .affects = affects,
                          .dtype = dtype_of_unit(name),
                          .is_between_nodes = name.starts_with("network.")});
    }
  }
  return machines;
}

}  // namespace

struct MachineOnDemand::Made {
  std::once_flag once;
  std::shared_ptr<const Machine> machine;  // null until it is made

  // The arguments of raised() from which it is made; without a name, it is the base.
  std::shared_ptr<const Machine> base;
  std::string name;
  double share = 0.0;
};

MachineOnDemand::MachineOnDemand(std::shared_ptr<const Machine> base, std::string name, double share)
    : made_(std::make_shared<Made>()) {
  made_->base = std::move(base);
  made_->name = std::move(name);
  made_->share = share;
}

MachineOnDemand::MachineOnDemand(Machine machine)
    : MachineOnDemand(std::make_shared<const Machine>(std::move(machine)), "", 0.0) {}

const Machine& MachineOnDemand::operator*() const {
  std::call_once(made_->once, [&] {
    made_->machine = made_->name.empty()
                         ? made_->base
                         : std::make_shared<const Machine>(raised(*made_->base, made_->name, made_->share));
  });
  return *made_->machine;
}

std::vector<RaisedMachine> raised_by_error(const Machine& machine) {
  return raised_where(machine, parameters_of(machine), [](AffectedOps) { return true; });
}

std::vector<RaisedMachine> raised_for_steps(const Machine& machine) {
  Machine smaller = machine;
  smaller.accelerator.quantization.reset();
  return raised_where(std::move(smaller), parameters_of(machine),
                      [](AffectedOps affects) { return affects != AffectedOps::quantization; });
}

std::vector<RaisedMachine> raised_beside_decoding(const Machine& machine) {
  Machine smaller = machine;  // The kernels of decoding are a third of a machine's bytes, and sweeps hold many copies.
  Accelerator& accelerator = smaller.accelerator;
  accelerator.decode_attention.reset();
  accelerator.decode_attention_fp8.reset();
  accelerator.latent_decode.reset();
  accelerator.latent_decode_fp8.reset();
  accelerator.experts.reset();
  accelerator.experts_fp8.reset();
  accelerator.quantization.reset();
  return raised_where(std::move(smaller), parameters_of(machine), [](AffectedOps affects) {
    return affects != AffectedOps::decoding && affects != AffectedOps::experts && affects != AffectedOps::quantization;
  });
}

}  // namespace commfuse
