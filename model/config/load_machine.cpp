// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <type_traits>
#include <utility>

#include "model/config/catalogue.h"
#include "model/config/inherited_rates.h"
#include "model/config/load_model.h"
#include "model/config/machine_wires.h"
#include "model/config/read_described.h"
#include "model/config/read_fit_scope.h"
#include "model/config/read_kernel_choice.h"
#include "model/config/read_link.h"
#include "model/config/yaml_reader.h"
#include "model/config_error.h"
#include "model/hardware/change_shared.h"
#include "model/hardware/described.h"
#include "model/text/counted.h"
#include "model/text/files.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

constexpr Range<std::int64_t> node_size_range{1, 1024};
constexpr Range<std::int64_t> nic_range{1, 1024};
constexpr int max_gpus = 32768;
constexpr std::string_view hardware_schema = "commfuse.hardware/1";
constexpr std::string_view cluster_schema = "commfuse.cluster/1";

/// Checks that the file has all three parameters of the power ceiling or none.
void require_whole_power(YamlMap map, GemmParameters& gemm) {
  constexpr std::array<std::string_view, 3> keys{"burst_efficiency", "sustained_share", "burst_time"};
  const auto has = [&](std::string_view key) { return map.optional_value(key).has_value(); };
  if (std::none_of(keys.begin(), keys.end(), has)) {
    return;
  }
  each_entry<GemmParameters>([&](const auto& entry) {
    if (std::find(keys.begin(), keys.end(), entry.key) != keys.end() && !has(entry.key)) {
      read_value(map, entry, gemm.*entry.member);  // reports the missing key
    }
  });
}

GemmParameters read_gemm(YamlMap map) {
  GemmParameters gemm;
  read_described(map, gemm);
  require_whole_power(map, gemm);
  return gemm;
}

/// For each dtype, the file that gives its kernel_choice.
using NamingFiles = std::array<std::filesystem::path, all_dtypes.size()>;

void read_matrix_units(const NamingFiles& naming_files, YamlMap map, Accelerator& accelerator) {
  bool has_unit = false;
  for (const DType dtype : all_dtypes) {
    if (std::optional<YamlMap> unit = map.optional_map(name_of(dtype))) {
      has_unit = true;
      accelerator.matrix_units[index_of(dtype)] =
          MatrixUnit{.dense_peak = unit->compute_rate_parameter("dense_peak"),
                     .gemm = read_gemm(unit->map("gemm")),
                     .kernel_choice = read_kernel_choice(naming_files[index_of(dtype)], *unit),
                     .fit = read_fit_scope(*unit)};
    }
  }
  if (!has_unit) {
    map.mistake("", "no dtype is given; add at least one of bf16, fp16, fp32, fp8");
  }
}

Accelerator read_accelerator(const NamingFiles& naming_files, YamlMap map) {
  Accelerator accelerator;
  read_described(map, accelerator);
  if (std::optional<YamlMap> attention = map.optional_map("attention")) {
    accelerator.attention_fit = read_fit_scope(*attention);
  }
  if (std::optional<YamlMap> kernels = map.optional_map("framework_kernels")) {
    accelerator.framework_kernel_fit = read_fit_scope(*kernels);
  }
  const auto read_fit = [&](std::string_view key, auto& kernel) {
    if (std::optional<YamlMap> inside = map.optional_map(key)) {
      kernel->fit = read_fit_scope(*inside);
    }
  };
  read_fit("decode_attention", accelerator.decode_attention);
  read_fit("decode_attention_fp8", accelerator.decode_attention_fp8);
  read_fit("latent_decode", accelerator.latent_decode);
  read_fit("latent_decode_fp8", accelerator.latent_decode_fp8);
  read_fit("experts", accelerator.experts);
  read_fit("experts_fp8", accelerator.experts_fp8);
  read_fit("quantization", accelerator.quantization);
  read_matrix_units(naming_files, map.map("matrix_units"), accelerator);
  if (accelerator.experts_fp8 && !accelerator.supports(DType::fp8)) {
    map.mistake("experts_fp8", "matrix_units has no fp8; add it, or remove experts_fp8");
  }
  return accelerator;
}

