// SPDX-License-Identifier: Apache-2.0
// Implementation files; model/config/load_implementation.cpp reads them.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "model/cost/implemented.h"
#include "model/dtype.h"
#include "model/hardware/nccl_tuning.h"
#include "model/strategies/options.h"
#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"
#include "model/workload/sites.h"
#include "sim/schema/described_shape.h"
#include "sim/schema/shape.h"

namespace commfuse::schema {

namespace {

template <class Values>
Shape word_of(const Values& values) {
  std::vector<std::string> names;
  for (const auto value : values) {
    names.emplace_back(name_of(value));
  }
  return word(std::move(names));
}

Shape strategy() {
  std::vector<std::string> names;
  for (const Strategy* candidate : all_strategies) {
    names.emplace_back(candidate->name);
  }
  return word(std::move(names));
}

/// The loader checks that the strategy has each option, and checks the values.
Shape options() {
  std::vector<ShapeKey> keys;
  for (const Option option : all_options()) {
    keys.push_back(optional({std::string(name_of(option)), one_of({text(), count(), boolean()})}));
  }
  return map(std::move(keys));
}

Shape supports() {
  return map({{"sites", list(word_of(implemented_sites))},
              {"dtypes", list(word_of(all_dtypes))},
              optional({"experts", boolean(), "Also has kernels for mixtures of experts (default false)"}),
              {"ranks", count(2, 1024), "Maximum ranks of one group"},
              optional({"nodes", count(1, 4096), "Maximum nodes of one group (default 1)"}),
              {"generations", list(word_of(all_nccl_generations)), "Supported generations of GPUs"}});
}

/// A key of a library's overlap configuration. The loader checks that the schedule exists.
Shape overlap_key() {
  std::vector<std::string> scopes;
  for (const Scope scope : all_scopes) {
    scopes.emplace_back(name_of(scope));
  }
  return map({{"method", text(), "Default method, as the library names it"},
              {"scope", word(std::move(scopes)), "Part of a layer"},
              optional({"strategy", strategy(), "Strategy with the same schedule"}),
              optional({"options", options(), "Fixed options of the strategy"}),
              optional({"schedule", text(), "File with the schedule, instead of a strategy"})});
}

std::vector<ShapeKey> cost_keys() {
  std::vector<ShapeKey> by_generation;
  for (const NcclGeneration generation : all_nccl_generations) {
    by_generation.push_back(optional({std::string(name_of(generation)), map(keys_of<ImplementedSites>())}));
  }
  return {{"costs", map(keys_of<ImplementedSites>()), "Costs on top of the strategy's ideal kernels"},
          optional({"measured_on", map(std::move(by_generation)),
                    "Generations of GPUs with measurements, and the costs that differ on them"})};
}

}  // namespace

Shape implementation_shape() {
  const char* fitted = "^((ag_gemm|gemm_rs)\\.)?(per_call|per_step|product_time|cut_cost|rate_share|rate)$";
  std::vector<ShapeKey> keys{{"name", text()},
                             {"summary", text(), "What it does, in one line"},
                             {"use", text(), "How to switch it on, in one line"},
                             optional({"known_as", list(text()), "Its names in tables of measurements"}),
                             optional({"stands_in", boolean(), "Represents kernels without a description"}),
                             {"strategy", strategy(), "Strategy whose schedule it realizes"},
                             optional({"options", options(), "Fixed options of the strategy"}),
                             {"transport", word_of(all_transports), "Transport of its transfers"},
                             {"supports", supports()},
                             optional({"fit", list(pattern(fitted)), "Costs fitted by score --implementations"}),
                             optional({"keys", table("^.+$", overlap_key()),
                                       "Keys of the library's overlap configuration, and their schedules"}),
                             optional({"without", table("^.+$", map(cost_keys())),
                                       "Costs fitted without the tables of one thread, by thread"})};
  for (ShapeKey& key : cost_keys()) {
    keys.push_back(std::move(key));
  }
  return map(std::move(keys));
}

}  // namespace commfuse::schema
