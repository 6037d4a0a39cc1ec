// SPDX-License-Identifier: Apache-2.0
// What there is to choose from, a row each.
#pragma once

#include <string>
#include <vector>

#include "model/config/catalogue.h"

namespace commfuse::sim {

struct ListColumn {
  std::string name;
  bool is_text = false;  ///< Flush left.
};

/// Cells by row.
struct Listing {
  std::vector<ListColumn> columns;
  std::vector<std::vector<std::string>> rows;
};

/// Name, parameters, sizes, what is special in the layers.
Listing listed_models();
/// The same of every config.json below a folder, and of files that are called like it. Throws ConfigError where there
/// is none.
Listing listed_models_in(const std::string& folder);
/// Name, dense 16-bit TFLOP/s, memory, rates of links: of clusters alone, or of nodes alone.
Listing listed_machines(Catalogue catalogue, bool clusters);
Listing listed_strategies();
/// Name, strategy it realises, transport, generations where it was measured, summary.
Listing listed_implementations();
/// Name, how tensor ranks run products that meet a collective, dtype of gradients, host time to issue a kernel,
/// summary.
Listing listed_frameworks();
Listing listed_scopes();

}  // namespace commfuse::sim
