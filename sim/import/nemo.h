// SPDX-License-Identifier: Apache-2.0
// Converts NeMo's YAML (megatron_gpt_config.yaml), or the run_config.yaml that Megatron-Bridge saves, to a model and
// the settings of a training step. Both files use the names of Megatron-Core, so megatron_arguments.h converts them.
#pragma once

#include "sim/import/imported.h"
#include "sim/import/options.h"

namespace commfuse::import {

/// Options: --gpus, which Megatron-Bridge's files lack; and Hydra overrides ("model.num_layers=2", "+key=value",
/// "~key"). A value ${...} refers to another key. Throws ConfigError (`path:line:col: sentence; remedy`), including for
/// recipes in Python.
Imported read_nemo(const Source& source);

/// Returns true only if the text is unmistakably such a file.
bool is_nemo(std::string_view text);

}  // namespace commfuse::import
