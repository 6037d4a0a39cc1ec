// SPDX-License-Identifier: Apache-2.0
// Hardware and cluster files; model/config/load_machine.cpp reads them.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/dtype.h"
#include "model/hardware/described.h"
#include "model/hardware/fit_scope.h"
#include "model/hardware/kernel_choice.h"
#include "sim/schema/described_shape.h"
#include "sim/schema/shape.h"

namespace commfuse::schema {

namespace {

std::vector<ShapeKey> operator+(std::vector<ShapeKey> keys, const std::vector<ShapeKey>& more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

ShapeKey fit_key() {
  const Shape range = map({{"least", count()}, {"most", count()}});
  std::vector<ShapeKey> seen_ranges;
  for (const FitSize size : all_fit_sizes) {
    seen_ranges.push_back(optional({std::string(name_of(size)), range}));
  }
  std::vector<ShapeKey> limits;
  for (const Limit limit : all_limits) {
    limits.push_back(optional({std::string(name_of(limit)), number(0, 200)}));
  }
  return optional({"fit",
                   map({{"residual", number(0, 1), "Relative error of the fit"},
                        optional({"by_limit", map(std::move(limits)), "Factors on the residual, by what limits an op"}),
                        optional({"seen", map(std::move(seen_ranges)), "Range of measured sizes"})}),
                   "Error and range of the fit of these parameters"});
}

Shape narrow_table(const Shape& row) {
  std::vector<ShapeKey> widths;
  for (std::size_t n = 0; n + 1 < KernelChoice::narrow_knots.size(); ++n) {
    widths.push_back({n_key(KernelChoice::narrow_knots[n]), row});
  }
  std::vector<ShapeKey> keys;
  for (const int log2_of_m : KernelChoice::m_knots) {
    keys.push_back({m_key(log2_of_m), map(widths)});
  }
  return map(std::move(keys));
}

ShapeKey kernel_choice_key() {
  Shape row = list(count(100, 10'000));
  std::vector<ShapeKey> rows;
  for (const int log2_of_tiles : KernelChoice::tiles_knots) {
    rows.push_back(optional({tiles_key(log2_of_tiles), row}));
  }
  std::vector<ShapeKey> keys{optional({"as", text(), "Table of another file and dtype: h100-sxm/bf16"}),
                             optional({"provenance", text(), "Kind and source, as in fitted: table.csv"})};
  for (const int log2_of_m : KernelChoice::m_knots) {
    keys.push_back(optional({m_key(log2_of_m), map(rows), "Thousandths, by tiles of 128 x 128 per SM and by k"}));
  }
  keys.push_back(optional({"narrow", narrow_table(row), "Further factors of fewer than 128 columns, by m, n and k"}));
  return optional({"kernel_choice", map(std::move(keys)),
                   "Time of the kernel that the library chooses, relative to the formula's"});
}

ShapeKey known_as() { return optional({"known_as", list(text()), "Its names in tables of measurements"}); }

Shape matrix_units() {
  const Shape unit = map({{"dense_peak", sourced(compute_rate()), "Dense peak of the data sheet, without sparsity"},
                          {"gemm", map(keys_of<GemmParameters>())},
                          kernel_choice_key(),
                          fit_key()});
  std::vector<ShapeKey> units;
  for (const DType dtype : all_dtypes) {
    units.push_back(optional({std::string(name_of(dtype)), unit}));
  }
  return map(std::move(units));
}

Shape accelerator() {
  std::vector<ShapeKey> keys = keys_of<Accelerator>();
  for (ShapeKey& key : keys) {
    if (key.name == "attention" || key.name == "framework_kernels" || key.name.starts_with("decode_attention") ||
        key.name.starts_with("latent_decode") || key.name.starts_with("experts") || key.name == "quantization") {
      key.shape.keys.push_back(fit_key());
    }
  }
  keys.push_back({"matrix_units", matrix_units(), "By dtype; at least one"});
  return map(std::move(keys));
}

Shape peer() { return map(keys_of<PeerParameters>() + std::vector<ShapeKey>{fit_key()}); }

Shape nccl() {
  return map(
      {{"generation", word({"volta", "ampere", "hopper", "blackwell"})},
       {"wire", word({"nvlink", "pcie", "network"})},
       {"channels", count(1, 64)},
       {"channel_rate", sourced(bandwidth())},
       optional({"rccl", boolean(), "AMD's RCCL; `generation` is NVIDIA's most similar one"}),
       optional({"tree_channels", count(1, 64), "Between nodes: channels of trees; allows NCCL to choose a tree"}),
       optional({"ll128_across", boolean(), "Between nodes: whether LL128 is allowed"}),
       optional({"amd_hosts", boolean()}),
       optional({"tree_step", duration()}),
       optional({"tree_node_step", duration()}),
       optional({"ll", map(keys_of<RingParameters>(key_of_ramp))}),
       optional({"ll128", map(keys_of<RingParameters>())}),
       optional({"nvls", map(keys_of<SwitchParameters>()), "All-reduce summed in the switch"})});
}

/// The parameters of the ring are optional, because NCCL's own estimate can serve as their prior.
Shape collective() {
  const Shape all_to_all = map({{"small_up_to", sourced(size())},
                                {"small", map(keys_of<ProtocolParameters>(key_of_ramp))},
                                {"large", map(keys_of<ProtocolParameters>())},
                                fit_key()});
  std::vector<ShapeKey> keys;
  for (ShapeKey& key : keys_of<RingParameters>()) {
    keys.push_back(optional(std::move(key)));
  }
  std::vector<ShapeKey> algorithms{optional({"nccl", nccl(), "Parameters of NCCL's tuner"}),
                                   optional({"all_to_all", all_to_all})};
  each_algorithm([&](const auto& entry) {
    algorithms.push_back(
        optional({std::string(entry.key), map(keys_of<AlgorithmOf<decltype(entry)>>()), std::string(entry.doc)}));
  });
  return map(std::move(keys) + std::move(algorithms) +
             std::vector<ShapeKey>{{"ctas", sourced(count(0, 4096)), "SMs that the kernel occupies"},
                                   {"issue_cost", sourced(duration()), "Host time per call"},
                                   fit_key()});
}

std::vector<ShapeKey> link_keys() {
  return {{"name", text()},
          {"nominal_rate", sourced(bandwidth()), "Rate of one GPU in one direction, from the data sheet"},
          {"peer", peer(), "Messages between two ranks"},
          {"collective", collective(), "All ranks together, by NCCL"}};
}

ShapeKey topology() {
  return optional({"topology",
                   map({optional({"kind", word({"nvswitch", "full_mesh", "pcie_tree", "ring"})}),
                        optional({"file", text(),
                                  "NCCL's XML, nvidia-smi topo -m, rocm-smi --showtopo or amd-smi topology, below this "
                                  "file's folder"}),
                        {"hop_latency", sourced(duration())},
                        optional({"gpus_per_bridge", count(1, 64)}),
                        optional({"bridges_per_root", count(1, 64)}),
                        optional({"bridge_rate", sourced(bandwidth())}),
                        optional({"root_rate", sourced(bandwidth())}),
                        optional({"nvlink_rate", sourced(bandwidth()), "Rate of one NVLink or xGMI link"}),
                        optional({"pcie_rate", sourced(bandwidth())})}),
                   "Wiring of the GPUs of a node (default: one switch)"});
}

std::vector<ShapeKey> network_keys() {
  const Shape network =
      map(link_keys() + std::vector<ShapeKey>{{"nics_per_node", count(1, 1024)},
                                              {"hop_latency", sourced(duration())},
                                              optional({"fabric", word({"one_switch", "rails"})}),
                                              optional({"leaf_rate", sourced(bandwidth()),
                                                        "Uplink rate of a leaf switch, with fabric rails"}),
                                              optional({"groups", table("^[1-9][0-9]*$", collective()),
                                                        "Collectives among fewer GPUs per node, by that number"})});
  return {optional({"nodes", count(1, 4096)}), optional({"network", network, "Network between the nodes"})};
}

}  // namespace

Shape hardware_shape() {
  return map(
      std::vector<ShapeKey>{{"name", text()},
                            optional({"extends", text(), "Hardware that supplies all keys that are absent here"}),
                            known_as(),
                            optional({"executor", text(), "Measured hardware: executor that ran there"}),
                            {"gpus_per_node", count(1, 1024)},
                            {"accelerator", accelerator()},
                            {"link", map(link_keys()), "Links inside a node"},
                            optional({"host_link", sourced(text()), "PCIe to the host: PCIe 5 x16"}),
                            topology()} +
      network_keys());
}

Shape cluster_shape() {
  return map(std::vector<ShapeKey>{{"name", text()},
                                   optional({"extends", text(), "Cluster that supplies all keys that are absent here"}),
                                   {"hardware", text(), "Hardware of one node: a name in the catalogue, or a path"},
                                   known_as(),
                                   topology()} +
             network_keys());
}

}  // namespace commfuse::schema