/// Reads an optional list of names.
void read_known_as(YamlMap map, std::vector<std::string>& known_as) {
  const std::optional<YamlValue> list = map.optional_value("known_as");
  if (!list) {
    return;
  }
  const std::vector<YamlValue> items = list->kind() == YamlKind::list ? list->items() : std::vector<YamlValue>{};
  for (const YamlValue& item : items) {
    if (item.kind() == YamlKind::scalar && !item.text().empty()) {
      known_as.push_back(item.text());
    }
  }
  if (items.empty() || known_as.size() < items.size()) {
    map.mistake("known_as", R"(known_as is a list of names; write them as in ["H100-SXM5-80GB"], or remove it)");
  }
}

/// Checks that a communication kernel leaves at least one SM for computation.
void check_ctas(YamlMap map, int ctas, int sms) {
  if (ctas >= sms) {
    map.mistake("ctas",
                fmt::format("{} CTAs leave none of the {} SMs for computation; choose 0 to {}", ctas, sms, sms - 1));
  }
}

void check_ctas(YamlMap link_map, const Link& link, int sms) {
  check_ctas(link_map.map("peer"), link.peer.ctas.value, sms);
  check_ctas(link_map.map("collective"), link.collective.ctas.value, sms);
}

/// Checks that the rate to all peers is not below the rate to one peer.
void check_aggregate(YamlMap peer_map, const PeerParameters& peer) {
  if (peer.aggregate_rate.value.value < peer.rate.value.value) {
    peer_map.mistake("aggregate_rate",
                     fmt::format("{} is below the rate to one peer, {}; give the rate to all peers together",
                                 bandwidth_in_words(peer.aggregate_rate.value), bandwidth_in_words(peer.rate.value)));
  }
}

/// Network that joins the nodes, from a hardware file or a cluster file.
struct Network {
  int nodes = 1;
  std::optional<Link> link;  // with inherited rates that are not scaled yet
  int nics_per_node = 0;
  Duration hop_latency{};
  FabricKind fabric = FabricKind::one_switch;
  BytesPerSecond leaf_rate;                    // rate of a leaf switch; for rails only
  std::map<int, CollectiveParameters> groups;  // values from the file, by GPUs per node
  // Factors on inherited rates of `link` and `network`, and NICs per node, each by level (YamlMap::level).
  RateFactors node_factors{1.0};
  RateFactors network_factors{1.0};
  std::vector<int> nics{0};
};

/// Reads the switches between the NICs; without `fabric`, one switch that never blocks.
void read_fabric(YamlMap map, Network& network) {
  if (!map.optional_value("fabric")) {
    return;
  }
  const std::string word = map.text("fabric");
  const std::optional<FabricKind> kind = fabric_kind_named(word);
  if (!kind && !word.empty()) {
    map.mistake("fabric", fmt::format("unknown fabric {}; choose one_switch or rails", in_quotes(word)));
  }
  network.fabric = kind.value_or(FabricKind::one_switch);
  if (network.fabric == FabricKind::rails) {
    Parameter<BytesPerSecond> leaf_rate = map.bandwidth_parameter("leaf_rate");
    scale_inherited(map, "leaf_rate", leaf_rate, network.network_factors);
    network.leaf_rate = leaf_rate.value;
  }
}

/// Reads `groups: {1: {...}}`, whose keys are GPUs per node.
void read_groups(YamlMap map, Network& network) {
  for (const std::string& key : map.keys()) {
    int gpus = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), gpus);
    if (error != std::errc{} || end != key.data() + key.size() || gpus < 1 || key.front() == '0') {
      map.mistake(key, fmt::format("{} is not a number of GPUs per node; write one, as in 4", in_quotes(key)));
    }
    network.groups[gpus] = read_collective(map.map(key));
  }
}

