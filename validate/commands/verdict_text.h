// SPDX-License-Identifier: Apache-2.0
// Writes verdicts as a table, JSON, JUnit, Prometheus or Markdown.
#pragma once

#include <string>
#include <vector>

#include "validate/verdict/verdicts.h"

namespace commfuse::validate {

/// Facts that are printed with the verdicts.
struct VerdictPage {
  std::string machine;  ///< Empty if no node was judged.
  double false_alarms = 0.01;
  std::vector<std::string> unread;
  std::vector<std::string> passed_over;
  bool has_rows = false;  ///< True to show every measurement with its expected value.
};

std::string verdict_table(const Verdicts& verdicts, const VerdictPage& page);
/// Returns an array of objects: one per node, one for the fleet if there is a verdict on it, then one per job.
std::string verdict_json(const Verdicts& verdicts, const VerdictPage& page);
/// Returns one test case per node, for the fleet and per job: a failure if it is bad, skipped if it is undecided. Each
/// unread file is an error.
std::string verdict_junit(const Verdicts& verdicts, const VerdictPage& page);
/// Returns metrics for the textfile collector of node_exporter.
std::string verdict_prometheus(const Verdicts& verdicts, const VerdictPage& page);
/// Returns text for a ticket.
std::string verdict_markdown(const Verdicts& verdicts, const VerdictPage& page);

}  // namespace commfuse::validate
