// SPDX-License-Identifier: Apache-2.0
#include "validate/health/expected_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "validate/health/check_list.h"

namespace commfuse::validate {

namespace {

bool is_gpu(const PciPath& path) { return path.device().is_nvidia || path.device().is_amd; }

/// Returns true if the driver's name of a GPU contains the model: "NVIDIA H20-3e" contains "H20", but "NVIDIA H200"
/// does not, and "NVIDIA GB200" does not contain "B200".
bool is_model(std::string_view name, std::string_view model) {
  for (std::size_t at = name.find(model); at != std::string_view::npos; at = name.find(model, at + 1)) {
    const std::string_view rest = name.substr(at + model.size());
    const bool begins_a_word = at == 0 || std::isalnum(static_cast<unsigned char>(name[at - 1])) == 0;
    if (begins_a_word && (rest.empty() || std::isdigit(static_cast<unsigned char>(rest.front())) == 0)) {
      return true;
    }
  }
  return false;
}

std::size_t count_of_gpus(const NodeFacts& node, const ManagementFacts& management) {
  const auto on_bus = static_cast<std::size_t>(std::count_if(node.gpus.begin(), node.gpus.end(), is_gpu));
  return management.gpus.empty() ? on_bus : management.gpus.size();
}

void look_at_gpus(const ExpectedNode& expected, const NodeFacts& node, const ManagementFacts& management,
                  CheckList& list) {
  const std::size_t gpus = count_of_gpus(node, management);
  const auto expected_gpus = static_cast<std::size_t>(expected.gpus);
  if (gpus < expected_gpus) {
    list.bad({.found = fmt::format("{} of {} GPUs", gpus, expected_gpus),
              .wrong = fmt::format("{} has {}", expected.machine, expected_gpus),
              .remedy = "look for the missing GPU in lspci and for Xid 79 in dmesg; reboot, reseat or replace it"});
  } else if (gpus > expected_gpus && expected_gpus > 0) {
    list.warn({.found = fmt::format("{} GPUs", gpus),
               .wrong = fmt::format("{} has {}", expected.machine, expected_gpus),
               .remedy = "name the actual machine with --expect"});
  }
  for (const GpuFacts& gpu : management.gpus) {
    if (!gpu.name.empty() && !expected.gpu.empty() && !is_model(gpu.name, expected.gpu)) {
      list.bad({.subject = gpu.address,
                .found = gpu.name,
                .wrong = fmt::format("{} has {}", expected.machine, expected.gpu),
                .remedy = "replace the GPU, or name the actual machine with --expect"});
    }
    if (expected.has_nvlink && gpu.links_up == 0) {
      list.bad({.subject = gpu.address,
                .found = "no NVLink is up",
                .wrong = fmt::format("{} has NVLink", expected.machine),
                .remedy = "run nvidia-smi nvlink --status, and look at nvidia-fabricmanager"});
    }
  }
}

/// Compares the slowest step of each path with the expectation, by the step's highest speed and its current width,
/// because an idle GPU lowers its speed but not its width.
void look_at_links(const ExpectedNode& expected, const NodeFacts& node, CheckList& list) {
  if (expected.pcie_width == 0) {
    return;
  }
  for (const PciPath& path : node.gpus) {
    if (!is_gpu(path)) {
      continue;
    }
    double speed = expected.pcie_speed;
    int width = expected.pcie_width;
    for (const PciFunction& step : path.steps) {
      speed = std::min(speed, step.max_speed.value_or(speed));
      width = std::min(width, step.width.value_or(width));
    }
    if (speed < expected.pcie_speed || width < expected.pcie_width) {
      list.bad({.subject = path.device().address,
                .found = fmt::format("{} x{}", generation_in_words(speed), width),
                .wrong = fmt::format("{} has {} x{}", expected.machine, generation_in_words(expected.pcie_speed),
                                     expected.pcie_width),
                .remedy = "reseat the GPU and its riser, and set the slot's generation to auto in the BIOS"});
    }
  }
}

void look_at_nics(const ExpectedNode& expected, const NodeFacts& node, CheckList& list) {
  if (expected.nics == 0) {
    return;
  }
  constexpr double rounding = 0.98;  // a machine's file may round its rate up
  const auto fast = std::count_if(node.ports.begin(), node.ports.end(), [&](const RdmaPort& port) {
    const bool is_active = port.state.find("ACTIVE") != std::string::npos;
    return is_active && port.gigabits.value_or(0.0) >= rounding * expected.nic_gigabits;
  });
  if (fast < expected.nics) {
    list.bad({.found = fmt::format("{} of {} active ports of {:.0f} Gb/s or more", fast, expected.nics,
                                   expected.nic_gigabits),
              .wrong = fmt::format("{} has {} of {:.0f} Gb/s", expected.machine,
                                   counted(static_cast<std::size_t>(expected.nics), "NIC"), expected.nic_gigabits),
              .remedy = "run ibstat; look at cables, transceivers and the switch's ports"});
  }
}

}  // namespace

std::vector<HealthCheck> expected_checks(const ExpectedNode& expected, const NodeFacts& node,
                                         const ManagementFacts& management) {
  CheckList list{std::string(expected_check)};
  look_at_gpus(expected, node, management, list);
  look_at_links(expected, node, list);
  look_at_nics(expected, node, list);
  list.otherwise_ok(fmt::format("the node matches {}", expected.machine));
  return list.take();
}

}  // namespace commfuse::validate
