// SPDX-License-Identifier: Apache-2.0
// What every rank computes, sends and receives in every step, in words: a schedule to read beside the paper's figure.
#pragma once

#include <string>

#include "model/program/program.h"

namespace commfuse {

/// From the lowered commands and their symbolic contents. Steps as in the paper: products, exchanges and collectives
/// take one each, what is local takes none and is shown in the step whose end it waits for.
/// Requires a program that passed check_program().
std::string step_table(const Program& program);

}  // namespace commfuse