Network read_network(YamlFile& file, YamlMap root) {
  Network network;
  network.nodes = root.optional_value("nodes") ? static_cast<int>(root.count("nodes", node_range)) : 1;
  const bool is_given = root.optional_value("network").has_value();
  if (network.nodes == 1) {
    if (is_given && !file.has_mistakes()) {
      root.mistake("network", "a network joins several nodes, but this file has one; add nodes, or remove network");
    }
    return network;
  }
  YamlMap map = root.map("network");
  network.link = read_link(map);
  network.nics_per_node = static_cast<int>(map.count("nics_per_node", nic_range));
  network.network_factors = rate_factors(file, "network");
  network.node_factors = RateFactors(network.network_factors.size(), 1.0);  // a cluster has the links of its nodes
  network.nics = nics_by_level(file);
  network.hop_latency = map.duration_parameter("hop_latency").value;
  read_fabric(map, network);
  if (std::optional<YamlMap> groups = map.optional_map("groups")) {
    read_groups(*groups, network);
  }
  return network;
}

/// Returns the parameters over a share of the NICs. Their rates are priors, because no table has measured such a share.
CollectiveParameters sharing_nics(const CollectiveParameters& all_nics, double share) {
  CollectiveParameters part = with_rates(all_nics, share);
  part.rate.provenance = Provenance::prior;
  each_algorithm([&](const auto& entry) {
    change_shared(part.*entry.member, [](auto& algorithm) {
      each_parameter(algorithm, NoNames{}, [](NoNames, auto& parameter) {
        if constexpr (std::is_same_v<decltype(parameter), Parameter<BytesPerSecond>&>) {
          parameter.provenance = Provenance::prior;
        }
      });
    });
  });
  return part;
}

/// Returns the number of NICs whose rate a group with this many GPUs per node reaches.
double nics_reached(const Machine& machine, int gpus, int nics) {
  return std::min(nics, machine.gpus_per_node) *
         share_of_nics({.of_group = gpus, .of_node = gpus}, {machine.gpus_per_node, nics});
}

/// Numbers of GPUs per node in two groups.
struct GroupGpus {
  int priced = 1;  ///< In the group that is priced.
  int stated = 1;  ///< In the group whose stated rates determine the priced group's.
};

/// Returns the factors on the inherited rates of a group across nodes; `across` is its rate without a factor. As in
/// with_link_rates, the links inside the nodes limit a speed-up, because they carry the same data.
RateFactors factors_across(const Network& network, const Machine& machine, const GroupGpus& gpus,
                           BytesPerSecond across) {
  RateFactors factors = network.network_factors;
  for (std::size_t level = 1; level < factors.size(); ++level) {
    factors[level] *= nics_reached(machine, gpus.stated, network.nics_per_node) /
                      nics_reached(machine, gpus.stated, network.nics[level]);
    if (gpus.priced > 1) {
      const double inside = collective_over(machine, 0, gpus.priced).rate.value.value;
      factors[level] = std::min(factors[level], std::max(network.node_factors[level], inside / across.value));
    }
  }
  return factors;
}

/// Scales the inherited rates of the network, except those of groups that the file omits. Before any rate changes,
/// collectives are also limited to the links inside the nodes.
void scale_network(YamlMap map, Network& network, Machine& machine) {
  const int gpus = machine.gpus_per_node;
  const bool has_other_nics =
      std::ranges::any_of(network.network_factors, [](double factor) { return factor != 1.0; }) ||
      std::ranges::any_of(network.nics, [&](int nics) { return nics != network.nics_per_node; });
  const auto scale_group = [&](YamlMap group_map, CollectiveParameters& group, int group_gpus) {
    if (has_other_nics && group_gpus > 1) {
      group = with_rates_up_to(std::move(group), machine.link.capacity);
    }
    scale_inherited(group_map, group, factors_across(network, machine, {group_gpus, group_gpus}, group.rate.value));
  };
  scale_inherited(map.map("peer"), machine.network->peer, network.network_factors);
  scale_group(map.map("collective"), machine.network->collective, gpus);
  for (auto& [group_gpus, group] : network.groups) {
    if (group_gpus < gpus) {  // a larger group is a mistake
      scale_group(map.map("groups").map(std::to_string(group_gpus)), group, group_gpus);
    }
  }
}

