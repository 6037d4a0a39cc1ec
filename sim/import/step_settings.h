// SPDX-License-Identifier: Apache-2.0
// The settings of a training step that an import writes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/yaml_reader.h"
#include "model/workload/training_plan.h"

namespace commfuse::import {

using Counts = Range<std::int64_t>;

/// Returns the range of the setting `key`, such as "parallel.data", which must be a count.
Counts range_of(std::string_view key);

struct StepSettings {
  std::int64_t tensor = 1;
  std::int64_t seq = 1;    ///< Tokens per sequence.
  std::int64_t batch = 1;  ///< Sequences per step in all replicas.
  std::string dtype = "bf16";
  bool sequence_parallel = false;
  std::int64_t pipeline = 1;
  std::int64_t interleave = 1;
  bool zero_bubble = false;
  std::int64_t data = 1;
  std::int64_t context = 1;
  ContextExchange context_exchange = ContextExchange::all_gather;
  std::int64_t ulysses = 1;
  std::int64_t experts = 1;
  int zero = 0;
  std::int64_t micro_batch = 1;
  std::string recompute = "none";
  bool is_sgd = false;
  bool fused_attention = true;
  bool dropout = false;
  std::string gradient_dtype = "fp32";
  bool overlap_gradients = true;
  std::string framework = "none";  ///< Framework that runs the step: a name in configs/frameworks, or a path.
  /// If set, the import also writes a file that extends `framework`. The implementation in that file runs exactly these
  /// GEMMs: "qkv", "down_backward".
  std::optional<std::vector<std::string>> implementation_sites{};
};

/// Returns the product if it is at most `limit`; otherwise nothing. All factors must be at least 1.
std::optional<std::int64_t> product_within(std::int64_t limit, std::initializer_list<std::int64_t> factors);

/// Returns the number of GPUs of all replicas together.
std::int64_t gpus_of(const StepSettings& step);

/// Returns YAML, commfuse.run/1, without `model`. `origin` is the comment in the first line.
std::string run_text(const StepSettings& step, std::string_view origin);

/// Returns YAML, commfuse.framework/1, of the file that extends the step's framework. `name` is the name of the import.
/// Requires `step.implementation_sites` to be set.
std::string framework_text(const StepSettings& step, std::string_view origin, std::string_view name);

}  // namespace commfuse::import
