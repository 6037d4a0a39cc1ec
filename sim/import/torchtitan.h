// SPDX-License-Identifier: Apache-2.0
// From a TOML file of torchtitan to the settings of a step.
#pragma once

#include "sim/import/imported.h"
#include "sim/import/options.h"

namespace commfuse::import {

/// Options: --gpus, where the file leaves the sharding degree open; --model, where its flavor has no model here. Keys
/// of older releases are read too. Throws ConfigError (`path:line:col: sentence; remedy`).
Imported read_torchtitan(const Source& source);

/// Whether the text is certainly such a file.
bool is_torchtitan(std::string_view text);

}  // namespace commfuse::import
