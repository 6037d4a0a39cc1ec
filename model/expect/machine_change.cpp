// SPDX-License-Identifier: Apache-2.0
#include "model/expect/machine_change.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/check.h"
#include "model/hardware/change_shared.h"
#include "model/hardware/described.h"

namespace commfuse {

namespace {

template <class Change>
void change_inside(Machine& machine, const Change& change) {
  change(machine.link.collective);
  change_shared(machine.group_collectives, [&](auto& groups) { std::for_each(groups.begin(), groups.end(), change); });
}

template <class Change>
void change_across(Machine& machine, const Change& change) {
  if (machine.network) {
    change(machine.network->collective);
    change_shared(machine.network_groups, [&](auto& groups) { std::for_each(groups.begin(), groups.end(), change); });
  }
}

/// Changes the parameters of every exchange inside a node.
template <class Change>
void change_peers(Machine& machine, const Change& change) {
  change(machine.link.peer);
  change_shared(machine.pair_peers,
                [&](auto& pairs) { std::for_each(pairs.kinds.begin(), pairs.kinds.end(), change); });
}

void multiply(PeerParameters& peer, double factor) {
  peer.rate.value.value *= factor;
  peer.aggregate_rate.value.value *= factor;
  if (peer.small) {
    peer.small->rate.value.value *= factor;
  }
}

/// Changes the ring in each of NCCL's protocols, and the all-to-all.
template <class Change>
void change_protocols(CollectiveParameters& collective, const Change& change) {
  change(static_cast<RingParameters&>(collective));
  change_shared(collective.nccl, [&](NcclKernels& nccl) {
    change(nccl.ll);
    if (nccl.ll128) {
      change(*nccl.ll128);
    }
  });
  change_shared(collective.all_to_all, [&](AllToAllParameters& direct) {
    change(direct.small);
    change(direct.large);
  });
}

/// Calls `visit` with the rates at which a kernel copies a rank's own share, or adds it to what arrives.
template <class Protocol, class Visit>
void each_own_rate(Protocol& protocol, const Visit& visit) {
  visit(protocol.own_copy_rate);
  if constexpr (std::is_base_of_v<RingParameters, Protocol>) {
    if (protocol.own_sum_rate) {
      visit(*protocol.own_sum_rate);
    }
  }
}

/// Calls `visit` with each parameter of type `Wanted` in a described struct.
template <class Wanted, class Described, class Visit>
void each_of_type(Described& described, const Visit& visit) {
  each_parameter(described, NoNames{}, [&](NoNames, auto& parameter) {
    if constexpr (std::is_same_v<decltype(parameter), Wanted&>) {
      visit(parameter);
    }
  });
}

/// Changes the parameters of each of the algorithms besides the ring (collective_algorithms).
template <class Change>
void change_algorithms(CollectiveParameters& collective, const Change& change) {
  each_algorithm([&](const auto& entry) { change_shared(collective.*entry.member, change); });
}

void multiply_latencies(CollectiveParameters& collective, double factor) {
  const auto lengthen = [&](Parameter<Duration>& latency) {
    latency.value = from_seconds(factor * to_seconds(latency.value));
  };
  change_protocols(collective, [&](auto& protocol) { each_of_type<Parameter<Duration>>(protocol, lengthen); });
  change_shared(collective.nccl, [&](NcclKernels& nccl) {
    if (nccl.nvls) {
      lengthen(nccl.nvls->base_latency);
    }
  });
  change_algorithms(collective, [&](auto& algorithm) { each_of_type<Parameter<Duration>>(algorithm, lengthen); });
}

void multiply_latencies(PeerParameters& peer, double factor) {
  peer.latency.value = from_seconds(factor * to_seconds(peer.latency.value));
  if (peer.small) {
    peer.small->latency.value = from_seconds(factor * to_seconds(peer.small->latency.value));
  }
}

}  // namespace

Machine with_link_rates(Machine machine, double factor) {
  check(factor > 0.0, "rates stay above 0");
  change_inside(machine,
                [&](CollectiveParameters& collective) { collective = with_rates(std::move(collective), factor); });
  change_peers(machine, [&](PeerParameters& peer) { multiply(peer, factor); });
  const BytesPerSecond limit = machine.link.collective.rate.value;
  if (factor < 1.0) {
    change_across(machine, [&](CollectiveParameters& collective) {
      collective = with_rates_up_to(std::move(collective), limit);
    });
  }
  return machine;
}

Machine with_network_rates(Machine machine, double factor) {
  check(factor > 0.0 && machine.network.has_value(), "rates of a network stay above 0");
  change_across(machine,
                [&](CollectiveParameters& collective) { collective = with_rates(std::move(collective), factor); });
  multiply(machine.network->peer, factor);
  return machine;
}

Machine with_rails(Machine machine, int rails) {
  check(machine.network.has_value() && rails >= 1 && rails <= machine.nics_per_node, "a node has these NICs");
  const auto nics_reached = [&](int group, int nics) {
    return nics * share_of_nics({.of_group = group, .of_node = group}, {machine.gpus_per_node, nics});
  };
  const auto slowed = [&](const CollectiveParameters& collective, int group) {
    return with_rates(collective, nics_reached(group, rails) / nics_reached(group, machine.nics_per_node));
  };
  machine.network->collective = slowed(machine.network->collective, machine.gpus_per_node);
  change_shared(machine.network_groups, [&](std::vector<CollectiveParameters>& groups) {
    for (std::size_t i = 0; i < groups.size(); ++i) {
      groups[i] = slowed(groups[i], static_cast<int>(i) + 1);
    }
  });
  machine.nics_per_node = rails;
  return machine;
}

Machine with_latencies(Machine machine, double factor) {
  const auto lengthen = [&](auto& parameters) { multiply_latencies(parameters, factor); };
  change_inside(machine, lengthen);
  change_across(machine, lengthen);
  change_peers(machine, lengthen);
  if (machine.network) {
    multiply_latencies(machine.network->peer, factor);
  }
  return machine;
}

bool has_nvls(const Machine& machine) {
  const CollectiveParameters& inside = machine.link.collective;
  return inside.nccl != nullptr && inside.nccl->nvls.has_value();
}

Machine without_nvls(Machine machine) {
  check(has_nvls(machine), "only a machine with NVLS can lose it");
  change_inside(machine, [](CollectiveParameters& collective) {
    change_shared(collective.nccl, [](NcclKernels& nccl) { nccl.nvls.reset(); });
  });
  return machine;
}

Machine with_ctas(Machine machine, int ctas) {
  check(ctas >= 1, "a kernel holds a CTA");
  const auto limit_ctas = [&](CollectiveParameters& collective) {
    const double share =
        collective.ctas.value > 0 ? std::min(1.0, static_cast<double>(ctas) / collective.ctas.value) : 1.0;
    const auto slow_down = [&](Parameter<BytesPerSecond>& rate) { rate.value.value *= share; };
    change_protocols(collective, [&](auto& protocol) {
      slow_down(protocol.rate);
      each_own_rate(protocol, slow_down);
    });
    change_algorithms(collective, [&]<class Algorithm>(Algorithm& algorithm) {
      if constexpr (is_of_library<Algorithm>) {
        each_of_type<Parameter<BytesPerSecond>>(algorithm, slow_down);
      }
    });
    collective.ctas.value = std::min(collective.ctas.value, ctas);
  };
  change_inside(machine, limit_ctas);
  change_across(machine, limit_ctas);
  return machine;
}

Machine with_clock(Machine machine, double share) {
  check(share > 0.0 && share <= 1.0, "a lower clock is a share of the usual one");
  machine = with_latencies(std::move(machine), 1.0 / share);
  const auto lower = [&](Parameter<BytesPerSecond>& rate) { rate.value.value *= share; };
  const auto slow_down = [&](CollectiveParameters& collective) {
    change_protocols(collective, [&](auto& protocol) { each_own_rate(protocol, lower); });
    change_shared(collective.nccl, [&](NcclKernels& nccl) {
      lower(nccl.ll.rate);
      if (nccl.ll128) {
        lower(nccl.ll128->rate);
      }
    });
    change_shared(collective.tree, [&](TreeParameters& tree) {
      for (std::optional<TreeProtocol>* unpacked : {&tree.ll, &tree.ll128}) {
        if (*unpacked) {
          each_of_type<Parameter<BytesPerSecond>>(**unpacked, lower);
        }
      }
    });
  };
  change_inside(machine, slow_down);
  change_across(machine, slow_down);
  return machine;
}

}  // namespace commfuse
