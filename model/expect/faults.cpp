// SPDX-License-Identifier: Apache-2.0
#include "model/expect/faults.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>

#include "model/expect/machine_change.h"

namespace commfuse {

namespace {

template <class Change>
std::vector<Machine> machines_at(std::initializer_list<double> degrees, const Change& change) {
  std::vector<Machine> machines;
  for (const double degree : degrees) {
    machines.push_back(change(degree));
  }
  return machines;
}

bool is_pcie(const Machine& machine) {
  const CollectiveParameters& inside = machine.link.collective;
  const bool nccl_uses_pcie = inside.nccl != nullptr && inside.nccl->tuning.wire == NcclWire::pcie;
  return nccl_uses_pcie || (machine.plan != nullptr && machine.plan->kind == NodeKind::pcie_tree);
}

/// Returns machines whose rates and latencies are all worse by the same factor, as with another board, a power cap or a
/// second job.
std::vector<Machine> uniform(const Machine& machine) {
  return machines_at({0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.35}, [&](double factor) {
    Machine slow = with_latencies(with_link_rates(machine, factor), 1.0 / factor);
    return slow.network ? with_network_rates(std::move(slow), factor) : slow;
  });
}

/// Returns machines with a slow link. Every collective over all GPUs uses that link and waits for it.
std::vector<Machine> slow_link(const Machine& machine) {
  return machines_at({0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3},
                     [&](double factor) { return with_link_rates(machine, factor); });
}

std::vector<Machine> pcie_generation(const Machine& machine) {
  if (!is_pcie(machine)) {
    return {};
  }
  return machines_at({0.5, 0.25}, [&](double factor) { return with_link_rates(machine, factor); });
}

/// Returns machines that copy through host memory. Both directions of the copy share the wires, so less than half of
/// the rate remains.
std::vector<Machine> host_path(const Machine& machine) {
  return machines_at({0.4, 0.3, 0.2, 0.1, 0.05},
                     [&](double factor) { return with_latencies(with_link_rates(machine, factor), 1.5); });
}

std::vector<Machine> missing_nvls(const Machine& machine) {
  return has_nvls(machine) ? std::vector{without_nvls(machine)} : std::vector<Machine>{};
}

std::vector<Machine> few_ctas(const Machine& machine) {
  std::vector<Machine> machines;
  for (const int ctas : {16, 12, 8, 6, 4, 2, 1}) {
    if (ctas < machine.link.collective.ctas.value) {
      machines.push_back(with_ctas(machine, ctas));
    }
  }
  return machines;
}

std::vector<Machine> low_clocks(const Machine& machine) {
  return machines_at({0.85, 0.7, 0.6, 0.5, 0.35, 0.2}, [&](double share) { return with_clock(machine, share); });
}

std::vector<Machine> slow_host(const Machine& machine) {
  return machines_at({1.3, 1.6, 2.0, 3.0, 5.0}, [&](double factor) { return with_latencies(machine, factor); });
}

std::vector<Machine> dead_rail(const Machine& machine) {
  std::vector<Machine> machines;
  const int nics = machine.network ? machine.nics_per_node : 0;
  for (const int working : std::set{nics - 1, nics - 2, nics / 2, nics / 4, 1}) {
    if (working >= 1 && working < nics) {
      machines.push_back(with_rails(machine, working));
    }
  }
  return machines;
}

/// Returns machines with a slow NIC. Rings pass through every NIC of a node, so the slowest NIC sets the rate.
std::vector<Machine> degraded_nic(const Machine& machine) {
  if (!machine.network) {
    return {};
  }
  return machines_at({0.5, 0.25, 0.125}, [&](double factor) { return with_network_rates(machine, factor); });
}

std::vector<Machine> missing_gdr(const Machine& machine) {
  if (!machine.network) {
    return {};
  }
  return machines_at({0.65, 0.45, 0.35},
                     [&](double factor) { return with_latencies(with_network_rates(machine, factor), 1.4); });
}

std::vector<Machine> sockets(const Machine& machine) {
  if (!machine.network) {
    return {};
  }
  return machines_at({0.2, 0.1, 0.05, 0.02},
                     [&](double factor) { return with_latencies(with_network_rates(machine, factor), 2.0); });
}

/// Weight of a fault that is a wrong setting. It is low because all nodes of a cluster usually have the same settings.
constexpr double setting_weight = 0.5;

constexpr std::array faults{
    Fault{"uniform_slowdown", "all sizes are slower by one factor: a power cap, another job, or a different GPU model",
          "nvidia-smi --query-gpu=name,power.limit,utilization.gpu,clocks_event_reasons.active --format=csv", uniform},
    Fault{"slow_link", "a link inside the node is slower than it should be", "nvidia-smi nvlink --status", slow_link},
    Fault{"pcie_generation", "PCIe runs at a lower generation or width",
          "nvidia-smi --query-gpu=pcie.link.gen.current,pcie.link.width.current --format=csv", pcie_generation},
    Fault{"host_path",
          "GPUs reach each other through host memory: peer access is off because of ACS, the IOMMU or NCCL_P2P_*",
          "nvidia-smi topo -p2p rw", host_path},
    Fault{"missing_nvls", "all-reduce is not summed in the switch (NVLS)",
          "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NVLS all_reduce_perf -b 1G -e 1G -g 8", missing_nvls},
    Fault{"few_ctas", "NCCL runs on fewer CTAs than usual: NCCL_MAX_CTAS, NCCL_MAX_NCHANNELS or a tuner",
          "env | grep -E '^NCCL_(MAX|MIN)_(CTAS|NCHANNELS)'", few_ctas, setting_weight},
    Fault{"low_clocks", "SM clocks are low", "nvidia-smi -q -d CLOCK,PERFORMANCE", low_clocks},
    Fault{"slow_host", "every launch is slow: CPU power saving, busy cores or a wrong NUMA node",
          "cpupower frequency-info --policy", slow_host, 1.0, true},
    Fault{"dead_rail", "rails between nodes are down, or NCCL_IB_HCA excludes NICs", "ibstat", dead_rail},
    Fault{"degraded_nic", "a NIC between nodes runs below its rate", "ibstat", degraded_nic},
    Fault{"missing_gdr", "NICs do not read GPU memory themselves: GPUDirect RDMA is off, or ACS reroutes it",
          "lsmod | grep nvidia_peermem; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=NET all_reduce_perf -b 1G -e 1G",
          missing_gdr},
    Fault{"sockets", "NCCL uses TCP sockets instead of RDMA",
          "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET all_reduce_perf -b 1G -e 1G", sockets}};

}  // namespace

std::span<const Fault> all_faults() { return faults; }

const Fault* fault_named(std::string_view name) {
  const auto* const match =
      std::find_if(faults.begin(), faults.end(), [&](const Fault& fault) { return fault.name == name; });
  return match == faults.end() ? nullptr : match;
}

}  // namespace commfuse
