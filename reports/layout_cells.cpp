// SPDX-License-Identifier: Apache-2.0
#include "reports/layout_cells.h"

namespace commfuse::reports {

std::array<LayoutCell, 12> layout_cells(const TrainingPlan& plan) {
  return {{{"tensor", plan.tensor},
           {"sequence_parallel", plan.sequence_parallel},
           {"pipeline", plan.pipeline},
           {"interleave", plan.interleave},
           {"pipeline_schedule", name_of(plan.schedule)},
           {"context", plan.context},
           {"ulysses", plan.ulysses},
           {"data", plan.data},
           {"experts", plan.expert},
           {"zero", static_cast<std::int64_t>(plan.zero)},
           {"micro_batch", plan.micro_batch},
           {"recompute", name_of(plan.recompute)}}};
}

}  // namespace commfuse::reports