/// Returns the share of the network's rate that groups with this many GPUs per node reach: their share of the NICs, or
/// less if their share of the wires inside the node is smaller, because rings also use these wires.
double share_of_network(const Network& network, const Machine& machine, int gpus) {
  const double nic_share =
      share_of_nics({.of_group = gpus, .of_node = gpus}, {machine.gpus_per_node, network.nics_per_node});
  if (gpus == 1 || machine.group_collectives == nullptr) {
    return nic_share;
  }
  const double group_rate = collective_over(machine, 0, gpus).rate.value.value;
  const double node_rate = machine.link.collective.rate.value.value;
  return std::min(nic_share,
                  group_rate / node_rate * std::max(1.0, node_rate / network.link->collective.rate.value.value));
}

/// Returns the highest rate of a collective over this many GPUs of every node: the rate of their NICs or, with several
/// GPUs per node, that of a GPU's port inside the node if the port is slower.
BytesPerSecond limit_over_nodes(const Machine& machine, int gpus) {
  const double nics = std::min(machine.nics_per_node, gpus) * machine.network->capacity.value;
  return {gpus == 1 ? nics : std::min(nics, machine.link.capacity.value)};
}

/// Returns the estimated parameters of a group that the file omits: its share of the network. In an all-to-all each GPU
/// sends its own data, so the rate falls only if the group's share of the NICs is below its share of the GPUs. `map`
/// has the parameters of the whole network.
CollectiveParameters estimated_group(YamlMap map, const Network& network, const Machine& machine, int gpus) {
  const CollectiveParameters& whole = network.link->collective;
  const double share = share_of_network(network, machine, gpus);
  CollectiveParameters group = sharing_nics(whole, share);
  if (whole.all_to_all != nullptr) {
    const double share_of_gpus = static_cast<double>(gpus) / machine.gpus_per_node;
    group.all_to_all = with_rates(whole, std::min(1.0, share / share_of_gpus)).all_to_all;
  }
  scale_inherited(
      map, group,
      factors_across(network, machine, {.priced = gpus, .stated = machine.gpus_per_node}, group.rate.value));
  if (whole.all_to_all != nullptr) {
    group.all_to_all = with_rates_up_to(group, all_to_all_limit(machine, gpus)).all_to_all;
  }
  return group;
}

/// Gives groups with fewer GPUs per node the values of the file; groups that the file omits get their share of the
/// network.
void join_groups(YamlMap root, const Network& network, Machine& machine) {
  if (!network.link) {
    return;
  }
  auto groups = std::make_shared<std::vector<CollectiveParameters>>();
  for (int gpus = 1; gpus < machine.gpus_per_node; ++gpus) {
    const auto from_file = network.groups.find(gpus);
    groups->push_back(from_file != network.groups.end()
                          ? with_rates_up_to(from_file->second, limit_over_nodes(machine, gpus))
                          : estimated_group(root.map("network").map("collective"), network, machine, gpus));
  }
  machine.network_groups = std::move(groups);
}

