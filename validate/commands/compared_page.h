// SPDX-License-Identifier: Apache-2.0
// Turns a comparison into the page that reports/ writes.
#pragma once

#include <exception>
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
  std::vector<ComparedSchedule> schedules;  ///< In the order of record.runs.
  /// The predicted and the measured timeline of each schedule; empty if there are none.
  std::vector<std::vector<reports::TracedRun>> timelines;
  std::string hardware;  ///< The hardware of the prediction.
  Words changed;         ///< Other settings of the prediction that differ from those of the record.
  Words strategies;      ///< The settings that chose the schedules of a new run.
  std::string mismatch;  ///< Why measured times cannot be compared with that hardware; empty if they can.
  int ranks = 0;
  std::exception_ptr unwritten;  ///< See Measured.
};

/// Returns the page. `command` is the command line that makes it again.
reports::MeasuredReport page_of(const Compared& compared, const std::string& command);

}  // namespace commfuse::validate
