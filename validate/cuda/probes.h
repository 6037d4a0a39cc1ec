// SPDX-License-Identifier: Apache-2.0
// Small measurements of a device, each with a number as its result: the cost of a launch, an event or a copy, the time
// of a GEMM on fewer multiprocessors or next to a copy, and whether a whole GEMM has the same bits as its shards if it
// runs the kernel that is chosen for them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "validate/cuda/device.h"

namespace commfuse::validate {

struct ProbeRow {
  std::string probe;                                              ///< "kernel_gap"
  std::vector<std::pair<std::string, std::string>> parameters{};  ///< {"ctas", "4"}
  std::string unit = "us";
  std::vector<double> samples{};
};

struct ProbeOptions {
  int repetitions = 15;                 ///< Samples of every row.
  bool quick = false;                   ///< Measures only a few sizes of everything.
  std::vector<std::int64_t> lengths{};  ///< Lengths of sequences for attention; empty: those of the stage.
  /// Called with every finished row, because a later row may fail, or never end; may be empty.
  std::function<void(const ProbeRow& row)> on_row{};
  /// Makes a network of this one device, for the stage that needs NCCL; empty without NCCL.
  std::function<std::unique_ptr<Network>(const NetworkOptions& options)> connect{};
};

/// A family of probes.
struct ProbeStage {
  std::string_view name;
  std::string_view what;
  std::vector<ProbeRow> (*run)(Device& device, const ProbeOptions& options);
};

/// Returns the stages, in the order in which they should run.
std::span<const ProbeStage> probe_stages();

/// Returns the header; rows have stage,probe,parameters,unit,n,median,p10,p90, with parameters as ctas=4;bytes=1048576.
std::string probe_header();
std::string to_csv(std::string_view stage, std::span<const ProbeRow> rows);
/// Returns the line that precedes the rows of a stage until the stage has ended.
std::string unfinished_row(std::string_view stage);
/// Returns a CSV text without the rows of unfinished stages, so that these stages are measured again.
std::string without_unfinished(const std::string& text);

}  // namespace commfuse::validate
