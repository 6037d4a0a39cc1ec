// SPDX-License-Identifier: Apache-2.0
// Writes the result of tuning for people and for programs.
#pragma once

#include <optional>
#include <string>

#include "sim/tune/tune.h"

namespace commfuse::sim {

/// The question.
struct TuneHeading {
  std::string model;
  std::string hardware;
  std::string link_bandwidth;  ///< Text of the user, like the next member.
  std::string network_bandwidth;
  PlanSpace space;
  bool default_batch = false;  ///< True if the user did not choose it.
  Minimize minimize = Minimize::mean;
  VerdictRule rule{};
  std::string jitter = "none";
  std::size_t samples = 0;                 ///< Samples of each site; none without jitter.
  std::optional<StepEvidence> evidence{};  ///< A measured step.
  std::string folder;                      ///< The folder of its files; empty if none are written.
};

/// At most 80 columns wide.
std::string tune_text(const TuneHeading& heading, const Tuning& tuning);

/// Returns {"schema": "commfuse.tune/1", ...}: the plans, the sites and what they are compared with.
std::string tune_json(const TuneHeading& heading, const Tuning& tuning);

/// Megatron-LM's arguments for a plan. `overlap_config` is the file of --tp-comm-overlap-cfg, or empty.
std::string megatron_arguments(const Transformer& model, const TrainingPlan& plan, const std::string& overlap_config);

/// "commfuse (ring, g=2)".
std::string schedule_in_words(Scope scope, const SiteTime& site);

}  // namespace commfuse::sim
