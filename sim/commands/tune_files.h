// SPDX-License-Identifier: Apache-2.0
// What tuning found as files that other programs take.
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

/// Names and contents: `plan.yaml`, which `commfuse-sim run` plays as a training step; `site-<scope>.yaml`, one
/// schedule each, for `commfuse-sim run`, `schedule export` and `commfuse-validate`; and the
/// overlap_config_file, by what TransformerEngine has. `settings` are those that were asked for. Requires a plan that
/// fits. Throws ConfigError where a site has no such schedule.
std::vector<std::pair<std::string, std::string>> tune_files(const Settings& settings, const PlanSpace& space,
                                                            const Tuning& tuning);

/// MindSpeed's arguments for products cut beside their collectives (Ascend CoC, which is `sliced`), with one number of
/// parts for all sites: that which is best where most of the time goes. Empty where the machine is no Ascend, or the
/// plan has no such sites.
std::string mindspeed_arguments(const PlanSpace& space, const Tuning& tuning);

}  // namespace commfuse::sim
