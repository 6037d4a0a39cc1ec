// SPDX-License-Identifier: Apache-2.0
#include "sim/expect/thresholds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "model/config_error.h"
#include "model/expect/copies.h"
#include "model/text/suggest.h"

namespace commfuse::expect {

namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20U;
constexpr std::int64_t gib = std::int64_t{1} << 30U;
constexpr std::array collectives{LinkOp::all_reduce, LinkOp::all_gather, LinkOp::reduce_scatter, LinkOp::all_to_all};

/// Returns GB/s as checkers read it. Rounds down, because a floor that is too low raises no false alarm.
std::string gigabytes(BytesPerSecond rate) { return fmt::format("{:.1f}", std::floor(rate.value / 1e8) / 10.0); }

/// Returns a message between all GPUs of the machine.
Message whole_machine(const Machine& machine, LinkOp op, std::int64_t bytes) {
  return {.op = op, .gpus = total_gpus(machine), .nodes = machine.nodes, .bytes = {bytes}};
}

Message one_node(const Machine& machine, LinkOp op, std::int64_t bytes) {
  return {.op = op, .gpus = machine.gpus_per_node, .nodes = 1, .bytes = {bytes}};
}

BytesPerSecond floor_of(const Expectation& expectation, const Message& message, double false_alarms) {
  return bus_bandwidth(message, range_of(expectation.of(message), false_alarms).slow);
}

std::string origin(const Expectation& expectation, double false_alarms) {
  return fmt::format("# commfuse-sim expect --hardware {}: one healthy measurement in {:.0f} is below a floor\n",
                     expectation.machine().name, std::round(1.0 / false_alarms));
}

/// Throws ConfigError if a node has a single GPU, because checks in one node measure it with its peers.
void require_several_gpus(const Machine& machine, std::string_view form) {
  if (machine.gpus_per_node < 2) {
    throw ConfigError(
        fmt::format("--thresholds {}: a node of {} has one GPU; use a machine with more", form, machine.name));
  }
}

/// Writes commands of nccl-tests, which compares the mean of all rows, in and out of place, with 0.9 times the variable
/// NCCL_TESTS_MIN_BW (src/common.cu). The commands run a single size, so its floor is a safe limit for that mean.
std::string nccl_tests(const Expectation& expectation, double false_alarms) {
  constexpr double slack = 0.9;
  const Machine& machine = expectation.machine();
  require_several_gpus(machine, "nccl-tests");
  std::string text = origin(expectation, false_alarms) +
                     "# nccl-tests fails below 0.9 times NCCL_TESTS_MIN_BW, so it is the floor / 0.9\n";
  for (const LinkOp op : collectives) {
    const Message message = machine.nodes == 1 ? one_node(machine, op, 8 * gib) : whole_machine(machine, op, 8 * gib);
    const BytesPerSecond floor = floor_of(expectation, message, false_alarms);
    const std::string program = op == LinkOp::all_to_all ? "alltoall" : std::string(name_of(op));
    const std::string gpus = machine.nodes == 1 ? fmt::format(" -g {}", machine.gpus_per_node) : "";
    text +=
        fmt::format("NCCL_TESTS_MIN_BW={} {}_perf -b 8G -e 8G{}\n", gigabytes({floor.value / slack}), program, gpus);
  }
  return text;
}

/// Writes values for the Helm chart of NVSentinel's preflight checks (NVIDIA/NVSentinel, charts/preflight/values.yaml).
/// The loopback check runs all_reduce_perf in one node with TEST_SIZE_MB; the all-reduce check runs it across nodes
/// with MESSAGE_SIZES.
std::string nvsentinel(const Expectation& expectation, double false_alarms) {
  const Machine& machine = expectation.machine();
  require_several_gpus(machine, "nvsentinel");
  std::string text = origin(expectation, false_alarms) +
                     "# Helm replaces lists whole: merge these env entries into the initContainers of your values.\n"
                     "initContainers:\n";
  text += fmt::format(
      "  - name: preflight-nccl-loopback\n"
      "    env:\n"
      "      - name: BW_THRESHOLD_GBPS\n"
      "        value: \"{}\"\n"
      "      - name: TEST_SIZE_MB\n"
      "        value: \"256\"\n",
      gigabytes(floor_of(expectation, one_node(machine, LinkOp::all_reduce, 256 * mib), false_alarms)));
  if (machine.nodes > 1) {
    text += fmt::format(
        "  - name: preflight-nccl-allreduce\n"
        "    env:\n"
        "      - name: BW_THRESHOLD_GBPS\n"
        "        value: \"{}\"\n"
        "      - name: MESSAGE_SIZES\n"
        "        value: \"4G\"\n",
        gigabytes(floor_of(expectation, whole_machine(machine, LinkOp::all_reduce, 4 * gib), false_alarms)));
  }
  return text;
}

/// Writes a fragment of a recipe overlay (NVIDIA/aicr, recipes/overlays/h100-eks-training.yaml). The check reads the
/// out-of-place bus bandwidth of the largest message, 16 GiB
/// (validators/performance/nccl_all_reduce_bw_constraint.go).
std::string aicr(const Expectation& expectation, double false_alarms) {
  const Machine& machine = expectation.machine();
  if (machine.nodes < 2) {
    throw ConfigError(
        fmt::format("--thresholds aicr: its check needs two nodes, and {} is one; use a cluster such as dgx-h100-x2",
                    machine.name));
  }
  return origin(expectation, false_alarms) +
         fmt::format(
             "# For {} nodes with {} GPUs each; put this below spec: in your overlay.\n"
             "validation:\n"
             "  performance:\n"
             "    checks:\n"
             "      - nccl-all-reduce-bw\n"
             "    constraints:\n"
             "      - name: nccl-all-reduce-bw\n"
             "        value: \">= {}\"\n",
             machine.nodes, machine.gpus_per_node,
             gigabytes(floor_of(expectation, whole_machine(machine, LinkOp::all_reduce, 16 * gib), false_alarms)));
}

/// Writes a rule file for `sb result diagnosis` (microsoft/superbenchmark,
/// superbench/analyzer/rules/diagnosis_rules.yaml; docs/user-tutorial/benchmarks/micro-benchmarks.md describes the
/// metrics of nccl-bw).
std::string superbench(const Expectation& expectation, double false_alarms) {
  const Machine& machine = expectation.machine();
  require_several_gpus(machine, "superbench");
  std::string text = origin(expectation, false_alarms) + "version: v0.5\nsuperbench:\n  rules:\n";
  constexpr std::array words{std::pair{LinkOp::all_reduce, "allreduce"}, std::pair{LinkOp::all_gather, "allgather"},
                             std::pair{LinkOp::reduce_scatter, "reducescatter"},
                             std::pair{LinkOp::all_to_all, "alltoall"}};
  for (const auto& [op, word] : words) {
    for (const std::int64_t bytes : {64 * mib, gib, 8 * gib}) {
      text += fmt::format(
          "    nccl_{0}_{1}_rule:\n"
          "      function: value\n"
          "      criteria: 'lambda x:x<{2}'\n"
          "      categories: NCCL\n"
          "      metrics:\n"
          "        - nccl-bw:*.*/{0}_{1}_busbw\n",
          word, bytes, gigabytes(floor_of(expectation, one_node(machine, op, bytes), false_alarms)));
    }
  }
  return text;
}

/// Writes configuration lines for NHC with Azure's tests (Azure/azurehpc-health-checks, conf/nd96isr_h100_v5.conf).
/// check_nccl_allreduce compares nccl-tests' average bus bandwidth of one size in a node
/// (customTests/azure_nccl_allreduce.nhc). check_gpu_bw compares every cell of nvbandwidth's host_to_device_memcpy_ce
/// and device_to_host_memcpy_ce with the first number of its line and, on machines with NVLink, every cell of
/// device_to_device_memcpy_read_ce with the second number (customTests/azure_gpu_bandwidth.nhc).
std::string azure_nhc(const Expectation& expectation, double false_alarms) {
  const Machine& machine = expectation.machine();
  require_several_gpus(machine, "azure-nhc");
  std::string text = origin(expectation, false_alarms);
  const CopyFloors copies = copy_floors(machine, false_alarms);
  const bool has_nvlink = machine.plan == nullptr || machine.plan->kind != NodeKind::pcie_tree;
  if (copies.with_host.value > 0.0) {
    text += fmt::format(" * || check_gpu_bw {}{}\n", gigabytes(copies.with_host),
                        has_nvlink ? " " + gigabytes(copies.between_gpus) : "");
  } else {
    text += "# check_gpu_bw: the rate between host and GPUs is not known for this machine\n";
  }
  return text +
         fmt::format(" * || check_nccl_allreduce {} 1 16G\n",
                     gigabytes(floor_of(expectation, one_node(machine, LinkOp::all_reduce, 16 * gib), false_alarms)));
}

/// Writes Helm values for Google's scanner (GoogleCloudPlatform/cluster-health-scanner,
/// deploy/helm/health_checks/nccl_healthcheck/a3ultra.yaml). Its check runs all_gather_perf across NHOSTS nodes,
/// truncates the average bus bandwidth to a whole number and compares the result with BANDWIDTH_THRESHOLD, a whole
/// number (src/nccl_healthcheck/nccl_startup.py).
std::string google_chs(const Expectation& expectation, double false_alarms) {
  const Machine& machine = expectation.machine();
  if (machine.nodes < 2) {
    throw ConfigError(fmt::format(
        "--thresholds google-chs: its check needs two nodes, and {} is one; use a cluster such as dgx-h100-x2",
        machine.name));
  }
  const BytesPerSecond floor = floor_of(expectation, whole_machine(machine, LinkOp::all_gather, 8 * gib), false_alarms);
  return origin(expectation, false_alarms) + fmt::format(
                                                 "health_check:\n"
                                                 "  env:\n"
                                                 "    BANDWIDTH_THRESHOLD: \"{:.0f}\"\n"
                                                 "    START_MESSAGE_SIZE: \"8G\"\n"
                                                 "    END_MESSAGE_SIZE: \"8G\"\n"
                                                 "    NHOSTS: \"{}\"\n"
                                                 "    nr: \"{}\"\n",
                                                 std::floor(floor.value / 1e9), machine.nodes, machine.gpus_per_node);
}

/// Writes alerting rules for the output of `commfuse-validate verdict -o prometheus`.
std::string prometheus(const Expectation& expectation, double false_alarms) {
  const Machine& machine = expectation.machine();
  require_several_gpus(machine, "prometheus");
  std::string text = origin(expectation, false_alarms) + "groups:\n  - name: commfuse-bus-bandwidth\n    rules:\n";
  for (const LinkOp op : collectives) {
    const Message message = one_node(machine, op, gib);
    text += fmt::format(
        "      - alert: CommfuseBusBandwidthLow\n"
        "        expr: commfuse_bus_bandwidth_bytes_per_second{{collective=\"{0}\",ranks=\"{1}\",nodes=\"1\","
        "bytes=\"{2}\"}} < {3:.0f}\n"
        "        labels:\n"
        "          severity: warning\n"
        "        annotations:\n"
        "          summary: \"{{{{ $labels.node }}}}: {0} of {2} bytes is below what healthy nodes reach\"\n",
        name_of(op), message.gpus, message.bytes.count, floor_of(expectation, message, false_alarms).value);
  }
  return text +
         "      - alert: CommfuseNodeBad\n"
         "        expr: commfuse_node_healthy_probability < 0.5\n"
         "        labels:\n"
         "          severity: critical\n"
         "        annotations:\n"
         "          summary: \"{{ $labels.node }} is probably not healthy\"\n";
}

constexpr std::array forms{
    ThresholdForm{"nccl-tests", "Commands with NCCL_TESTS_MIN_BW", nccl_tests},
    ThresholdForm{"nvsentinel", "Helm values of NVSentinel's preflight checks", nvsentinel},
    ThresholdForm{"aicr", "Performance constraint of an AICR recipe", aicr},
    ThresholdForm{"superbench", "Rules of sb result diagnosis", superbench},
    ThresholdForm{"google-chs", "Helm values of Google's cluster-health-scanner", google_chs},
    ThresholdForm{"azure-nhc", "Lines of NHC with Azure's tests", azure_nhc},
    ThresholdForm{"prometheus", "Alerting rules over verdict -o prometheus", prometheus},
};

}  // namespace

std::span<const ThresholdForm> threshold_forms() { return forms; }

std::string thresholds(std::string_view form, const Expectation& expectation, double false_alarms) {
  std::vector<std::string_view> names;
  for (const ThresholdForm& known : forms) {
    if (known.name == form) {
      return known.text(expectation, false_alarms);
    }
    names.push_back(known.name);
  }
  throw ConfigError(
      fmt::format("--thresholds: unknown format {}; {}", in_quotes(form), remedy_for(form, names, "formats")));
}

}  // namespace commfuse::expect
