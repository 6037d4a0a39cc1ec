// SPDX-License-Identifier: Apache-2.0
// Finds the model that a table names.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/workload/transformer.h"

namespace commfuse::score {

/// Finds the file in configs/models whose name equals a cell. Case, separators, a release such as "-v0.1" and words
/// that do not change the shape (Instruct, hf, chat, base) are ignored: "Llama-3.3-70B-Instruct" is llama-3.3-70b.
class ModelColumn {
 public:
  ModelColumn();
  /// Returns null if there is no such file. Throws ConfigError with the mistakes in the file.
  const Transformer* of(std::string_view cell);

 private:
  std::vector<std::string> names_;
  std::map<std::string, Transformer, std::less<>> loaded_;
};

}  // namespace commfuse::score
