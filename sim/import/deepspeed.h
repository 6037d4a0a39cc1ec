// SPDX-License-Identifier: Apache-2.0
// From the JSON of DeepSpeed's --deepspeed_config to the settings of a step.
#pragma once

#include "sim/import/imported.h"
#include "sim/import/options.h"

namespace commfuse::import {

/// The file has neither a model nor a sequence length nor a number of GPUs: --model, --seq and --gpus are needed;
/// --micro-batch and --batch stand for what is "auto", as Hugging Face's trainer fills it. Throws ConfigError
/// (`path:line:col: sentence; remedy`).
Imported read_deepspeed(const Source& source);

/// Whether the text is certainly such a file.
bool is_deepspeed(std::string_view text);

}  // namespace commfuse::import
