// SPDX-License-Identifier: Apache-2.0
// What of this program can run here: executors, libraries, configuration files.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "validate/health/across.h"
#include "validate/health/health_check.h"

namespace commfuse::validate {

struct Capability {
  std::string name;  ///< "cuda"
  std::string text;  ///< "yes: NVIDIA H100 ..." or "no: ..." with what is missing; a fact for machine, build and timer.
  HealthStatus status = HealthStatus::ok;  ///< `unknown`: not available here.
  std::string wrong{};
  std::string remedy{};
};

std::span<const std::string_view> capability_names();

/// Looks at everything that is not in `skipped`. Looking at cuda makes a context on every GPU.
std::vector<Capability> capabilities(std::span<const std::string> skipped);

/// Text with one line for each, broken at `width` columns.
std::string capability_lines(std::span<const Capability> capabilities, std::size_t width);

std::vector<HealthCheck> checks_of(std::span<const Capability> capabilities);

/// Facts that all nodes of a job must have in common.
std::vector<CommonFact> common_facts(std::span<const Capability> capabilities);

}  // namespace commfuse::validate
