// SPDX-License-Identifier: Apache-2.0
// Extracts times of single ops from a schedule, in the form of micro-benchmarks, so that fits can read both.
#pragma once

#include <vector>

#include "model/program/program.h"
#include "model/program/sizes.h"
#include "model/record/run_record.h"

namespace commfuse::validate {

/// Adds the spans of one traced run to those of the same op and size. A GEMM or kernel counts by its slowest rank; an
/// exchange in which all ranks send and receive counts by the slowest rank, from when it, the rank it sends to and the
/// rank it receives from were ready; a collective over all ranks counts from the last start to the last end. Skipped
/// are attention, GEMMs that add to existing values or are parts of a kernel, half exchanges, credits, and collectives
/// over one of several axes. `spans` are of all ops, in order of rank, then op.
void add_op_samples(const Program& program, const Sizes& sizes, const Timeline& spans, std::vector<MicroBenchmark>& to);

}  // namespace commfuse::validate