/// Joins the nodes; both files must be free of mistakes. New mistakes are noted in the file that describes the network.
void join_nodes(YamlMap root, Network& network, Machine& machine, TopologyPlan& plan) {
  machine.nodes = network.nodes;
  machine.network = network.link;
  if (!network.link) {
    return;
  }
  check_ctas(root.map("network"), *network.link, machine.accelerator.sms);
  if (!network.groups.empty() && network.groups.rbegin()->first >= machine.gpus_per_node) {
    root.map("network").mistake(
        "groups",
        fmt::format("{} has {} per node, so a group has fewer; give the values of all GPUs as collective", machine.name,
                    machine.gpus_per_node == 1 ? "1 GPU" : fmt::format("{} GPUs", machine.gpus_per_node)));
  }
  if (total_gpus(machine) > max_gpus) {
    root.mistake("nodes", fmt::format("{} nodes of {} GPUs are {} GPUs; choose at most {} GPUs in all", machine.nodes,
                                      machine.gpus_per_node, total_gpus(machine), max_gpus));
  }
  if (const int used = plan.wires ? nics_of(*plan.wires) : 0; used > 0 && used != network.nics_per_node) {
    root.map("network").mistake("nics_per_node",
                                fmt::format("the GPUs of {} use {}, not {}; write nics_per_node: {}", plan.wires->file,
                                            counted(used, "NIC"), network.nics_per_node, used));
  } else {
    machine.nics_per_node = network.nics_per_node;
    scale_network(root.map("network"), network, machine);
    check_aggregate(root.map("network").map("peer"), machine.network->peer);
    check_network_rates(root, machine, network.groups);
    machine.network->collective =
        with_rates_up_to(machine.network->collective, limit_over_nodes(machine, machine.gpus_per_node));
  }
  plan.nodes = network.nodes;
  plan.nics_per_node = network.nics_per_node;
  plan.nic_rate = network.link->nominal_rate.value;
  plan.nic_latency = network.hop_latency;
  plan.fabric = network.fabric;
  plan.leaf_rate = network.leaf_rate;
}

/// Reads `host_link: {value: PCIe 5 x16, provenance: ...}`. Returns an unknown link if the file has none.
HostLink read_host_link(YamlMap root) {
  if (!root.optional_value("host_link")) {
    return {};
  }
  const std::string text = root.text_parameter("host_link").value;
  const std::optional<HostLink> link = host_link_named(text);
  if (!link && !text.empty()) {
    root.mistake("host_link", fmt::format("{} is not a link to the host; write generation and lanes as in PCIe 5 x16, "
                                          "or remove host_link if it is not PCIe",
                                          in_quotes(text)));
  }
  return link.value_or(HostLink{});
}

/// A machine and the plan of its wires, which a cluster extends.
struct Planned {
  Machine machine;
  TopologyPlan plan;
};

/// Returns the file that the field `key` of `file` names: hardware of the catalogue, or a file below the naming file's
/// own folder. Notes a mistake and returns an empty path when it is neither.
std::filesystem::path node_file(const std::filesystem::path& file, YamlMap root, std::string_view key,
                                const std::string& choice, Catalogue catalogue = Catalogue::nodes) {
  namespace fs = std::filesystem;
  try {
    if (fs::path known_file = find_config(catalogue, choice); known_file != fs::path(choice)) {
      return known_file;
    }
  } catch (const ConfigError& error) {
    root.mistake(key, error.what());
    return {};
  }
  const fs::path folder = fs::absolute(file).parent_path();
  if (leaves(folder, folder / choice)) {
    root.mistake(key, fmt::format("{} is not below the folder of this file; put it there, or name hardware of "
                                  "the catalogue",
                                  in_quotes(choice)));
    return {};
  }
  return file.parent_path() / choice;
}

/// Returns the dtypes for which this file gives a kernel_choice. Each kernel_choice replaces the base's as a whole,
/// because one file may have a table where the other has `as`.
std::vector<DType> own_kernel_choices(YamlMap root) {
  const std::optional<YamlValue> units = field_of(root.optional_value("accelerator"), "matrix_units");
  std::vector<DType> dtypes;
  for (const DType dtype : all_dtypes) {
    if (field_of(field_of(units, name_of(dtype)), "kernel_choice")) {
      dtypes.push_back(dtype);
    }
  }
  return dtypes;
}

