// SPDX-License-Identifier: Apache-2.0
// Proves a program that a user wrote: also what its author states about its work.
#pragma once

#include "model/program/program.h"
#include "model/proof/findings.h"

namespace commfuse {

/// Returns check_program() and, if that has no findings, compares `unfused` with the ops. Prices, compute time and MFU
/// follow from `unfused`, so it may not state more GEMMs or attention than the essential ops compute on the average
/// rank. It may state less, because ops may compute a block several times.
CheckReport check_written(const Program& program);

}  // namespace commfuse
