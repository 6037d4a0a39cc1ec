// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/raised.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>

#include "model/check.h"

namespace commfuse {

namespace {

// Structured bindings: a parameter added to one of these structs does not compile until it is named here.

template <class Visit>
void visit(GemmParameters& gemm, const std::string& at, const Visit& one) {
  auto& [loop, hbm, input, output, ramp, wave, split, large, narrow, small, least, quantum, unhidden, join, burst,
         sustained, burst_time, conversion] = gemm;
  one(at + "loop_efficiency", loop);
  one(at + "hbm_efficiency", hbm);
  one(at + "cached_input_cost", input);
  one(at + "output_cost", output);
  one(at + "ramp", ramp);
  one(at + "wave_overhead", wave);
  one(at + "split_overhead", split);
  one(at + "tile_256x128", large);
  one(at + "tile_64x256", narrow);
  one(at + "tile_128x64", small);
  one(at + "tile_64x64", least);
  one(at + "wave_quantum", quantum);
  one(at + "unhidden", unhidden);
  one(at + "join_cost", join);
  one(at + "burst_efficiency", burst);
  one(at + "sustained_share", sustained);
  one(at + "burst_time", burst_time);
  one(at + "conversion_passes", conversion);
}

template <class Visit>
void visit(AttentionParameters& attention, const std::string& at, const Visit& one) {
  auto& [overhead, loop, exponentials, width, tile, query, key, imbalance] = attention;
  one(at + "overhead", overhead);
  one(at + "loop_efficiency", loop);
  one(at + "exponentials", exponentials);
  one(at + "masked_width", width);
  one(at + "tile_overhead", tile);
  one(at + "query_cost", query);
  one(at + "key_cost", key);
  one(at + "imbalance", imbalance);
}

template <class Visit>
void visit(FrameworkKernels& kernels, const std::string& at, const Visit& one) {
  auto& [floor, sum, cached, norm, norm_step, activation, activation_step, rotation, rotation_step] = kernels;
  one(at + "floor", floor);
  one(at + "sum_efficiency", sum);
  one(at + "cached_saving", cached);
  one(at + "norm_efficiency", norm);
  one(at + "norm_step", norm_step);
  one(at + "activation_efficiency", activation);
  one(at + "activation_step", activation_step);
  one(at + "rotation_efficiency", rotation);
  one(at + "rotation_step", rotation_step);
}

template <class Visit>
void visit(Accelerator& accelerator, const std::string& at, const Visit& one) {
  one(at + "hbm_bandwidth", accelerator.hbm_bandwidth);
  one(at + "memory_bound_efficiency", accelerator.memory_bound_efficiency);
  one(at + "sm_bandwidth", accelerator.sm_bandwidth);
  one(at + "kernel_floor", accelerator.kernel_floor);
  one(at + "launch_cost", accelerator.launch_cost);
  one(at + "event_cost", accelerator.event_cost);
  one(at + "graph_launch_cost", accelerator.graph_launch_cost);
  one(at + "graph_node_gap", accelerator.graph_node_gap);
  one(at + "stream_gap", accelerator.stream_gap);
  visit(accelerator.attention, at + "attention.", one);
  if (accelerator.framework_kernels) {
    visit(*accelerator.framework_kernels, at + "framework_kernels.", one);
  }
  for (const DType dtype : all_dtypes) {
    if (std::optional<MatrixUnit>& unit = accelerator.matrix_units[index_of(dtype)]) {
      auto& [peak, gemm, fit] = *unit;
      const std::string here = fmt::format("{}matrix_units.{}.", at, name_of(dtype));
      one(here + "dense_peak", peak);
      visit(gemm, here + "gemm.", one);
    }
  }
}

template <class Visit>
void visit(PeerParameters& peer, const std::string& at, const Visit& one) {
  auto& [latency, rate, aggregate, ctas, issue, small, fit] = peer;
  one(at + "latency", latency);
  one(at + "rate", rate);
  one(at + "aggregate_rate", aggregate);
  one(at + "ctas", ctas);
  one(at + "issue_cost", issue);
  if (small) {
    auto& [up_to, small_latency, small_rate] = *small;
    one(at + "small.up_to", up_to);
    one(at + "small.latency", small_latency);
    one(at + "small.rate", small_rate);
  }
}

template <class Visit>
void visit(ProtocolParameters& protocol, const std::string& at, const Visit& one) {
  auto& [base, step, rate, copy, ramp] = protocol;
  one(at + "base_latency", base);
  one(at + "step_latency", step);
  one(at + "rate", rate);
  one(at + "own_copy_rate", copy);
  one(at + "ramp_size", ramp);
}

template <class Visit>
void visit(TreeProtocol& tree, const std::string& at, const Visit& one) {
  auto& [base, level, rate, two_nodes_rate] = tree;
  one(at + "base_latency", base);
  one(at + "level_latency", level);
  one(at + "rate", rate);
  if (two_nodes_rate) {
    one(at + "two_nodes_rate", *two_nodes_rate);
  }
}

template <class Visit>
void visit(NcclKernels& nccl, const std::string& at, const Visit& one) {
  auto& [tuning, ll, fill, ll128, nvls] = nccl;
  visit(ll, at + "ll.", one);
  one(at + "ll.fill_size", fill);
  if (ll128) {
    visit(*ll128, at + "ll128.", one);
  }
  if (nvls) {
    auto& [base, rate, ramp] = *nvls;
    one(at + "nvls.base_latency", base);
    one(at + "nvls.rate", rate);
    one(at + "nvls.ramp_size_per_rank", ramp);
  }
}

template <class Visit>
void visit(AllToAllParameters& direct, const std::string& at, const Visit& one) {
  auto& [up_to, small, large] = direct;
  one(at + "small_up_to", up_to);
  visit(small, at + "small.", one);
  visit(large, at + "large.", one);
}

template <class Visit>
void visit(TreeParameters& tree, const std::string& at, const Visit& one) {
  visit(static_cast<TreeProtocol&>(tree), at, one);
  one(at + "ramp_size_per_rank", tree.ramp_size_per_rank);
  if (tree.ll) {
    visit(*tree.ll, at + "ll.", one);
  }
  if (tree.ll128) {
    visit(*tree.ll128, at + "ll128.", one);
  }
}

/// What others share is copied first.
template <class T, class Change>
void change(std::shared_ptr<const T>& shared, const Change& how) {
  if (shared != nullptr) {
    auto copy = std::make_shared<T>(*shared);
    how(*copy);
    shared = std::move(copy);
  }
}

template <class Visit>
void visit(CollectiveParameters& collective, const std::string& at, const Visit& one) {
  visit(static_cast<ProtocolParameters&>(collective), at, one);
  one(at + "ctas", collective.ctas);
  one(at + "issue_cost", collective.issue_cost);
  change(collective.nccl, [&](NcclKernels& nccl) { visit(nccl, at + "nccl.", one); });
  change(collective.all_to_all, [&](AllToAllParameters& direct) { visit(direct, at + "all_to_all.", one); });
  change(collective.tree, [&](TreeParameters& tree) { visit(tree, at + "tree.", one); });
}

template <class Visit>
void visit(Link& link, const std::string& at, const Visit& one) {
  auto& [name, nominal, peer, collective, capacity] = link;
  one(at + "nominal_rate", nominal);
  visit(peer, at + "peer.", one);
  visit(collective, at + "collective.", one);
}

/// Those that the files give.
template <class Visit>
void visit_given(Machine& machine, const Visit& one) {
  visit(machine.accelerator, "accelerator.", one);
  visit(machine.link, "link.", one);
  if (machine.network) {
    visit(*machine.network, "network.", one);
  }
  if (machine.plan != nullptr && machine.plan->kind == NodeKind::pcie_tree && !machine.plan->wires) {
    change(machine.plan, [&](TopologyPlan& plan) {
      one("topology.bridge_rate", plan.bridge_rate);
      if (plan.root_rate) {
        one("topology.root_rate", *plan.root_rate);
      }
    });
  }
}

/// Those that were worked out from them, by the same names.
template <class Visit>
void visit_derived(Machine& machine, const Visit& one) {
  change(machine.pair_peers, [&](PairPeers& pairs) {
    for (PeerParameters& kind : pairs.kinds) {
      visit(kind, "link.peer.", one);
    }
  });
  const auto all = [&](std::vector<CollectiveParameters>& groups, const char* at) {
    for (CollectiveParameters& group : groups) {
      visit(group, at, one);
    }
  };
  change(machine.group_collectives, [&](auto& groups) { all(groups, "link.collective."); });
  change(machine.network_groups, [&](auto& groups) { all(groups, "network.collective."); });
}

void raise(Duration& value, double share) { value += Duration{std::llround(to_seconds(value) * share * 1e12)}; }
void raise(Bytes& value, double share) { value.count += std::llround(static_cast<double>(value.count) * share); }
void raise(int& value, double share) { value += static_cast<int>(std::lround(value * share)); }
void raise(double& value, double share) { value *= 1.0 + share; }
void raise(BytesPerSecond& value, double share) { value.value *= 1.0 + share; }
void raise(FlopsPerSecond& value, double share) { value.value *= 1.0 + share; }

}  // namespace

std::vector<NamedParameter> parameters_of(const Machine& machine) {
  std::vector<NamedParameter> all;
  Machine copy = machine;  // the visitors change
  visit_given(copy, [&](const std::string& name, const auto& parameter) {
    all.push_back({name, parameter.standard_error, parameter.provenance, parameter.source});
  });
  return all;
}

Machine raised(const Machine& machine, std::string_view name, double share) {
  Machine copy = machine;
  bool is_there = false;
  const auto raise_it = [&](const std::string& at, auto& one) {
    if (at == name) {
      raise(one.value, share);
      is_there = true;
    }
  };
  visit_given(copy, raise_it);
  visit_derived(copy, raise_it);
  check(is_there, "the machine has this parameter");
  if (name.starts_with("topology.")) {
    connect(copy, copy.plan);
  }
  copy.link.capacity = unlimited;  // It tells what the parameter is worth, and no wire is built so.
  if (copy.network) {
    copy.network->capacity = unlimited;
  }
  return copy;
}

namespace {

constexpr std::string_view units = "accelerator.matrix_units.";

FeltBy who_feels(std::string_view name) {
  if (name.starts_with(units)) {
    return FeltBy::products;
  }
  if (name.starts_with("accelerator.attention.")) {
    return FeltBy::attention;
  }
  if (name.starts_with("link.collective.") || name.starts_with("network.collective.")) {
    return FeltBy::collectives;
  }
  return name.starts_with("link.peer.") ? FeltBy::exchanges : FeltBy::anything;
}

/// Of "accelerator.matrix_units.bf16.gemm.ramp" bf16.
std::optional<DType> dtype_of_unit(std::string_view name) {
  if (!name.starts_with(units)) {
    return std::nullopt;
  }
  name.remove_prefix(units.size());
  return dtype_named(name.substr(0, name.find('.')));
}

}  // namespace

std::vector<RaisedMachine> raised_by_error(const Machine& machine) {
  std::vector<RaisedMachine> all;
  const std::vector<NamedParameter> parameters = parameters_of(machine);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].standard_error > 0.0) {
      const std::string& name = parameters[i].name;
      all.push_back({.parameter = i,
                     .machine = raised(machine, name, parameters[i].standard_error),
                     .felt_by = who_feels(name),
                     .dtype = dtype_of_unit(name)});
    }
  }
  return all;
}

}  // namespace commfuse
