// SPDX-License-Identifier: Apache-2.0
// Implementations, each a file of configs/implementations: the schedule that existing kernels realize, their costs
// compared with ideal kernels (model/cost/implemented.h), and the hardware that they run on.
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
  std::string use;                    ///< Instructions to enable it, one line.
  std::vector<std::string> known_as;  ///< Names of the implementation in tables of measurements.
  Transport transport = Transport::nccl;
  const Strategy* strategy = nullptr;  ///< Strategy whose schedule it realizes.
  bool stands_in = false;   ///< True for a stand-in for kernels without a description; it is not itself a kernel that
                            ///< can be installed.
  StrategyOptions options;  ///< Holds the values of `fixed`.
  OptionSet fixed;
  std::vector<SiteKind> sites;
  std::vector<DType> dtypes;
  bool experts = false;  ///< It also has kernels for mixtures of experts, at the same sites.
  std::int32_t max_ranks = 0;
  int max_nodes = 1;
  std::vector<NcclGeneration> generations;  ///< Generations of GPUs that it runs on.
  ImplementationCosts costs;
  /// Parameters of the costs that `score --implementations` fits: "per_call" (for all kinds of sites) or
  /// "gemm_rs.rate".
  std::vector<std::string> fitted;
  /// Costs from fits that leave out the tables of one GitHub thread, by thread ("bytedance/flux/issues/90"); `score`
  /// uses them on the tables of that thread.
  std::map<std::string, ImplementationCosts, std::less<>> without;
};

/// Loads an implementation by its name in configs/implementations or by path. Throws ConfigError with every mistake in
/// the file.
std::shared_ptr<const Implementation> load_implementation(std::string_view name_or_path);

/// Loads the implementations that the setting `as` names: "none", "all", or names separated by commas. Throws
/// ConfigError like load_implementation, and if two files give their implementations the same name.
std::vector<std::shared_ptr<const Implementation>> load_implementations(std::string_view names);

/// Returns whether the implementation has kernels for sites of this kind.
bool covers(const Implementation& implementation, SiteKind kind);

/// Returns the reason why the machine cannot run the implementation, with the remedy; empty when it can.
std::string refusal_of(const Implementation& implementation, const Machine& machine, std::int32_t ranks, DType dtype);

/// Returns a warning such as "te was not measured on GPUs such as B200"; empty if it was measured on the generation of
/// the machine's GPUs.
std::string unmeasured_in_words(const Implementation& implementation, const Machine& machine);

}  // namespace commfuse
