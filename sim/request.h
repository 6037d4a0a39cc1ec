// SPDX-License-Identifier: Apache-2.0
// What a user asks of `run`, as text, and the points it means. Every mistake is a ConfigError that names the flag.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/predict.h"

namespace commfuse {

/// The settings of one point, as written.
struct PointRequest {
  std::string model = "llama-3.1-70b";
  std::string hardware = "h100-sxm";
  std::string ranks = "8";
  std::string batch = "1";
  std::string seq = "4K";
  std::string dtype = "bf16";
  std::string scope = "mlp";
  std::string interference = "static";
  std::string launch = "stream";

  /// The setting of that name; nullptr when there is none.
  std::string* find(std::string_view name);
};

/// Which schedules of the chosen strategies are candidates.
struct StrategyRequest {
  std::string strategies = "all";
  std::string variants = "best";        // best: one row a strategy; all: one row a schedule
  std::optional<std::string> slices;    // sliced: only this k
  std::optional<std::string> form;      // commfuse: only this form
  std::optional<std::string> add_lane;  // commfuse ring: adds only on this lane
};

struct Candidates {
  const Strategy* strategy = nullptr;
  std::vector<StrategyOptions> options;
};

/// Points in the order of a nested loop over the axes, the first axis outermost. Axes read `seq=1K..128K` (doubling),
/// `ranks=1..8` (counting), `seq=4K..16K+4K` (adding), `seq=1K..64K*4` (multiplying), `ranks=2,4,8`, `model=a,b`.
/// Throws ConfigError for unknown keys, wrong values and impossible points, before anything runs.
std::vector<Point> points_of(const PointRequest& request, const std::vector<std::string>& axes);

/// One entry a result row: with variants "best" one a strategy, with "all" one a schedule. Throws ConfigError.
std::vector<Candidates> candidates_of(const StrategyRequest& request, DType dtype);

}  // namespace commfuse
