// SPDX-License-Identifier: Apache-2.0
// A priced schedule as GOAL text, which LogGOPSim and ATLAHS take through their txt2bin.
//
//   num_ranks 2
//
//   rank 0 {
//   op0_send: send 32768b to 1 tag 0 cpu 0
//   op1: calc 10000 cpu 1
//   op1 requires op0_send
//   }
//
// Grammar: txt2bin.re of LogGOPSim 76451de (lines do not begin or end with blanks, comments stand on lines of their
// own, a label is there before it is named). A calc is whole nanoseconds, a lane is a cpu, so lanes never share one;
// the host is the cpu behind them. Lanes that communicate have a nic each. GOAL knows no collectives: they are spelled
// out as messages.
#pragma once

#include <string>

#include "reports/export/tasks.h"

namespace commfuse::reports {

/// Returns the text before the first rank. Throws ConfigError if the program has more lanes than GOAL has CPUs.
std::string goal_head(const ExportInput& input);
/// Returns the text of one rank. The whole text is the head, then all ranks in order.
std::string goal_of(const ExportInput& input, Rank rank, MessageOrder messages);

}  // namespace commfuse::reports
