// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "model/config/catalogue.h"
#include "model/config/yaml_reader.h"

namespace commfuse {

namespace {

constexpr Range<double> efficiency{0.001, 1.0};
constexpr Range<double> relative_cost{0.0, 100.0};
constexpr Range<std::int64_t> sm_range{1, 4096};
constexpr Range<std::int64_t> cta_range{0, 4096};
constexpr Range<std::int64_t> node_range{1, 1024};

GemmParameters read_gemm(YamlMap map) {
  GemmParameters gemm;
  gemm.loop_efficiency = map.number_parameter("loop_efficiency", efficiency);
  gemm.hbm_efficiency = map.number_parameter("hbm_efficiency", efficiency);
  gemm.cached_input_cost = map.number_parameter("cached_input_cost", relative_cost);
  gemm.output_cost = map.number_parameter("output_cost", relative_cost);
  gemm.ramp = map.duration_parameter("ramp");
  gemm.wave_overhead = map.duration_parameter("wave_overhead");
  gemm.split_overhead = map.duration_parameter("split_overhead");
  return gemm;
}

void read_matrix_units(YamlMap map, Accelerator& accelerator) {
  bool any = false;
  for (const DType dtype : all_dtypes) {
    if (std::optional<YamlMap> unit = map.optional_map(name_of(dtype))) {
      any = true;
      accelerator.matrix_units[index_of(dtype)] =
          MatrixUnit{.dense_peak = unit->compute_rate_parameter("dense_peak"), .gemm = read_gemm(unit->map("gemm"))};
    }
  }
  if (!any) {
    map.mistake("", "no dtype is given; add at least one of bf16, fp16, fp32, fp8");
  }
}

Accelerator read_accelerator(YamlMap map) {
  Accelerator accelerator;
  accelerator.name = map.text("name");
  accelerator.sms = static_cast<int>(map.count("sms", sm_range));
  accelerator.hbm_bandwidth = map.bandwidth_parameter("hbm_bandwidth");
  accelerator.hbm_capacity = map.size("hbm_capacity");
  accelerator.l2_capacity = map.size("l2_capacity");
  accelerator.memory_bound_efficiency = map.number_parameter("memory_bound_efficiency", efficiency);
  accelerator.sm_bandwidth = map.bandwidth_parameter("sm_bandwidth");
  accelerator.kernel_floor = map.duration_parameter("kernel_floor");
  accelerator.launch_cost = map.duration_parameter("launch_cost");
  accelerator.event_cost = map.duration_parameter("event_cost");
  accelerator.graph_launch_cost = map.duration_parameter("graph_launch_cost");
  accelerator.graph_node_gap = map.duration_parameter("graph_node_gap");
  read_matrix_units(map.map("matrix_units"), accelerator);
  return accelerator;
}

PeerParameters read_peer(YamlMap map) {
  PeerParameters peer;
  peer.latency = map.duration_parameter("latency");
  peer.rate = map.bandwidth_parameter("rate");
  peer.ctas = map.count_parameter("ctas", cta_range);
  peer.issue_cost = map.duration_parameter("issue_cost");
  return peer;
}

CollectiveParameters read_collective(YamlMap map) {
  CollectiveParameters collective;
  collective.base_latency = map.duration_parameter("base_latency");
  collective.step_latency = map.duration_parameter("step_latency");
  collective.rate = map.bandwidth_parameter("rate");
  collective.own_copy_rate = map.bandwidth_parameter("own_copy_rate");
  collective.ramp_size = map.size_parameter("ramp_size");
  collective.ctas = map.count_parameter("ctas", cta_range);
  collective.issue_cost = map.duration_parameter("issue_cost");
  return collective;
}

Link read_link(YamlMap map) {
  Link link;
  link.name = map.text("name");
  link.nominal_rate = map.bandwidth_parameter("nominal_rate");
  link.peer = read_peer(map.map("peer"));
  link.collective = read_collective(map.map("collective"));
  return link;
}

/// A communication kernel must leave an SM to compute.
void check_ctas(YamlMap map, int ctas, int sms) {
  if (ctas >= sms) {
    map.mistake("ctas", fmt::format("{} CTAs leave none of the {} SMs to compute; choose 0 to {}", ctas, sms, sms - 1));
  }
}

}  // namespace

Machine load_machine(std::string_view name_or_path) {
  YamlFile file(find_config(Catalogue::hardware, name_or_path));
  YamlMap root = file.root();
  root.schema("commfuse.hardware/1");
  Machine machine;
  machine.name = root.text("name");
  machine.gpus_per_node = static_cast<int>(root.count("gpus_per_node", node_range));
  machine.accelerator = read_accelerator(root.map("accelerator"));
  machine.link = read_link(root.map("link"));
  if (!file.has_mistakes()) {
    check_ctas(root.map("link").map("peer"), machine.link.peer.ctas.value, machine.accelerator.sms);
    check_ctas(root.map("link").map("collective"), machine.link.collective.ctas.value, machine.accelerator.sms);
  }
  file.finish();
  return machine;
}

}  // namespace commfuse
