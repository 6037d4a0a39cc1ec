// SPDX-License-Identifier: Apache-2.0
#include "validate/verdict/tool_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "model/analysis/percentiles.h"
#include "model/text/plain_text.h"

namespace commfuse::validate {

namespace {

/// A test of nvbandwidth that is judged.
struct JudgedTest {
  std::string_view name;
  bool with_host = false;
  bool by_sms = false;
};
// Copies by SMs to and from the host are not judged: healthy H100 reach 35 and 53 GB/s (NVIDIA/nvbandwidth issue 24),
// and no source states what a machine should reach.
constexpr std::array judged_tests{JudgedTest{"host_to_device_memcpy_ce", true, false},
                                  JudgedTest{"device_to_host_memcpy_ce", true, false},
                                  JudgedTest{"device_to_device_memcpy_read_ce", false, false},
                                  JudgedTest{"device_to_device_memcpy_write_ce", false, false},
                                  JudgedTest{"device_to_device_memcpy_read_sm", false, true},
                                  JudgedTest{"device_to_device_memcpy_write_sm", false, true}};

/// Returns null for a test that is not judged.
const JudgedTest* test_named(std::string_view name) {
  const auto* const test = std::find_if(judged_tests.begin(), judged_tests.end(),
                                        [&](const JudgedTest& judged) { return judged.name == name; });
  return test == judged_tests.end() ? nullptr : test;
}

std::vector<MeasuredCopy> copies_of(const BandwidthMatrix& matrix, bool with_host) {
  std::vector<MeasuredCopy> copies;
  for (std::size_t row = 0; row < matrix.values.size(); ++row) {
    for (std::size_t column = 0; column < matrix.values[row].size(); ++column) {
      const std::optional<double> value = matrix.values[row][column];
      const int from = with_host ? host_side : static_cast<int>(row);
      if (value && *value > 0.0 && from != static_cast<int>(column)) {  // versions before 0.5 have 0 on the diagonal
        copies.push_back({from, static_cast<int>(column), {1e9 * *value}});
      }
    }
  }
  return copies;
}

ToolFinding failure_of(const BandwidthMatrix& matrix) {
  return {.tool = "nvbandwidth",
          .test = with_escapes(matrix.test),
          .text = with_escapes(matrix.error),
          .cause = "a copy failed, or its data were wrong",
          .next = "dmesg | grep -iE 'xid|nvrm'",
          .severity = Severity::critical};
}

/// The likely cause of a failed test of DCGM. The names are those of DCGM's plugins, in lower case, with underscores
/// for spaces.
struct DcgmCause {
  std::string_view test;
  std::string_view cause;
  std::string_view next;
  Severity severity = Severity::major;  ///< Used where DCGM states none.
};
constexpr std::string_view watch_clocks =
    "nvidia-smi --query-gpu=index,clocks.sm,clocks_event_reasons.active,power.draw,temperature.gpu --format=csv";
constexpr std::string_view watch_memory = "nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT";
constexpr std::array dcgm_causes{
    DcgmCause{"memory", "GPU memory gives wrong values or cannot be allocated", watch_memory, Severity::critical},
    DcgmCause{"gpu_memory", "GPU memory gives wrong values or cannot be allocated", watch_memory, Severity::critical},
    DcgmCause{"memtest", "GPU memory gives wrong values", watch_memory, Severity::critical},
    DcgmCause{"memory_bandwidth", "HBM is slower than DCGM's floor", watch_memory, Severity::major},
    DcgmCause{"pcie", "PCIe or NVLink is below DCGM's floor, or runs at a lower generation or width",
              "nvidia-smi --query-gpu=index,pcie.link.gen.current,pcie.link.width.current --format=csv",
              Severity::major},
    DcgmCause{"nvlink", "NVLink is below DCGM's floor, or down", "nvidia-smi nvlink --status", Severity::major},
    DcgmCause{"nvbandwidth", "a copy is below DCGM's floor", "nvbandwidth -t 'device_to_device_memcpy_read_ce' -j",
              Severity::major},
    DcgmCause{"nccl_tests", "a collective failed", "NCCL_DEBUG=INFO all_reduce_perf -b 1G -e 1G -g 8", Severity::major},
    DcgmCause{"diagnostic", "the GPU computes wrong results or is below DCGM's floor under load",
              "dmesg | grep -iE 'xid|nvrm'", Severity::critical},
    DcgmCause{"sm_stress", "the SMs are below DCGM's floor", watch_clocks, Severity::major},
    DcgmCause{"targeted_stress", "the GPU does not hold DCGM's rate under load", watch_clocks, Severity::major},
    DcgmCause{"targeted_power", "the GPU does not reach its rated power, because of a cap or heat", watch_clocks,
              Severity::major},
    DcgmCause{"pulse", "the GPU or its power supply fails under changing load", "dmesg | grep -iE 'xid|nvrm'",
              Severity::critical},
    DcgmCause{"pulse_test", "the GPU or its power supply fails under changing load", "dmesg | grep -iE 'xid|nvrm'",
              Severity::critical},
    DcgmCause{"context_create", "no CUDA context can be made: the GPU is lost, or another job holds it",
              "nvidia-smi --query-compute-apps=gpu_uuid,pid,name --format=csv", Severity::critical},
    DcgmCause{"software", "the node's software is not configured as DCGM requires", "dcgmi diag -r 1 -v",
              Severity::minor}};
constexpr DcgmCause other_cause{"", "a test of DCGM failed", "dcgmi diag -r 3 -v", Severity::major};

std::string plugin_name(std::string_view test) {
  std::string name;
  for (const char c : test) {
    name += c == ' ' || c == '-' ? '_' : static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  }
  return name;
}

const DcgmCause& cause_of(const DcgmResult& result) {
  const std::string name = plugin_name(result.test);
  const auto* const known =
      std::find_if(dcgm_causes.begin(), dcgm_causes.end(), [&](const DcgmCause& cause) { return cause.test == name; });
  if (known != dcgm_causes.end()) {
    return *known;
  }
  // Each test of the first category covers one aspect of the software: "Denylist", "NVML Library", "Persistence Mode".
  return plugin_name(result.category) == "deployment" ? dcgm_causes.back() : other_cause;
}

Severity severity_of(DcgmSeverity reported, Severity otherwise) {
  switch (reported) {
    case DcgmSeverity::none:
    case DcgmSeverity::monitor:
    case DcgmSeverity::config: return Severity::minor;
    case DcgmSeverity::isolate:
    case DcgmSeverity::reset: return Severity::critical;
    case DcgmSeverity::triage: return Severity::major;
    case DcgmSeverity::unknown: return otherwise;
  }
  return otherwise;
}

ToolFinding finding_of(const DcgmResult& result) {
  const DcgmCause& cause = cause_of(result);
  ToolFinding finding{.tool = "dcgmi diag",
                      .test = with_escapes(result.test),
                      .cause = std::string(cause.cause),
                      .next = std::string(cause.next),
                      .severity = cause.severity,
                      .is_bad = result.status == DcgmStatus::fail};
  if (result.id) {
    finding.subject = with_escapes(fmt::format("{} {}", result.entity, *result.id));
  }
  std::optional<Severity> reported;
  for (const DcgmWarning& warning : result.warnings) {
    finding.text += (finding.text.empty() ? "" : "; ") + with_escapes(warning.text);
    if (warning.severity) {
      reported = std::max(reported.value_or(Severity::none), severity_of(*warning.severity, cause.severity));
    }
  }
  finding.severity = reported.value_or(finding.severity);
  return finding;
}

}  // namespace

ToolResults results_of(const BandwidthRun& run) {
  ToolResults results;
  for (const BandwidthDevice& device : run.devices) {
    if (!device.host.empty() &&
        std::find(results.hosts.begin(), results.hosts.end(), device.host) == results.hosts.end()) {
      results.hosts.push_back(device.host);
    }
  }
  if (!run.error.empty()) {
    results.findings.push_back(failure_of({.test = "run", .description = "", .error = run.error}));
  }
  for (const BandwidthMatrix& matrix : run.matrices) {
    const JudgedTest* const judged = test_named(matrix.test);
    if (matrix.status == BandwidthStatus::failed) {
      results.findings.push_back(failure_of(matrix));
    } else if (matrix.status == BandwidthStatus::waived) {
      results.passed_over.push_back(fmt::format("{} was waived: this machine cannot run it", matrix.test));
    } else if (judged == nullptr) {
      results.passed_over.push_back(fmt::format("{}: the model has no rate for this test", matrix.test));
    } else if (results.hosts.size() > 1) {
      results.passed_over.push_back(fmt::format("{}: results of several hosts are not judged", matrix.test));
    } else {
      results.copies.push_back({matrix.test, judged->by_sms, copies_of(matrix, judged->with_host)});
      results.has_passed_tests = true;
    }
  }
  return results;
}

ToolResults results_of(const RunRecord& record) {
  // At 900 GB/s a copy of 64 MiB takes 75 us; the time before its first byte is a few percent of that.
  constexpr std::int64_t least_judged = std::int64_t{64} << 20U;
  ToolResults results;
  results.hosts = record.environment.hosts;
  std::int64_t largest = 0;
  for (const MicroBenchmark& benchmark : record.micro_benchmarks) {
    largest = std::max(largest, test_named(benchmark.op) != nullptr ? benchmark.bytes : 0);
  }
  if (largest == 0) {
    return results;
  }
  if (largest < least_judged) {
    results.passed_over.push_back("copies of less than 64 MiB: fixed costs of a copy are not negligible");
    return results;
  }
  std::map<std::string, CopyTable> tables;
  for (const MicroBenchmark& benchmark : record.micro_benchmarks) {
    const JudgedTest* const test = test_named(benchmark.op);
    if (test == nullptr || benchmark.bytes != largest || benchmark.rank < 0 || benchmark.samples.empty()) {
      continue;
    }
    std::vector<Duration> samples = benchmark.samples;
    std::sort(samples.begin(), samples.end());
    const Duration time = percentile(samples, 500).value;
    if (time > Duration{} && (test->with_host || benchmark.peer >= 0)) {
      CopyTable& table = tables.try_emplace(benchmark.op, CopyTable{benchmark.op, test->by_sms, {}}).first->second;
      const auto gpu = static_cast<int>(benchmark.rank);
      table.copies.push_back({test->with_host ? host_side : gpu,
                              test->with_host ? gpu : static_cast<int>(benchmark.peer),
                              {static_cast<double>(benchmark.bytes) / to_seconds(time)}});
    }
  }
  for (auto& [name, table] : tables) {
    results.copies.push_back(std::move(table));
    results.has_passed_tests = true;
  }
  return results;
}

ToolResults results_of(const DcgmDiagnostic& diagnostic) {
  ToolResults results;
  if (!diagnostic.error.empty()) {
    results.passed_over.push_back(fmt::format("dcgmi diag did not run: {}", diagnostic.error));
  }
  for (const DcgmResult& result : diagnostic.results) {
    // The result of the whole test repeats what its entities report.
    const bool is_repeated =
        !result.id && std::any_of(diagnostic.results.begin(), diagnostic.results.end(), [&](const DcgmResult& other) {
          return other.id && other.test == result.test && other.status == result.status;
        });
    const bool is_finding = result.status == DcgmStatus::fail || result.status == DcgmStatus::warn;
    if (is_finding && !is_repeated) {
      results.findings.push_back(finding_of(result));
    }
    results.has_passed_tests = results.has_passed_tests || result.status == DcgmStatus::pass;
  }
  return results;
}

}  // namespace commfuse::validate
