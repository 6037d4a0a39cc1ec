// SPDX-License-Identifier: Apache-2.0
// A comparison as the page that reports/ writes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/record/run_record.h"
#include "reports/html/measured.h"
#include "reports/traced_run.h"
#include "validate/compare/comparison.h"

namespace commfuse::validate {

struct Compared {
  RunRecord record;
  std::vector<ComparedSchedule> schedules;                 ///< In the order of record.runs.
  std::vector<std::vector<reports::TracedRun>> timelines;  ///< Of each: as predicted, as measured; or none.
  std::string hardware;                                    ///< That it was predicted on.
  int ranks = 0;
};

/// `command` makes the page again.
reports::MeasuredReport page_of(const Compared& compared, const std::string& command);

}  // namespace commfuse::validate
