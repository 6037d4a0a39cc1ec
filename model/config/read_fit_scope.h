// SPDX-License-Identifier: Apache-2.0
// Reads the map `fit` next to a group of fitted parameters: {residual: 0.05, by_limit: {latency: 0.7}, seen: {m:
// {least: 1, most: 32768}}}.
#pragma once

#include "model/config/yaml_reader.h"
#include "model/hardware/fit_scope.h"

namespace commfuse {

/// Reads the optional field `fit` of `parent`; returns the defaults when it is absent. Mistakes are noted in the file.
FitScope read_fit_scope(YamlMap parent);

}  // namespace commfuse
