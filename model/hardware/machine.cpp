// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/machine.h"

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "model/check.h"
#include "model/hardware/described.h"
#include "model/hardware/segments.h"

namespace commfuse {

namespace {

/// A route between two GPUs: the rate of its slowest hop, and its latency.
struct Reach {
  BytesPerSecond rate;
  Duration latency{};
  friend bool operator==(const Reach&, const Reach&) = default;
};

std::vector<Reach> reaches_from(const Topology& topology, int from, int gpus_per_node) {
  const std::vector<std::optional<Route>> routes = routes_from(topology, from);
  std::vector<Reach> reaches(static_cast<std::size_t>(gpus_per_node));
  for (int other = 0; other < gpus_per_node; ++other) {
    if (other != from) {
      const std::optional<Route>& route = routes[static_cast<std::size_t>(other)];
      check(route.has_value(), "the GPUs of a node reach each other");
      reaches[static_cast<std::size_t>(other)] = {route->rate, route->latency};
    }
  }
  return reaches;
}

PeerParameters scaled(PeerParameters peer, const Reach& reach, const Reach& best) {
  peer.rate.value = (reach.rate.value / best.rate.value) * peer.rate.value;
  peer.latency.value += reach.latency - best.latency;
  if (peer.small) {
    peer.small->rate.value = (reach.rate.value / best.rate.value) * peer.small->rate.value;
    peer.small->latency.value += reach.latency - best.latency;
  }
  return peer;
}

/// Implements with_rates for one part.
struct ScaledRates {
  double times = 1.0;
  RateChange change = RateChange::every_rate;

  void operator()(Parameter<BytesPerSecond>& rate) const {
    rate.value.value *= times;
    if (change == RateChange::supposed_wires) {
      rate.provenance = Provenance::prior;
      rate.source.clear();
    }
  }
  void operator()(ProtocolParameters& protocol) const {
    (*this)(protocol.rate);
    if (raises_own_rates()) {
      (*this)(protocol.own_copy_rate);
    }
  }
  void operator()(RingParameters& ring) const {
    (*this)(static_cast<ProtocolParameters&>(ring));
    if (raises_own_rates() && ring.own_sum_rate) {
      (*this)(*ring.own_sum_rate);
    }
  }
  [[nodiscard]] bool raises_own_rates() const { return change == RateChange::every_rate && times > 1.0; }
};

/// Implements with_rates_up_to for one part.
struct LimitedRates {
  BytesPerSecond limit;

