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
  for (const Strategy& each : strategies()) {
    names.emplace_back(each.name);
  }
  return word(std::move(names));
}

Shape kernels() {
  std::vector<ShapeKey> by_generation;
  for (const NcclGeneration generation : all_nccl_generations) {
    by_generation.push_back(optional({std::string(name_of(generation)), sourced(number(0.1, 10.0))}));
  }
  return map(
      {optional({"misaligned_power", sourced(number(0.0, 2.0)),
                 "GEMMs with rows off multiples of 16 bytes take (16 / alignment) to this power times as long"}),
       optional({"attention_time", map(std::move(by_generation)),
                 "Time of fused attention over that of the hardware file, by generation of GPUs"}),
       {"fused_accumulation", boolean(), "GEMMs of weight gradients add to 32-bit sums as they write"},
       {"loss_bytes", number(4.0, 1000.0), "Memory traffic of the loss per 16-bit logit, both passes together"}});
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
              {"summary", text(), "What it is, in one line"},
              {"host", map({optional({"issue", sourced(duration()), "Host time to issue one kernel (default 12 us)"}),
                            {"runs_ahead", boolean(), "The host goes on issuing while the GPU is behind"}})},
              {"kernels", kernels()},
              {"tensor_parallel",
               map({{"overlap", strategy_or_none(), "Strategy of GEMMs that meet a collective"},
                    optional({"implementation", text(), "Kernels for such GEMMs, used where they gain"}),
                    {"backward_beside_products", boolean(), "Collectives run beside both GEMMs of a backward pass"}})},
              optional({"settings", settings(), "Settings of run where the user has chosen none"})});
}

}  // namespace commfuse::schema
