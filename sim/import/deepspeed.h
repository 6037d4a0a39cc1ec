// SPDX-License-Identifier: Apache-2.0
// Converts the JSON of DeepSpeed's --deepspeed_config to the settings of a training step.
#pragma once

#include "sim/import/imported.h"
#include "sim/import/options.h"

namespace commfuse::import {

/// The file has no model, no sequence length and no number of GPUs, so --model, --seq and --gpus are required;
/// --micro-batch and --batch replace missing values and "auto", which Hugging Face's trainer fills in. Throws
/// ConfigError (`path:line:col: sentence; remedy`) for mistakes in the file and missing options.
Imported read_deepspeed(const Source& source);

/// Returns true only if the text is unmistakably a DeepSpeed configuration.
bool is_deepspeed(std::string_view text);

}  // namespace commfuse::import
