// SPDX-License-Identifier: Apache-2.0
// Converts a torchtitan TOML file to the settings of a training step.
#pragma once

#include "sim/import/imported.h"
#include "sim/import/options.h"

namespace commfuse::import {

/// Options: --gpus, required if the file does not fix the sharding degree; --model, required if no catalogue model is
/// known for the file's flavor. Also reads the keys of older releases. Throws ConfigError (`path:line:col: sentence;
/// remedy`).
Imported read_torchtitan(const Source& source);

/// Returns true only if the text is unmistakably a torchtitan TOML file.
bool is_torchtitan(std::string_view text);

}  // namespace commfuse::import
