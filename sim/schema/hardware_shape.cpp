// SPDX-License-Identifier: Apache-2.0
// Hardware and cluster files; model/config/load_machine.cpp reads them.
#include <string>
#include <utility>
#include <vector>

#include "model/dtype.h"
#include "model/hardware/fit_scope.h"
#include "sim/schema/shape.h"

namespace commfuse::schema {

namespace {

std::vector<ShapeKey> operator+(std::vector<ShapeKey> keys, const std::vector<ShapeKey>& more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

ShapeKey fit_key() {
  const Shape range = map({{"least", count()}, {"most", count()}});
  std::vector<ShapeKey> seen;
  for (const FitSize size : all_fit_sizes) {
    seen.push_back(optional({std::string(name_of(size)), range}));
  }
  return optional({"fit",
                   map({{"residual", number(0, 1), "Of the fit, relative"},
                        optional({"seen", map(std::move(seen)), "Sizes between which something was measured"})}),
                   "What these parameters were fitted to"});
}

ShapeKey known_as() { return optional({"known_as", list(text()), "Names by which measurements call it"}); }

Shape gemm() {
  return map({{"loop_efficiency", sourced(number(0.001, 2)), "Share of an SM's peak inside the k loop"},
              {"hbm_efficiency", sourced(number(0.001, 1)), "Share of the HBM bandwidth at which weights stream in"},
              {"cached_input_cost", sourced(number(0, 100)), "Time of an input byte that L2 holds, in weight bytes"},
              {"output_cost", sourced(number(0, 100)), "Time of an output byte, in weight bytes"},
              {"ramp", sourced(duration()), "Filling and draining the pipeline, once a product"},
              {"wave_overhead", sourced(duration()), "Epilogue of a tile, once a wave"},
              {"split_overhead", sourced(duration()), "Joining partial products where the k loop is split"},
              optional({"tile_256x128", sourced(number(0.001, 2)), "Speed of this tile, relative to 128 x 128"}),
              optional({"tile_64x256", sourced(number(0.001, 2)), "Speed of this tile, relative to 128 x 128"}),
              optional({"tile_128x64", sourced(number(0.001, 2)), "Speed of this tile, relative to 128 x 128"}),
              optional({"tile_64x64", sourced(number(0.001, 2)), "Speed of this tile, relative to 128 x 128"}),
              optional({"wave_quantum", sourced(number(0, 1)), "1: a wave partly full takes as long as a full one"}),
              optional({"unhidden", sourced(number(0, 1)), "How much of traffic or loops shows beside the greater"}),
              optional({"join_cost", sourced(number(0, 100)), "Time of a byte of partial products, in weight bytes"}),
              optional({"conversion_passes", sourced(number(0, 100)), "Passes over the input, to convert it"}),
              optional({"burst_efficiency", sourced(number(0.001, 2)), "What power allows in a short product"}),
              optional({"sustained_share", sourced(number(0.001, 1)), "What is left of that in one that lasts"}),
              optional({"burst_time", sourced(duration()), "A product this long is half way between"})});
}

Shape attention() {
  return map({{"overhead", sourced(duration()), "Once a call"},
              {"loop_efficiency", sourced(number(0.001, 1)), "Share of the dense peak in both products of a tile"},
              {"exponentials", sourced(compute_rate()), "Of the whole chip, beside the products"},
              {"masked_width", sourced(number(0, 4096)), "Keys behind the diagonal that a causal query pays for"},
              {"tile_overhead", sourced(duration()), "Of a tile of 128 queries of a head, once a wave"},
              {"query_cost", sourced(number(0, 100)), "Time of a byte of queries and output, in HBM bytes"},
              {"key_cost", sourced(number(0, 100)), "Time of a byte of keys and values, in HBM bytes"},
              {"imbalance", sourced(number(0, 100)), "Share of the longest tile's time for which SMs idle"},
              fit_key()});
}

Shape framework_kernels() {
  return map({{"floor", sourced(duration()), "Of every kernel"},
              {"sum_efficiency", sourced(number(0.001, 1)), "Of two tensors, a share of the HBM bandwidth"},
              {"cached_saving", sourced(number(0, 1)), "Share of its time that a sum saves on what L2 holds"},
              {"norm_efficiency", sourced(number(0.001, 1))},
              {"norm_step", sourced(duration())},
              {"activation_efficiency", sourced(number(0.001, 1))},
              {"activation_step", sourced(duration())},
              {"rotation_efficiency", sourced(number(0.001, 1)), "Rotary position embedding"},
              {"rotation_step", sourced(duration())}});
}

Shape matrix_units() {
  const Shape unit = map(
      {{"dense_peak", sourced(compute_rate()), "Of the data sheet, without sparsity"}, {"gemm", gemm()}, fit_key()});
  std::vector<ShapeKey> units;
  for (const DType dtype : all_dtypes) {
    units.push_back(optional({std::string(name_of(dtype)), unit}));
  }
  return map(std::move(units));
}

Shape accelerator() {
  return map({{"name", text()},
              {"sms", count(1, 4096), "Streaming multiprocessors"},
              {"hbm_bandwidth", sourced(bandwidth())},
              {"hbm_capacity", size()},
              {"l2_capacity", size()},
              {"memory_bound_efficiency", sourced(number(0.001, 1)), "Share of the HBM bandwidth that kernels reach"},
              {"sm_bandwidth", sourced(bandwidth()), "What one SM reads and writes at most"},
              {"kernel_floor", sourced(duration()), "The least that a kernel takes"},
              {"launch_cost", sourced(duration()), "Of the host, a kernel"},
              {"event_cost", sourced(duration()), "Of the host, a wait of one lane for another"},
              {"graph_launch_cost", sourced(duration()), "Of a whole CUDA graph"},
              {"graph_node_gap", sourced(duration()), "Wait between nodes of a CUDA graph, beyond kernel_floor"},
              optional({"stream_gap", sourced(duration()), "Wait before a kernel of a stream, beyond kernel_floor"}),
              optional({"attention", attention()}),
              optional({"framework_kernels", framework_kernels()}),
              {"matrix_units", matrix_units(), "By dtype; at least one"}});
}

Shape peer() {
  const Shape small =
      map({{"up_to", sourced(size())}, {"latency", sourced(duration())}, {"rate", sourced(bandwidth())}});
  return map({{"latency", sourced(duration()), "From both ends posted to the first byte; no launch in it"},
              {"rate", sourced(bandwidth()), "What a single peer gets, one direction"},
              optional({"aggregate_rate", sourced(bandwidth()), "What all peers of a rank get together"}),
              {"ctas", sourced(count(0, 4096)), "SMs that the kernel holds; 0 for copy engines"},
              {"issue_cost", sourced(duration()), "Of the host: a grouped send and receive"},
              optional({"small", small, "Messages up to a size"}),
              fit_key()});
}

std::vector<ShapeKey> latencies_and_rates() {
  return {{"base_latency", sourced(duration()), "Once a call; no host issue in it"},
          {"step_latency", sourced(duration()), "Once a step"},
          {"rate", sourced(bandwidth()), "Wire bytes a rank sends a second, for very large sizes"},
          {"own_copy_rate", sourced(bandwidth()), "Of a rank's own share, from input to output"}};
}

std::vector<ShapeKey> protocol_keys() {
  return latencies_and_rates() + std::vector<ShapeKey>{{"ramp_size", sourced(size()),
                                                        "Wire bytes whose time filling the pipeline costs at most"}};
}

ShapeKey ramp_per_rank() {
  return {"ramp_size_per_rank", sourced(size()), "Of a rank's share: what filling the pipeline costs at most"};
}

Shape nccl() {
  const Shape nvls = map({{"base_latency", sourced(duration())}, {"rate", sourced(bandwidth())}, ramp_per_rank()});
  return map({{"generation", word({"volta", "ampere", "hopper", "blackwell"})},
              {"wire", word({"nvlink", "pcie", "network"})},
              {"channels", count(1, 64)},
              {"channel_rate", sourced(bandwidth())},
              optional({"tree_channels", count(1, 64), "Between nodes: lets NCCL choose a tree"}),
              optional({"ll128_across", boolean(), "Between nodes: whether LL128 is allowed"}),
              optional({"amd_hosts", boolean()}),
              optional({"tree_step", duration()}),
              optional({"tree_node_step", duration()}),
              optional({"ll", map(latencies_and_rates() + std::vector<ShapeKey>{{"fill_size", sourced(size())}})}),
              optional({"ll128", map(protocol_keys())}),
              optional({"nvls", nvls, "All-reduce by sums in the switch"})});
}

Shape tree() {
  const std::vector<ShapeKey> protocol{{"base_latency", sourced(duration())},
                                       {"level_latency", sourced(duration()), "Once a level of the tree"},
                                       {"rate", sourced(bandwidth())},
                                       optional({"two_nodes_rate", sourced(bandwidth())})};
  return map(protocol + std::vector<ShapeKey>{ramp_per_rank(), optional({"ll", map(protocol)}),
                                              optional({"ll128", map(protocol)})});
}

/// Where NCCL's own estimate is the prior, what it estimates may be left out.
Shape collective() {
  const Shape all_to_all =
      map({{"small_up_to", sourced(size())}, {"small", map(latencies_and_rates())}, {"large", map(protocol_keys())}});
  std::vector<ShapeKey> keys;
  for (ShapeKey& key : protocol_keys()) {
    keys.push_back(optional(std::move(key)));
  }
  return map(std::move(keys) + std::vector<ShapeKey>{optional({"nccl", nccl(), "What NCCL's tuner knows"}),
                                                     optional({"all_to_all", all_to_all}),
                                                     optional({"tree", tree()}),
                                                     {"ctas", sourced(count(0, 4096)), "SMs that the kernel holds"},
                                                     {"issue_cost", sourced(duration()), "Of the host, a call"},
                                                     fit_key()});
}

std::vector<ShapeKey> link_keys() {
  return {{"name", text()},
          {"nominal_rate", sourced(bandwidth()), "Of a GPU, one direction, as the data sheet says"},
          {"peer", peer(), "Messages between two ranks"},
          {"collective", collective(), "All ranks together, by NCCL"}};
}

ShapeKey topology() {
  return optional({"topology",
                   map({optional({"kind", word({"nvswitch", "full_mesh", "pcie_tree", "ring"})}),
                        optional({"file", text(), "The XML of NCCL or nvidia-smi topo -m, below this file's folder"}),
                        {"hop_latency", sourced(duration())},
                        optional({"gpus_per_bridge", count(1, 64)}),
                        optional({"bridges_per_root", count(1, 64)}),
                        optional({"bridge_rate", sourced(bandwidth())}),
                        optional({"root_rate", sourced(bandwidth())}),
                        optional({"nvlink_rate", sourced(bandwidth())}),
                        optional({"pcie_rate", sourced(bandwidth())})}),
                   "How the GPUs of a node are wired; without it one switch"});
}

std::vector<ShapeKey> network_keys() {
  const Shape network = map(
      link_keys() + std::vector<ShapeKey>{{"nics_per_node", count(1, 1024)},
                                          {"hop_latency", sourced(duration())},
                                          optional({"fabric", word({"one_switch", "rails"})}),
                                          optional({"leaf_rate", sourced(bandwidth()), "Of rails: a leaf's, upwards"}),
                                          optional({"groups", table("^[1-9][0-9]*$", collective()),
                                                    "Collectives among fewer GPUs of each node, by their number"})});
  return {optional({"nodes", count(1, 4096)}), optional({"network", network, "What joins the nodes"})};
}

}  // namespace

Shape hardware_shape() {
  return map(
      std::vector<ShapeKey>{{"name", text()},
                            optional({"extends", text(), "Hardware from which all is taken that is not said here"}),
                            known_as(),
                            optional({"executor", text(), "Of measured hardware: what ran there"}),
                            {"gpus_per_node", count(1, 1024)},
                            {"accelerator", accelerator()},
                            {"link", map(link_keys()), "Inside a node"},
                            topology()} +
      network_keys());
}

Shape cluster_shape() {
  return map(std::vector<ShapeKey>{{"name", text()},
                                   {"hardware", text(), "One node: a name of the catalogue, or a path"},
                                   known_as(),
                                   topology()} +
             network_keys());
}

}  // namespace commfuse::schema
