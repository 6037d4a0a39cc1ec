// SPDX-License-Identifier: Apache-2.0
// Names plans of whole models: in full for a heading, and in a list by the settings that differ.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/record/step_row.h"

namespace commfuse::reports {

/// Returns "llama-3.1-8b step on h100-sxm, 4 GPUs (4 tensor), batch 8, seq 4K, bf16".
std::string plan_heading(const StepRow& row);

/// Names settings that rows of layers and of whole models share, if they are unusual: ", launch graph, jitter default".
std::string unusual_run_settings(const StepRow& row);

/// Returns whether context ranks pass keys and values around a ring.
bool passes_keys_around(const StepRow& row);

/// Words for the plans of a list, which name the settings that tell them apart (PlanWords::setting). The rows must
/// outlive this object. Requires at least one row.
class PlanNames {
 public:
  explicit PlanNames(std::span<const StepRow> rows);

  /// Returns "commfuse on dgx-h100-x8, 64 GPUs (8 tensor x 8 pipeline), batch 64, seq 4K, recompute full"; without the
  /// machine if all plans have the same one.
  [[nodiscard]] std::string first_name(const StepRow& row) const;

  /// Returns the layout and those settings, batch and seq included, that differ from the settings of `first`.
  [[nodiscard]] std::string name_after(const StepRow& row, const StepRow& first) const;

 private:
  [[nodiscard]] std::string layout_name(const StepRow& row) const;

  bool has_several_machines_ = false;
  std::vector<std::string_view> varying_;  ///< Settings in which a plan differs from the first.
};

}  // namespace commfuse::reports
