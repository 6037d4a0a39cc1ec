// SPDX-License-Identifier: Apache-2.0
// Describes in words what every rank computes, sends and receives in every step, for comparison with a paper's figure.
#pragma once

#include <string>

#include "model/program/program.h"

namespace commfuse {

/// Returns the table, made from the lowered commands and their symbolic contents. Steps are counted as in such figures:
/// every op takes one step, except local ops and credits, which take none and appear in the step at whose end they run.
/// Requires `program` to have passed check_program().
std::string step_table(const Program& program);

}  // namespace commfuse
