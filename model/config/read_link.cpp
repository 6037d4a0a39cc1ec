// SPDX-License-Identifier: Apache-2.0
#include "model/config/read_link.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "model/config/read_described.h"
#include "model/config/read_fit_scope.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

constexpr Range<std::int64_t> cta_range{0, 4096};
constexpr Range<std::int64_t> channel_range{1, 64};
constexpr double nccl_estimate_error = 0.3;  // against the public tables of A100, H100 and B200 nodes
constexpr BytesPerSecond unlimited{1e15};    // NCCL's estimates do not include the copy of a rank's own share.
constexpr double nvls_share = 7.0 / 8.0;     // share of the estimated rate, for eight ranks

PeerParameters read_peer(YamlMap map) {
  PeerParameters peer;
  read_described(map, peer);
  if (!map.optional_value("aggregate_rate")) {
    peer.aggregate_rate = peer.rate;
  }
  peer.fit = read_fit_scope(map);
  return peer;
}

template <class Kind>
Kind read_kind(YamlMap map, std::string_view key, std::optional<Kind> (*named)(std::string_view),
               std::string_view choices) {
  const std::string word = map.text(key);
  const std::optional<Kind> kind = named(word);
  if (!kind && !word.empty()) {
    map.mistake(key, fmt::format("{} is not known to NCCL's tuner; choose {}", in_quotes(word), choices));
  }
  return kind.value_or(Kind{});
}

/// Reads NCCL's parameters for trees of nodes; omitted parameters keep the values of NCCL 2.28.9.
void read_tree_tuning(YamlMap map, NcclTuning& tuning) {
  if (map.optional_value("tree_channels")) {
    tuning.tree_channels = static_cast<int>(map.count("tree_channels", channel_range));
  }
  if (map.optional_value("ll128_across")) {
    tuning.ll128_across = map.boolean("ll128_across");
  }
  if (map.optional_value("amd_hosts")) {
    tuning.amd_hosts = map.boolean("amd_hosts");
  }
  if (map.optional_value("tree_step")) {
    tuning.tree_step = map.duration("tree_step");
  }
  if (map.optional_value("tree_node_step")) {
    tuning.tree_node_step = map.duration("tree_node_step");
  }
}

NcclTuning read_tuning(YamlMap map) {
  NcclTuning tuning;
  tuning.generation = read_kind(map, "generation", nccl_generation_named, "volta, ampere, hopper or blackwell");
  tuning.wire = read_kind(map, "wire", nccl_wire_named, "nvlink, pcie, or network between nodes");
  tuning.channels = static_cast<int>(map.count("channels", channel_range));
  tuning.channel_rate = map.bandwidth_parameter("channel_rate").value;
  if (map.optional_value("rccl")) {
    tuning.rccl = map.boolean("rccl");
  }
  if (tuning.wire == NcclWire::network) {
    read_tree_tuning(map, tuning);
  }
  return tuning;
}

/// Returns NCCL's own estimate as a prior.
RingParameters estimated(const NcclTuning& tuning, NcclKernel kernel) {
  const NcclEstimate estimate = nccl_estimate(tuning, kernel).value_or(NcclEstimate{.rate = tuning.channel_rate});
  const auto parameter = [](auto value) {
    return Parameter<decltype(value)>{
        .value = value, .standard_error = nccl_estimate_error, .source = "NCCL 2.28.9, src/graph/tuning.cc"};
  };
  return {{.base_latency = parameter(estimate.base_latency),
           .step_latency = parameter(estimate.step_latency),
           .rate = parameter(estimate.rate),
           .own_copy_rate = parameter(unlimited),
           .ramp_size = parameter(Bytes{0})}};
}

NcclKernels read_nccl(YamlMap map) {
  NcclKernels nccl;
  nccl.tuning = read_tuning(map);
  if (nccl.tuning.wire == NcclWire::network && !map.has("ll")) {
    map.mistake("", "NCCL's estimate of LL between nodes depends on the number of nodes; add ll");
  }
  if (std::optional<YamlMap> ll = map.optional_map("ll")) {
    read_described(*ll, nccl.ll, key_of_ramp);
  } else {
    nccl.ll = estimated(nccl.tuning, NcclKernel::ll);
  }
  if (std::optional<YamlMap> ll128 = map.optional_map("ll128")) {
    read_described(*ll128, nccl.ll128.emplace());
  } else if (nccl_estimate(nccl.tuning, NcclKernel::ll128)) {
    nccl.ll128 = estimated(nccl.tuning, NcclKernel::ll128);
  }
  if (std::optional<YamlMap> nvls = map.optional_map("nvls")) {
    read_described(*nvls, nccl.nvls.emplace());
  } else if (nccl_estimate(nccl.tuning, NcclKernel::nvls)) {
    const RingParameters prior = estimated(nccl.tuning, NcclKernel::nvls);
    nccl.nvls = SwitchParameters{prior.base_latency, prior.rate, prior.ramp_size};
    nccl.nvls->rate.value.value *= nvls_share;
  }
  return nccl;
}

AllToAllParameters read_all_to_all(YamlMap map) {
  AllToAllParameters direct;
  direct.small_up_to = map.size_parameter("small_up_to");
  read_described(map.map("small"), direct.small, key_of_ramp);
  read_described(map.map("large"), direct.large);
  if (map.has("fit")) {
    direct.fit = read_fit_scope(map);
  }
  return direct;
}

}  // namespace

CollectiveParameters read_collective(YamlMap map) {
  CollectiveParameters collective;
  if (std::optional<YamlMap> nccl = map.optional_map("nccl")) {
    collective.nccl = std::make_shared<const NcclKernels>(read_nccl(*nccl));
  }
  if (collective.nccl == nullptr || map.optional_value("base_latency")) {
    read_described(map, static_cast<RingParameters&>(collective));
  } else {
    static_cast<RingParameters&>(collective) = estimated(collective.nccl->tuning, NcclKernel::simple);
  }
  if (std::optional<YamlMap> direct = map.optional_map("all_to_all")) {
    collective.all_to_all = std::make_shared<const AllToAllParameters>(read_all_to_all(*direct));
  }
  each_algorithm([&](const auto& entry) {
    if (const std::optional<YamlMap> given = map.optional_map(entry.key)) {
      AlgorithmOf<decltype(entry)> algorithm;
      read_described(*given, algorithm);
      collective.*entry.member = std::make_shared<const AlgorithmOf<decltype(entry)>>(std::move(algorithm));
    }
  });
  collective.ctas = map.count_parameter("ctas", cta_range);
  collective.issue_cost = map.duration_parameter("issue_cost");
  collective.fit = read_fit_scope(map);
  if (nccl_chooses_trees(collective) && collective.tree == nullptr) {
    map.mistake("nccl", "with tree_channels, NCCL may choose a tree; add tree, or remove tree_channels");
  }
  return collective;
}

Link read_link(YamlMap map) {
  Link link;
  link.name = map.text("name");
  link.nominal_rate = map.bandwidth_parameter("nominal_rate");
  link.capacity = link.nominal_rate.value;
  link.peer = read_peer(map.map("peer"));
  link.collective = read_collective(map.map("collective"));
  return link;
}

}  // namespace commfuse
