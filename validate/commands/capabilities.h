// SPDX-License-Identifier: Apache-2.0
// The parts of this program that can run on this machine: executors, libraries, configuration files.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "validate/health/across.h"
#include "validate/health/health_check.h"

namespace commfuse::validate {

struct Capability {
  std::string name;  ///< "cuda"
  std::string text;  ///< "yes: NVIDIA H100 ..." or "no: ..." with the reason; a fact for machine, build and timer.
  HealthStatus status = HealthStatus::ok;  ///< `unknown`: not available (configs: `bad`); `warn`: impaired.
  std::string wrong{};
  std::string remedy{};
};

std::span<const std::string_view> capability_names();

/// Examines every capability that is not in `skipped`. Examining cuda creates a context on every GPU, examining nccl on
/// the first.
std::vector<Capability> capabilities(std::span<const std::string> skipped);

/// Returns "yes: " and what `describe` returns for every GPU, then the GPUs for which it throws std::runtime_error;
/// "no: " if it throws for all.
std::string gpus_in_words(int gpus, const std::function<std::string(int gpu)>& describe);

/// Returns one line per capability, wrapped at `width` columns.
std::string capability_lines(std::span<const Capability> capabilities, std::size_t width);

std::vector<HealthCheck> checks_of(std::span<const Capability> capabilities);

/// Returns the facts that all nodes of a job must have in common.
std::vector<CommonFact> common_facts(std::span<const Capability> capabilities);

}  // namespace commfuse::validate
