// SPDX-License-Identifier: Apache-2.0
// The GEMMs that an implementation runs in a whole model: those of forward passes where it saves time, because users
// would switch it on only there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/workload/sites.h"
#include "sim/step/site_times.h"

namespace commfuse {

/// A GEMM with its collective, and the schedule with which the implementation runs it.
struct ImplementedGemm {
  std::string site;  ///< Name of the LayerSite, such as "gate_up".
  SiteName name = SiteName::qkv;
  std::int64_t columns = 0;      ///< Site::columns
  std::int64_t contraction = 0;  ///< Site::contraction
  SiteTime schedule;
};

struct ImplementedForward {
  const Implementation* kernels = nullptr;  ///< Null: no implementation. Must outlive every call that uses it.
  std::vector<ImplementedGemm> gemms;
  /// Factor on the time of each of these GEMMs with its collective; without `kernels`, of those that the framework's
  /// implementation runs.
  double slowdown = 1.0;

  /// Returns the GEMM of this name and shape; null if the implementation does not run it.
  [[nodiscard]] const ImplementedGemm* find(const Transformer& shape, SiteName name) const;
};

}  // namespace commfuse
