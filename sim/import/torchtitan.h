// SPDX-License-Identifier: Apache-2.0
// Converts a TOML file of torchtitan to the settings of a training step.
#pragma once

#include "sim/import/imported.h"
#include "sim/import/options.h"

namespace commfuse::import {

/// Options: --gpus, where the file leaves the sharding degree open; --model, where the catalogue lacks the file's
/// flavor. Keys of older releases are read too. Throws ConfigError (`path:line:col: sentence; remedy`).
Imported read_torchtitan(const Source& source);

/// Returns whether the text certainly is such a file.
bool is_torchtitan(std::string_view text);

}  // namespace commfuse::import
