// SPDX-License-Identifier: Apache-2.0
#include "model/fit/fit_scope_yaml.h"

#include <gtest/gtest.h>

namespace commfuse {
namespace {

TEST(FitScopeYaml, WritesFactorsThatOverrideTheBase) {
  FitScope scope{.residual = 0.05};
  widen(scope, FitSize::seq, 128);
  const std::string seen = "  seen:\n    seq: {least: 128, most: 128}\n";
  EXPECT_EQ(fit_scope_yaml(scope, 0), "fit:\n  residual: 0.0500\n" + seen);
  const ByLimit base_factors{0.5, 2.0, 1.0, 1.0};
  EXPECT_EQ(fit_scope_yaml(scope, 0, base_factors),
            "fit:\n  residual: 0.0500\n  by_limit: {latency: 1, bandwidth: 1, few_tiles: 1, compute: 1}\n" + seen);
  scope.by_limit = base_factors;
  EXPECT_EQ(fit_scope_yaml(scope, 0, base_factors), "fit:\n  residual: 0.0500\n" + seen);
  EXPECT_EQ(by_limit_yaml(base_factors), "{latency: 0.5, bandwidth: 2, few_tiles: 1, compute: 1}");
}

}  // namespace
}  // namespace commfuse