/// Returns the fields that a file does not inherit from its base. Nothing about wires except hop_latency is inherited
/// if this file gives a different kind of topology from the base's, or a file of wires while the base has none. Notes a
/// mistake if this file has no wires and the base's wires are in a file.
std::vector<std::string_view> own_fields(YamlMap root, YamlMap base) {
  std::vector<std::string_view> own_keys{"schema", "name", "extends", "known_as"};
  const std::optional<YamlValue> wires = root.optional_value("topology");
  const std::optional<YamlValue> base_wires = base.optional_value("topology");
  if (!text_in(base_wires, "file").empty() && text_in(wires, "file").empty() && text_in(wires, "kind").empty()) {
    root.mistake("extends", fmt::format("{} reads its wires from a file, which is not inherited; give a topology here",
                                        in_quotes(root.text("extends"))));
  }
  const std::string kind = text_in(wires, "kind");
  const bool has_file = !text_in(wires, "file").empty();
  const bool other_kind = !kind.empty() && kind != text_in(base_wires, "kind");
  if (other_kind || (has_file && text_in(base_wires, "file").empty())) {
    own_keys.insert(own_keys.end(),
                    {"topology.kind", "topology.file", "topology.gpus_per_bridge", "topology.bridges_per_root",
                     "topology.bridge_rate", "topology.root_rate", "topology.nvlink_rate", "topology.pcie_rate"});
  }
  return own_keys;
}

/// Returns the file that this one extends, as in `extends: h100-sxm`; nullopt when it extends none. Throws ConfigError
/// with all mistakes in the file so far.
std::optional<std::filesystem::path> extended_file(YamlFile& file, YamlMap root, Catalogue catalogue, int depth) {
  constexpr int longest_chain = 8;
  if (!root.optional_value("extends")) {
    return std::nullopt;
  }
  const std::string choice = root.text("extends");
  std::filesystem::path path = choice.empty() ? "" : node_file(file.path(), root, "extends", choice, catalogue);
  if (depth == longest_chain) {
    root.mistake("extends",
                 fmt::format("the chain of 'extends' has a cycle or more than {} files; name a file that extends none",
                             longest_chain));
  }
  if (const auto sized = catalogue == Catalogue::hardware ? sized_cluster(choice) : std::nullopt) {
    root.mistake("extends", fmt::format("{} is not a file; name {}, and write nodes: {}", in_quotes(choice),
                                        sized->name, sized->nodes));
  }
  if (file.has_mistakes()) {
    for (const std::string& key : root.keys()) {
      root.optional_value(key);  // marks the key as known
    }
    file.finish();
  }
  return path;
}

/// Fills the fields that a file omits with those of the file that it extends. The base is read first, so its mistakes
/// are reported under its own name. Returns the file that gives each field `kernel_choice`, because a path in the field
/// starts at the folder of that file.
NamingFiles take_from_base(YamlFile& file, YamlMap root, int depth) {
  NamingFiles naming_files;
  naming_files.fill(file.path());
  const std::optional<std::filesystem::path> path = extended_file(file, root, Catalogue::nodes, depth);
  if (!path) {
    return naming_files;
  }
  YamlFile base(*path);
  YamlMap base_root = base.root();
  base_root.schema(hardware_schema);
  naming_files = take_from_base(base, base_root, depth + 1);
  std::vector<std::string> kernel_choices;
  for (const DType dtype : own_kernel_choices(root)) {
    kernel_choices.push_back(fmt::format("accelerator.matrix_units.{}.kernel_choice", name_of(dtype)));
    naming_files[index_of(dtype)] = file.path();
  }
  std::vector<std::string_view> own_keys = own_fields(root, base_root);
  own_keys.insert(own_keys.end(), kernel_choices.begin(), kernel_choices.end());
  file.extend(base, root.optional_value("extends")->place(), own_keys);
  return naming_files;
}

Planned read_hardware(YamlFile& file) {
  YamlMap root = file.root();
  root.schema(hardware_schema);
  const NamingFiles naming_files = take_from_base(file, root, 0);
  Planned planned;
  Machine& machine = planned.machine;
  machine.name = root.text("name");
  read_known_as(root, machine.known_as);
  machine.executor = root.optional_value("executor") ? root.text("executor") : "";
  machine.gpus_per_node = static_cast<int>(root.count("gpus_per_node", node_size_range));
  machine.accelerator = read_accelerator(naming_files, root.map("accelerator"));
  machine.link = read_link(root.map("link"));
  const RateFactors factors = rate_factors(file, "link");
  scale_inherited(root.map("link").map("peer"), machine.link.peer, factors);
  scale_inherited(root.map("link").map("collective"), machine.link.collective, factors);
  planned.plan = read_node_plan(file, root, machine, factors);
  planned.plan.host_link = read_host_link(root);
  Network network = read_network(file, root);
  network.node_factors = factors;
  if (!file.has_mistakes()) {
    check_ctas(root.map("link"), machine.link, machine.accelerator.sms);
    check_wire_rate(root, machine, planned.plan);
    join_nodes(root, network, machine, planned.plan);
  }
  if (!file.has_mistakes()) {
    check_aggregate(root.map("link").map("peer"), machine.link.peer);
    check_node_rates(root, machine);
    machine.link.collective = with_rates_up_to(machine.link.collective, machine.link.capacity);
  }
  if (!file.has_mistakes()) {
    wire_up(root, machine, planned.plan);
    join_groups(root, network, machine);
  }
  if (!file.has_mistakes()) {
    check_node_wires(root, machine, planned.plan);
  }
  file.finish();
  return planned;
}

