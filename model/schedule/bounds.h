// SPDX-License-Identifier: Apache-2.0
// Does a program hold together? Everything later relies on it and looks nothing up twice.
#pragma once

#include "model/schedule/findings.h"
#include "model/schedule/program.h"

namespace commfuse {

/// Ids and pools, shapes and operands that fit each other, waits for earlier ops only, and on every rank every region
/// inside its buffer and every content inside its tensor.
void check_bounds(const Program& program, Findings& findings);

}  // namespace commfuse
