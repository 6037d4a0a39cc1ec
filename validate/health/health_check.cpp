// SPDX-License-Identifier: Apache-2.0
#include "validate/health/health_check.h"

#include <algorithm>

#include "model/check.h"

namespace commfuse::validate {

std::string name_of(HealthStatus status) {
  switch (status) {
    case HealthStatus::ok: return "ok";
    case HealthStatus::unknown: return "unknown";
    case HealthStatus::warn: return "warn";
    case HealthStatus::bad: return "bad";
  }
  check(false, "a status has a name");
  return {};
}

HealthStatus worst_of(std::span<const HealthCheck> checks) {
  HealthStatus worst = HealthStatus::ok;
  for (const HealthCheck& check : checks) {
    worst = std::max(worst, check.status);
  }
  return worst;
}

}  // namespace commfuse::validate
