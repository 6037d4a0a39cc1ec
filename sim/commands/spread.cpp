// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/spread.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/field.h"
#include "model/config_error.h"
#include "model/text/counted.h"
#include "model/text/quantity.h"
#include "sim/point/request.h"

namespace commfuse::sim {

namespace {

bool is_given(const Settings& settings, std::string_view key) {
  return settings.at(*find_field(key)).origin.source != Source::preset;
}

void set_by_gpus(Settings& settings, std::string_view key, std::string text) {
  settings.put(*find_field(key), {std::move(text), {Source::flag, "--gpus"}});
}

/// Returns the cluster of the catalogue whose nodes are this machine, preferably a DGX; empty if there is none.
std::string cluster_of(const Machine& machine) {
  std::vector<std::string> clusters;
  const std::vector<std::string> nodes = known_names(Catalogue::nodes);
  for (const std::string& name : known_names(Catalogue::hardware)) {
    const bool is_node = std::find(nodes.begin(), nodes.end(), name) != nodes.end();
    if (!is_node && load_machine(name).node_name == machine.name) {
      clusters.push_back(name);
    }
  }
  const auto dgx =
      std::find_if(clusters.begin(), clusters.end(), [](const auto& name) { return name.starts_with("dgx-"); });
  return clusters.empty() ? "" : dgx != clusters.end() ? *dgx : clusters.front();
}

/// Sets the hardware to a cluster with as many nodes as the GPUs need.
void spread_over_nodes(std::int64_t gpus, Settings& settings) {
  const std::string& name = settings.text("hardware");
  const Machine machine = load_machine(name);
  const std::int64_t nodes = (gpus + machine.gpus_per_node - 1) / machine.gpus_per_node;
  const std::int64_t machine_gpus = std::int64_t{machine.nodes} * machine.gpus_per_node;
  if (nodes <= 1 || nodes == machine.nodes) {
    return;
  }
  const bool is_file = name.find('/') != std::string::npos || name.ends_with(".yaml");
  if (is_file) {
    const bool is_resized = settings.text("scope") == "step" && machine.network.has_value();
    if (!is_resized && machine_gpus < gpus) {
      throw ConfigError(fmt::format("--gpus: {} has {}, not {}; set nodes: {} in a cluster file of this machine",
                                    machine.name, counted(machine_gpus, "GPU"), gpus, nodes));
    }
    return;  // Whole models use as many nodes of a cluster as they need.
  }
  const std::string cluster = machine.nodes > 1 ? name : cluster_of(machine);
  if (cluster.empty()) {
    throw ConfigError(
        fmt::format("--gpus: {} GPUs need {} nodes of {}, and no such cluster is known; choose another --hardware "
                    "(commfuse-sim list clusters)",
                    gpus, nodes, machine.name));
  }
  const std::string resized_cluster = fmt::format("{}-x{}", cluster.substr(0, cluster.rfind("-x")), nodes);
  const std::vector<std::string> known = known_names(Catalogue::hardware);
  if (sized_cluster(resized_cluster) || std::find(known.begin(), known.end(), resized_cluster) != known.end()) {
    set_by_gpus(settings, "hardware", resized_cluster);
  } else if (machine_gpus < gpus) {
    throw ConfigError(fmt::format("--gpus: {} has {}, not {}; choose fewer, or a cluster of the catalogue",
                                  machine.name, counted(machine_gpus, "GPU"), gpus));
  }
}

std::string spread_training(std::int64_t gpus, Settings& settings) {
  if (!is_given(settings, "ranks") && gpus < settings.count("ranks")) {
    set_by_gpus(settings, "ranks", fmt::format("{}", gpus));
  }
  const std::int64_t replica = settings.count("ranks") * settings.count("parallel.pipeline") *
                               settings.count("parallel.context") * settings.count("parallel.ulysses");
  if (gpus % replica != 0) {
    throw ConfigError(
        fmt::format("--gpus: {} {} not a multiple of the {} of one replica (tensor x pipeline x context x "
                    "ulysses); choose a multiple, or fewer ranks",
                    counted(gpus, "GPU"), gpus == 1 ? "is" : "are", replica));
  }
  const std::int64_t replicas = gpus / replica;
  if (is_given(settings, "parallel.data") && settings.count("parallel.data") != replicas) {
    throw ConfigError(fmt::format("--gpus: {} {} {} of {}, not the {} of --data-parallel; remove one",
                                  counted(gpus, "GPU"), gpus == 1 ? "is" : "are", counted(replicas, "replica"), replica,
                                  settings.count("parallel.data")));
  }
  set_by_gpus(settings, "parallel.data", fmt::format("{}", replicas));
  std::string words =
      fmt::format("{} of {}", counted(replicas, "replica"), counted(settings.count("ranks"), "tensor rank"));
  if (!is_given(settings, "batch")) {
    set_by_gpus(settings, "batch", fmt::format("{}", replicas * settings.count("step.micro_batch")));
    words += fmt::format(", batch {}", settings.text("batch"));
  }
  return words;
}

std::string spread_ranks(std::int64_t gpus, Settings& settings) {
  if (is_given(settings, "ranks") && settings.count("ranks") != gpus) {
    throw ConfigError(
        fmt::format("--gpus: scope {} has only tensor ranks, and {} {} not the {} of --ranks; remove one, or "
                    "choose scope step",
                    settings.text("scope"), counted(gpus, "GPU"), gpus == 1 ? "is" : "are", settings.count("ranks")));
  }
  set_by_gpus(settings, "ranks", fmt::format("{}", gpus));
  return counted(gpus, "tensor rank");
}

}  // namespace

std::int64_t gpus_in(const std::string& text, std::string_view example) {
  constexpr std::int64_t max_gpus = std::int64_t{1} << 20;
  const std::optional<std::int64_t> gpus = parse_count(text);
  if (!gpus || *gpus < 1 || *gpus > max_gpus) {
    throw ConfigError(fmt::format("--gpus: '{}' is not a whole number from 1 to {}; write one, such as {}", text,
                                  format_count(max_gpus), example));
  }
  return *gpus;
}

std::string cluster_of_nodes(const std::string& hardware) {
  const Machine machine = load_machine(hardware);
  const std::string cluster = machine.nodes > 1 ? "" : cluster_of(machine);
  return cluster.empty() ? hardware : cluster;
}

std::string spread_over(const std::string& text, Settings& settings) {
  const std::int64_t gpus = gpus_in(text, "64");
  const std::string ranks =
      settings.text("scope") == "step" ? spread_training(gpus, settings) : spread_ranks(gpus, settings);
  spread_over_nodes(gpus, settings);
  const Machine machine = load_machine(settings.text("hardware"));
  const std::int64_t nodes = (gpus + machine.gpus_per_node - 1) / machine.gpus_per_node;
  return fmt::format("note: {}: {} on {} of {} ({})\n", counted(gpus, "GPU"), ranks, counted(nodes, "node"),
                     machine.gpus_per_node, settings.text("hardware"));
}

}  // namespace commfuse::sim
