// SPDX-License-Identifier: Apache-2.0
// Kernels that people run, each a file of configs/implementations: which schedule it realises, what that costs beside
// the ideal kernels (model/cost/implemented.h), and where it can be had.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/cost/implemented.h"
#include "model/dtype.h"
#include "model/strategies/options.h"
#include "model/strategies/strategies.h"
#include "model/workload/sites.h"

namespace commfuse {

struct Implementation {
  std::string name;
  std::string summary;                ///< One line.
  std::string use;                    ///< How to switch it on, one line.
  std::vector<std::string> known_as;  ///< What tables of measurements call it.
  Transport transport = Transport::nccl;
  const Strategy* strategy = nullptr;  ///< Whose schedule it realises.
  bool stands_in = false;              ///< For kernels that nobody described: no kernel that one can have.
  StrategyOptions options;             ///< Holds the values of `fixed`.
  OptionSet fixed;
  std::vector<SiteKind> sites;
  std::vector<DType> dtypes;
  std::int32_t most_ranks = 0;
  int most_nodes = 1;
  std::vector<NcclGeneration> generations;  ///< Of GPUs that it runs on.
  ImplementationCosts costs;
  /// Parameters of the costs that `score --implementations` fits: "per_call" of both kinds of sites, "gemm_rs.rate".
  std::vector<std::string> fitted;
  /// Its costs as a fit has them that has seen no table of a thread, by the thread ("bytedance/flux/issues/90");
  /// `score` takes them on such tables.
  std::map<std::string, ImplementationCosts, std::less<>> without;
};

/// A name of configs/implementations, or a path. Throws ConfigError with every mistake of the file.
std::shared_ptr<const Implementation> load_implementation(std::string_view name_or_path);

/// Loads what the setting `as` names: "none", "all", or names between commas. Throws ConfigError as above.
std::vector<std::shared_ptr<const Implementation>> load_implementations(std::string_view names);

/// Why it cannot be had there, a sentence with its remedy; empty when it can.
std::string refusal_of(const Implementation& implementation, const Machine& machine, std::int32_t ranks, DType dtype);

}  // namespace commfuse
