// SPDX-License-Identifier: Apache-2.0
// Framework files; model/config/load_framework.cpp reads them.
#include "model/config/framework.h"

#include <string>
#include <utility>
#include <vector>

#include "model/config/field.h"
#include "model/hardware/nccl_tuning.h"
#include "model/strategies/strategies.h"
#include "sim/schema/shape.h"

namespace commfuse::schema {

namespace {

Shape strategy_or_none() {
  std::vector<std::string> names{"none"};
  for (const Strategy& strategy : strategies()) {
    names.emplace_back(strategy.name);
  }
  return word(std::move(names));
}

Shape site() {
  std::vector<std::string> names;
  for (const Scope scope : implementation_scopes) {
    names.emplace_back(name_of(scope));
  }
  return word(std::move(names));
}

Shape kernels() {
  std::vector<ShapeKey> by_generation;
  for (const NcclGeneration generation : all_nccl_generations) {
    by_generation.push_back(optional({std::string(name_of(generation)), sourced(number(0.1, 10.0))}));
  }
  return map({optional({"misaligned_power", sourced(number(0.0, 2.0)),
                        "Time of GEMMs with misaligned rows is multiplied by (16 / alignment in bytes) to this power"}),
              optional({"attention_time", map(std::move(by_generation)),
                        "Time of fused attention relative to the hardware file's, by generation of GPUs"}),
              {"fused_accumulation", boolean(), "GEMMs of weight gradients accumulate into 32-bit sums"},
              optional({"narrow_weights", boolean(), "Weights of fp8 GEMMs are held and gathered in 8 bits"}),
              {"loss_bytes", number(4.0, 1000.0),
               "Memory traffic of the loss per 16-bit logit, forward and backward together"},
              optional({"loss_memory", sourced(number(0.0, 100.0)),
                        "Bytes per logit of the loss's tensors that are live at the same time (default 4)"})});
}

Shape recomputed_part() {
  std::vector<std::string> names;
  for (const RecomputedPart& part : recomputed_parts) {
    names.emplace_back(part.name);
  }
  return word(std::move(names));
}

Shape settings() {
  std::vector<ShapeKey> keys;
  for (const Field& field : run_fields()) {
    if (is_chosen_by_frameworks(field)) {
      keys.push_back(optional({std::string(field.key), one_of({text(), count(), boolean()}), std::string(field.doc)}));
    }
  }
  return map(std::move(keys));
}

}  // namespace

Shape framework_shape() {
  return map({{"name", text()},
              optional({"extends", text(), "Framework of the catalogue that supplies all keys that are absent here"}),
              {"summary", text(), "Description in one line"},
              {"host", map({optional({"issue", sourced(duration()), "Host time to issue one kernel (default 12 us)"}),
                            {"runs_ahead", boolean(), "The host keeps issuing while the GPU is behind"}})},
              {"kernels", kernels()},
              {"tensor_parallel",
               map({{"overlap", strategy_or_none(), "Strategy of GEMMs next to a collective"},
                    optional({"implementation", text(), "Implementation for such GEMMs, used where it is faster"}),
                    optional({"implementation_sites", list(site()),
                              "GEMMs that the implementation runs even where it is slower"}),
                    {"backward_beside_products", boolean(), "Collectives overlap both GEMMs of a backward pass"}})},
              optional({"selective_recompute", list(recomputed_part()),
                        "Parts of a layer that step.recompute selective runs again (default attention_core)"}),
              optional({"settings", settings(), "Settings of run, unless the user sets them"})});
}

}  // namespace commfuse::schema
