// SPDX-License-Identifier: Apache-2.0
// The result of a check of a node's health.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace commfuse::validate {

/// The statuses, in order of severity. `unknown`: not checked, because the facts could not be read or there is nothing
/// to check.
enum class HealthStatus : std::uint8_t { ok, unknown, warn, bad };

/// Returns "ok", "unknown", "warn" or "bad".
std::string name_of(HealthStatus status);

struct HealthCheck {
  std::string name;     ///< "pcie"; several checks may share it, one for each subject.
  std::string subject;  ///< A device ("0000:1b:00.0", "mlx5_0"); empty if it is the node.
  HealthStatus status = HealthStatus::ok;
  std::string found;   ///< A fact, without a full stop.
  std::string wrong;   ///< The problem; empty exactly where the status is ok.
  std::string remedy;  ///< The action that solves the problem; empty exactly where the status is ok.

  friend bool operator==(const HealthCheck&, const HealthCheck&) = default;
};

/// Returns the most severe status; ok if there are no checks.
HealthStatus worst_of(std::span<const HealthCheck> checks);

}  // namespace commfuse::validate
