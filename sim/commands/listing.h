// SPDX-License-Identifier: Apache-2.0
// Tables of the names to choose from, one row for each name.
#pragma once

#include <string>
#include <vector>

#include "model/config/catalogue.h"

namespace commfuse::sim {

struct ListColumn {
  std::string name;
  bool is_text = false;  ///< Left-aligned.
};

/// A table: its columns, and its cells by row. Every row has one cell per column.
struct Listing {
  std::vector<ListColumn> columns;
  std::vector<std::vector<std::string>> rows;
};

/// Lists each model's name, total and active parameters, number of layers, hidden size and special features.
Listing listed_models();
/// Lists the models of all files whose names end in config.json, in and below a folder, as listed_models() does; skips
/// configs of tokenizers, adapters and the like. Throws ConfigError if there is no such file, or if such a file
/// describes no model.
Listing listed_models_in(const std::string& folder);
/// Lists name, GPUs, dense bf16 TFLOP/s, memory size, HBM rate and link rates: of clusters if `clusters`, else of
/// nodes.
Listing listed_machines(Catalogue catalogue, bool clusters);
Listing listed_strategies();
/// Lists name, realized strategy, transport, generations of GPUs with measurements, and summary.
Listing listed_implementations();
/// Lists name, strategy or implementation for tensor parallelism, dtype of gradients, host time to issue a kernel, and
/// summary.
Listing listed_frameworks();
Listing listed_scopes();

}  // namespace commfuse::sim
