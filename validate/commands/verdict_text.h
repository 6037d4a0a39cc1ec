// SPDX-License-Identifier: Apache-2.0
// Verdicts as text: a table, JSON, JUnit, Prometheus, Markdown.
#pragma once

#include <string>
#include <vector>

#include "validate/verdict/verdicts.h"

namespace commfuse::validate {

/// What is said around the verdicts.
struct VerdictPage {
  std::string machine;  ///< Empty where no node was judged.
  double false_alarms = 0.01;
  std::vector<std::string> unread;
  std::vector<std::string> passed_over;
  bool has_rows = false;  ///< Every measurement beside what was expected.
};

std::string verdict_table(const Verdicts& verdicts, const VerdictPage& page);
/// An array of objects, one a node, then one a job.
std::string verdict_json(const Verdicts& verdicts, const VerdictPage& page);
/// One test case a node and a job: a failure where it is bad, skipped where it is undecided; an error for each unread
/// file.
std::string verdict_junit(const Verdicts& verdicts, const VerdictPage& page);
/// For the textfile collector of node_exporter.
std::string verdict_prometheus(const Verdicts& verdicts, const VerdictPage& page);
/// For a ticket.
std::string verdict_markdown(const Verdicts& verdicts, const VerdictPage& page);

}  // namespace commfuse::validate
