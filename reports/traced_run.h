// SPDX-License-Identifier: Apache-2.0
// One strategy at one point with all its events: the input of traces and Gantt figures.
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
  Sizes sizes;  // sizes of the program's dimensions; if empty, traces have blocks but no bytes or FLOPs
  std::optional<CriticalPath> path{};  // nothing if not computed
  bool measured = false;               // the timeline was measured, not predicted
};

}  // namespace commfuse::reports
