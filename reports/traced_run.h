// SPDX-License-Identifier: Apache-2.0
// One strategy at one point with everything that happened: what traces and Gantt figures are made of.
#pragma once

#include <memory>
#include <optional>

#include "model/analysis/critical_path.h"
#include "model/program/program.h"
#include "model/program/recorder.h"
#include "model/program/sizes.h"
#include "model/record/result.h"

namespace commfuse::reports {

struct TracedRun {
  ResultRow row;
  std::shared_ptr<const Program> program;  // never null
  Timeline timeline;
  Sizes sizes;  // of the program's dimensions; left empty, traces give blocks but no bytes or FLOPs
  std::optional<CriticalPath> path{};  // nothing: nobody looked
  bool measured = false;               // the timeline is a measured one
};

}  // namespace commfuse::reports
