// SPDX-License-Identifier: Apache-2.0
// Proves a program that a user wrote, including what its author states about its work.
#pragma once

#include "model/program/program.h"
#include "model/proof/findings.h"

namespace commfuse {

/// Returns check_program() and, if that has no findings, compares `unfused` with the ops and with the final contents.
/// Prices, compute time and MFU follow from `unfused`, so `unfused` may state neither more GEMMs or attention than the
/// essential ops compute on the average rank, nor fewer than the final contents of all ranks need together, divided by
/// the ranks. Ops may compute a block several times, so `unfused` may state fewer than the ops compute. Elementwise
/// functions in `unfused` are not compared.
CheckReport check_written(const Program& program);

}  // namespace commfuse