/// Works like take_from_base, for a cluster that extends a cluster. Returns the file that gives the field `hardware`,
/// because a path in it starts at the folder of that file.
std::filesystem::path take_from_cluster(YamlFile& file, YamlMap root, int depth) {
  const bool names_hardware = root.has("hardware");
  const std::optional<std::filesystem::path> path = extended_file(file, root, Catalogue::hardware, depth);
  if (!path) {
    return file.path();
  }
  YamlFile base(*path);
  YamlMap base_root = base.root();
  base_root.schema(cluster_schema);
  const std::filesystem::path naming_file = take_from_cluster(base, base_root, depth + 1);
  file.extend(base, root.optional_value("extends")->place(), own_fields(root, base_root));
  return names_hardware ? std::filesystem::path(file.path()) : naming_file;
}

/// Reads a cluster; `sized` replaces its number of nodes.
Machine read_cluster(YamlFile& file, YamlMap root, const std::optional<SizedCluster>& sized,
                     std::string_view sized_name) {
  const std::filesystem::path naming_file = take_from_cluster(file, root, 0);
  const std::string name = root.text("name");
  const std::string hardware = root.text("hardware");
  std::vector<std::string> own_names;
  read_known_as(root, own_names);
  Network network = read_network(file, root);
  if (sized && network.nodes > 1) {
    network.nodes = sized->nodes;
  }
  const bool has_wires = root.optional_map("topology").has_value();
  const std::filesystem::path path = hardware.empty() ? "" : node_file(naming_file, root, "hardware", hardware);
  if (file.has_mistakes()) {
    file.finish();
  }
  YamlFile nodes(path);
  auto [machine, plan] = read_hardware(nodes);
  machine.name = sized ? std::string(sized_name) : name;
  const bool is_known = path == find_config(Catalogue::nodes, hardware);
  machine.node_name = from_anywhere(Catalogue::nodes, is_known ? hardware : path.string());
  machine.known_as = own_names;
  if (has_wires) {
    const HostLink host_link = plan.host_link;
    plan = read_node_plan(file, root, machine, network.node_factors);
    plan.host_link = host_link;
  }
  if (machine.nodes > 1) {
    root.mistake("hardware",
                 fmt::format("{} has several nodes already; name hardware of one node", in_quotes(hardware)));
  } else {
    join_nodes(root, network, machine, plan);
  }
  if (!file.has_mistakes()) {
    wire_up(root, machine, plan);
    join_groups(root, network, machine);
  }
  if (!file.has_mistakes() && has_wires) {
    check_node_wires(root, machine, plan);
  }
  file.finish();
  return std::move(machine);
}

}  // namespace

Machine load_machine(std::string_view name_or_path) {
  YamlFile file(find_config(Catalogue::hardware, name_or_path));
  YamlMap root = file.root();
  const std::optional<YamlValue> schema = root.optional_value("schema");
  if (schema && schema->kind() == YamlKind::scalar && schema->text() == cluster_schema) {
    const bool is_path = name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".yaml");
    return read_cluster(file, root, is_path ? std::nullopt : sized_cluster(name_or_path), name_or_path);
  }
  return read_hardware(file).machine;
}

}  // namespace commfuse
