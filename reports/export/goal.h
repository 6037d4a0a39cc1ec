// SPDX-License-Identifier: Apache-2.0
// A priced schedule as GOAL text, which LogGOPSim and ATLAHS read through their txt2bin.
//
//   num_ranks 2
//
//   rank 0 {
//   op0_send: send 32768b to 1 tag 0 cpu 0
//   op1: calc 10000 cpu 1
//   op1 requires op0_send
//   }
//
// Grammar: txt2bin.re of LogGOPSim 76451de (lines do not begin or end with blanks, comments are on separate lines, a
// label is defined before it is used). A calc takes whole nanoseconds. Every lane has its own cpu, and the host has the
// cpu after the last lane. Every lane that communicates has its own nic. GOAL has no collectives: they are spelled out
// as messages.
#pragma once

#include <string>

#include "reports/export/tasks.h"

namespace commfuse::reports {

/// Returns the text before the first rank. Throws ConfigError if the program has more lanes than GOAL has CPUs.
std::string goal_head(const ExportInput& input);
/// Returns the text of one rank. The whole file is goal_head(), then the texts of all ranks in order.
std::string goal_of(const ExportInput& input, Rank rank, MessageOrder messages);

}  // namespace commfuse::reports
