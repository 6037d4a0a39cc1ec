// SPDX-License-Identifier: Apache-2.0
// Writes the result of tuning as files for other programs.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config/settings.h"
#include "sim/tune/tune.h"

namespace commfuse::sim {

/// Name of the file for Megatron-LM's --tp-comm-overlap-cfg.
inline constexpr std::string_view overlap_config_file = "tp_comm_overlap_cfg.yaml";

/// Returns names and contents of the files: `plan.yaml`, a training step for `commfuse-sim run`; `site-<name>.yaml` for
/// each site, one schedule each, for `commfuse-sim run`, `schedule export` and `commfuse-validate`; `model-<name>.yaml`
/// for each site whose shape differs from the model's MLP; and, unless its methods would save no time, the
/// overlap_config_file, limited to what Transformer Engine supports. `settings` are the settings that the user chose.
/// Requires `tuning` to have a plan that fits.
std::vector<std::pair<std::string, std::string>> tune_files(const Settings& settings, const PlanSpace& space,
                                                            const Tuning& tuning);

/// Returns MindSpeed's arguments for GEMMs that are cut to overlap with their collectives (Ascend CoC, which is
/// `sliced`). All sites share one number of parts, which is best for the sites that together take the most time. Empty
/// if the machine is not an Ascend, or if no site of the plan can be cut.
std::string mindspeed_arguments(const PlanSpace& space, const Tuning& tuning);

}  // namespace commfuse::sim
