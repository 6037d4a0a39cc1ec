// SPDX-License-Identifier: Apache-2.0
// The shape of a model from the config.json that Hugging Face keeps beside its weights.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/workload/transformer.h"

namespace commfuse {

struct HfModel {
  Transformer model;
  std::vector<std::string> doubts;  ///< `path: sentence; remedy`, for what the file leaves open.
};

/// The model's name is that of the folder. Reads the names that Llama, GPT-2, OPT, Falcon and BLOOM use; a model
/// inside `text_config` is read there; keys that say nothing of the shape are skipped. Throws ConfigError with every
/// mistake: no JSON, larger than 1 MiB, duplicate keys, a missing or wrong field, or a model that is no decoder,
/// or one whose dense layers stand between layers of experts.
HfModel read_hf_config(const std::filesystem::path& path);

}  // namespace commfuse
