// SPDX-License-Identifier: Apache-2.0
// From NeMo's YAML (megatron_gpt_config.yaml), or the run_config.yaml that Megatron-Bridge saves, to a model and the
// settings of a step. Both have the names of Megatron-Core, so megatron_arguments.h makes the step.
#pragma once

#include "sim/import/imported.h"
#include "sim/import/options.h"

namespace commfuse::import {

/// Options: --gpus, which Megatron-Bridge's files do not say; and words that change keys, as Hydra takes them
/// ("model.num_layers=2", "+key=value", "~key"). ${...} stands for another key. Throws ConfigError
/// (`path:line:col: sentence; remedy`), also for recipes in Python.
Imported read_nemo(const Source& source);

/// Whether the text is certainly such a file.
bool is_nemo(std::string_view text);

}  // namespace commfuse::import
