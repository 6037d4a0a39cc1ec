// SPDX-License-Identifier: Apache-2.0
// Writes the result of tuning for people and for programs.
#pragma once

#include <optional>
#include <string>

#include "sim/tune/tune.h"

namespace commfuse::sim {

/// The question that tuning answers.
struct TuneHeading {
  std::string model;
  std::string hardware;
  std::string link_bandwidth;     ///< Text of the setting.
  std::string network_bandwidth;  ///< Text of the setting.
  PlanSpace space;
  bool default_batch = false;  ///< True if the user did not choose the batch.
  Minimize minimize = Minimize::mean;
  VerdictRule rule{};
  std::string jitter = "none";
  std::size_t samples = 0;                 ///< Samples per site; 0 without jitter.
  std::optional<StepEvidence> evidence{};  ///< A measured step.
  std::string folder;                      ///< The folder of the written files; empty if none are written.
};

/// Returns the result as text with lines of up to 80 columns.
std::string tune_text(const TuneHeading& heading, const Tuning& tuning);

/// Returns {"schema": "commfuse.tune/1", ...}: the plans, the sites and their baselines.
std::string tune_json(const TuneHeading& heading, const Tuning& tuning);

/// Returns Megatron-LM's arguments for a plan of the space with these methods of TransformerEngine. `overlap_config` is
/// the file for --tp-comm-overlap-cfg, or empty.
std::string megatron_arguments(const PlanSpace& space, const TrainingPlan& plan, const OverlapChoices& overlap,
                               const std::string& overlap_config);

/// Returns what switches off the overlap of a GEMM: a flag of Megatron-LM or, if that flag would affect another GEMM of
/// the forward pass that overlaps, a setting of Megatron-Core.
std::string off_switch(const OverlapChoice& choice, const OverlapChoices& choices);

/// Returns the schedule of a site, for example "commfuse (ring, g=2)".
std::string schedule_in_words(Scope scope, const SiteTime& site);

}  // namespace commfuse::sim
