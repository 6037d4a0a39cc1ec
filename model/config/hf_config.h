// SPDX-License-Identifier: Apache-2.0
// Reads the shape of a model from the config.json that Hugging Face stores next to its weights.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/workload/transformer.h"

namespace commfuse {

struct HfModel {
  Transformer model;
  /// One `path: sentence; remedy` for each property that the file does not determine.
  std::vector<std::string> doubts;
  /// Sentences about parts that are read but not modelled, such as a vision tower or multi-token prediction layers.
  std::vector<std::string> notes;
  std::vector<std::string> unused;  ///< Keys that may matter but have no meaning in this program.
};

/// Reads a config.json. The model gets the name of the folder, or of the file. Accepts the names of keys that Hugging
/// Face's decoders have used since GPT-2; a model inside `text_config` or a similar key is read there. Every key is
/// used, has no effect (model/config/hf_keys.h), or is listed in `unused`. Throws ConfigError with every mistake: a
/// file that is not JSON, exceeds 16 MiB or 32 levels, or has duplicate keys; a missing or wrong field; a model that is
/// not a decoder or has layers that this program cannot price.
HfModel read_hf_config(const std::filesystem::path& path);

}  // namespace commfuse