  void operator()(Parameter<BytesPerSecond>& rate) const { rate.value.value = std::min(rate.value.value, limit.value); }
  void operator()(ProtocolParameters& protocol) const { (*this)(protocol.rate); }
};

/// Changes every rate of the kernels other than the collective's own ring, except NCCL's estimates.
template <class Change>
void change_kernels(CollectiveParameters& parameters, const Change& change) {
  if (parameters.nccl != nullptr) {
    NcclKernels nccl = *parameters.nccl;
    change(nccl.ll);
    if (nccl.ll128) {
      change(*nccl.ll128);
    }
    if (nccl.nvls) {
      change(nccl.nvls->rate);
    }
    parameters.nccl = std::make_shared<const NcclKernels>(std::move(nccl));
  }
  if (parameters.all_to_all != nullptr) {
    AllToAllParameters direct = *parameters.all_to_all;
    change(direct.small);
    change(direct.large);
    parameters.all_to_all = std::make_shared<const AllToAllParameters>(std::move(direct));
  }
  each_algorithm([&](const auto& entry) {
    auto& shared = parameters.*entry.member;
    if (shared != nullptr) {
      AlgorithmOf<decltype(entry)> algorithm = *shared;
      each_parameter(algorithm, NoNames{}, [&](NoNames, auto& parameter) {
        if constexpr (std::is_same_v<decltype(parameter), Parameter<BytesPerSecond>&>) {
          change(parameter);
        }
      });
      shared = std::make_shared<const AlgorithmOf<decltype(entry)>>(std::move(algorithm));
    }
  });
}

void require_gpu(const Machine& machine, int gpu) {
  check(gpu >= 0 && gpu < total_gpus(machine), "the machine has this GPU");
}

}  // namespace

void connect(Machine& machine, std::shared_ptr<const TopologyPlan> plan) {
  auto topology = std::make_shared<const Topology>(build_topology(*plan));
  machine.pair_peers = nullptr;  // a machine that was connected before may have had other wires
  machine.group_collectives = nullptr;
  machine.strided_rates = nullptr;
  machine.segments = nullptr;
  if ((plan->wires || plan->kind != NodeKind::nvswitch) && machine.gpus_per_node > 1) {
    const GroupRates rates(*topology, machine.gpus_per_node);
    const auto strided = std::make_shared<StridedRates>(rates, machine.gpus_per_node);
    machine.pair_peers = pair_peers_of(*topology, machine.gpus_per_node, machine.link.peer);
    machine.group_collectives = group_collectives_of(rates, machine.gpus_per_node, machine.link.collective);
    machine.strided_rates = strided->alike() ? nullptr : strided;
  }
  if (machine.pair_peers != nullptr || plan->nodes > 1) {
    machine.segments = std::make_shared<const Segments>(segments_of(*topology, machine.gpus_per_node));
  }
  machine.topology = std::move(topology);
  machine.plan = std::move(plan);
}

int total_gpus(const Machine& machine) { return machine.nodes * machine.gpus_per_node; }

const PeerParameters& peer_between(const Machine& machine, int gpu_a, int gpu_b) {
  require_gpu(machine, gpu_a);
  require_gpu(machine, gpu_b);
  check(gpu_a != gpu_b, "an exchange joins two different GPUs");
  if (gpu_a / machine.gpus_per_node != gpu_b / machine.gpus_per_node) {
    check(machine.network.has_value(), "several nodes have a network");
    return machine.network->peer;
  }
  if (machine.pair_peers == nullptr) {
    return machine.link.peer;
  }
  const auto width = static_cast<std::size_t>(machine.gpus_per_node);
  const std::size_t a = static_cast<std::size_t>(gpu_a) % width;
  const std::size_t b = static_cast<std::size_t>(gpu_b) % width;
  return machine.pair_peers->kinds[machine.pair_peers->kind_of_pair[a * width + b]];
}

const CollectiveParameters& collective_over(const Machine& machine, int first_gpu, int gpus) {
  check(gpus >= 1, "a collective has at least one GPU");
  require_gpu(machine, first_gpu);
  require_gpu(machine, first_gpu + gpus - 1);
  if (first_gpu / machine.gpus_per_node == (first_gpu + gpus - 1) / machine.gpus_per_node) {
    return machine.group_collectives == nullptr ? machine.link.collective
                                                : (*machine.group_collectives)[static_cast<std::size_t>(gpus - 1)];
  }
  check(machine.network.has_value(), "several nodes have a network");
  return machine.network->collective;
}

const CollectiveParameters& collective_across(const Machine& machine, int gpus_of_a_node) {
  check(machine.network.has_value(), "several nodes have a network");
  check(gpus_of_a_node >= 1 && gpus_of_a_node <= machine.gpus_per_node, "a node has these GPUs");
  return machine.network_groups == nullptr || gpus_of_a_node == machine.gpus_per_node
             ? machine.network->collective
             : (*machine.network_groups)[static_cast<std::size_t>(gpus_of_a_node - 1)];
}

BytesPerSecond rate_across(const Machine& machine, const SendingGpus& senders) {
  const CollectiveParameters& together = collective_across(machine, senders.of_group);
  const PeerParameters& peer = machine.network->peer;
  const int nics = std::max(1, machine.nics_per_node);
  const double peer_rate = std::max(peer.rate.value.value, peer.aggregate_rate.value.value);
  const double shared = share_of_nics(senders, {machine.gpus_per_node, nics}) * nics / senders.of_group;
  const double collective_rate = part_beside(machine, senders) * together.rate.value.value;
  return {std::max(peer_rate * std::min(1.0, shared), collective_rate / senders.of_group)};
}

double share_of_nics(const SendingGpus& senders, const NodeNics& node) {
  check(senders.of_group >= 1 && senders.of_node >= senders.of_group && node.gpus >= senders.of_node && node.nics >= 1,
        "a node has GPUs and NICs");
  const double reached =
      std::max(1.0 / std::min(node.nics, node.gpus), static_cast<double>(senders.of_node) / node.gpus);
  return reached * senders.of_group / senders.of_node;
}

double part_beside(const Machine& machine, const SendingGpus& senders) {
  const NodeNics node{.gpus = machine.gpus_per_node, .nics = std::max(1, machine.nics_per_node)};
  const SendingGpus alone{.of_group = senders.of_group, .of_node = senders.of_group};
  return share_of_nics(senders, node) / share_of_nics(alone, node);
}

CollectiveParameters with_rates(CollectiveParameters parameters, double times, RateChange change) {
  check(times > 0.0, "rates stay above 0");
  const ScaledRates scale{times, change};
  scale(parameters);
  change_kernels(parameters, scale);
  if (parameters.nccl != nullptr) {
    NcclKernels nccl = *parameters.nccl;
    (change == RateChange::supposed_wires ? nccl.tuning.hypothetical : nccl.tuning.channel_rate.value) *= times;
    parameters.nccl = std::make_shared<const NcclKernels>(std::move(nccl));
  }
  return parameters;
}

CollectiveParameters with_rates_up_to(CollectiveParameters parameters, BytesPerSecond limit) {
  const LimitedRates limit_rates{limit};
  limit_rates(parameters);
  change_kernels(parameters, limit_rates);
  return parameters;
}

std::shared_ptr<const std::vector<CollectiveParameters>> group_collectives_of(const GroupRates& rates,
                                                                              int gpus_per_node,
                                                                              const CollectiveParameters& whole) {
  auto groups = std::make_shared<std::vector<CollectiveParameters>>();
  bool all_equal = true;
  for (int ranks = 1; ranks <= gpus_per_node; ++ranks) {
    const double part = ranks == 1 ? 1.0 : part_of(rates.alone(ranks), rates.alone(gpus_per_node));
    all_equal = all_equal && part == 1.0;
    groups->push_back(part == 1.0 ? whole : with_rates_up_to(with_rates(whole, part), rates.alone(ranks)));
  }
  return all_equal ? nullptr : groups;
}

std::shared_ptr<const PairPeers> pair_peers_of(const Topology& topology, int gpus_per_node,
                                               const PeerParameters& nearest) {
  std::vector<Reach> reaches;
  Reach best{{0.0}, Duration::max()};
  for (int a = 0; a < gpus_per_node; ++a) {
    const std::vector<Reach> row = reaches_from(topology, a, gpus_per_node);
    for (int b = 0; b < gpus_per_node; ++b) {
      const Reach& reach = row[static_cast<std::size_t>(b)];
      reaches.push_back(reach);
      if (a != b) {
        best = {{std::max(best.rate.value, reach.rate.value)}, std::min(best.latency, reach.latency)};
      }
    }
  }
  auto pairs = std::make_shared<PairPeers>();
  std::vector<Reach> kinds;
  for (std::size_t i = 0; i < reaches.size(); ++i) {
    const bool is_self = i % static_cast<std::size_t>(gpus_per_node + 1) == 0;
    const Reach reach = is_self ? best : reaches[i];
    auto known = std::find(kinds.begin(), kinds.end(), reach);
    if (known == kinds.end()) {
      pairs->kinds.push_back(scaled(nearest, reach, best));
      known = kinds.insert(known, reach);
    }
    pairs->kind_of_pair.push_back(static_cast<std::uint16_t>(known - kinds.begin()));
  }
  return kinds.size() > 1 ? pairs : nullptr;
}

}  // namespace commfuse
