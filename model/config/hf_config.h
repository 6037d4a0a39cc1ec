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
  /// What was read and is left out of the model, as sentences: a vision tower, layers that predict further tokens.
  std::vector<std::string> notes;
  std::vector<std::string> unused;  ///< Keys that may count and were not used, for want of a meaning here.
};

/// The model's name is that of the folder, or of the file. Reads the names that decoders of Hugging Face use since
/// GPT-2; a model inside `text_config` is read there. Every key is used, counts for nothing (model/config/hf_keys.h),
/// or is named in `unused`. Throws ConfigError with every mistake: no JSON, larger than 16 MiB, duplicate keys, a
/// missing or wrong field, or a model that is no decoder, or has layers that have no price here.
HfModel read_hf_config(const std::filesystem::path& path);

}  // namespace commfuse
