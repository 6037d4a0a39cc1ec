// SPDX-License-Identifier: Apache-2.0
// Results of other tools on a node: matrices of nvbandwidth as copies, results of dcgmi diag as findings.
#pragma once

#include <string>
#include <vector>

#include "model/expect/copies.h"
#include "model/formats/dcgm_diag.h"
#include "model/formats/nvbandwidth.h"
#include "model/record/run_record.h"

namespace commfuse::validate {

/// A fault that a tool itself reports. It is accepted as certain: no probability is estimated for it.
struct ToolFinding {
  std::string tool;     ///< "dcgmi diag", "nvbandwidth"
  std::string test;     ///< "pcie"
  std::string subject;  ///< "GPU 3"; empty for the node.
  std::string text;     ///< The tool's message, on one line.
  std::string cause;    ///< A sentence without its full stop.
  std::string next;     ///< The command that shows more.
  Severity severity = Severity::major;
  bool is_bad = true;  ///< False: a warning, which makes no node bad.
};

/// The useful contents of one file.
struct ToolResults {
  std::vector<std::string> hosts;  ///< Names in the file; empty if it names none.
  std::vector<CopyTable> copies;
  std::vector<ToolFinding> findings;
  std::vector<std::string> passed_over;  ///< Sentences, without the file's name, about data that is not judged.
  bool has_passed_tests = false;         ///< The tool ran, and something passed.
};

/// Returns copies that run one at a time in one direction, between GPUs or with the host, by copy engines or, between
/// GPUs, by SMs. Failed tests become findings. Lists all other tests in passed_over, such as those of both directions,
/// of latency, or of several nodes.
ToolResults results_of(const BandwidthRun& run);

/// Returns the largest copies of a record of `commfuse-validate links --copies`, if they are large enough that a copy's
/// fixed cost is negligible.
ToolResults results_of(const RunRecord& record);

/// Returns a finding for each test that failed or ended with a warning.
ToolResults results_of(const DcgmDiagnostic& diagnostic);

}  // namespace commfuse::validate
