// SPDX-License-Identifier: Apache-2.0
// Extracts times of single ops from a run of a schedule, in the form of micro-benchmarks, which fits also read.
#pragma once

#include <vector>

#include "model/program/program.h"
#include "model/program/sizes.h"
#include "model/record/run_record.h"

namespace commfuse::validate {

/// Adds the times of one traced run to the micro-benchmarks of the same op and size. The time of a GEMM or kernel is
/// that of its slowest rank. The time of an exchange in which all ranks send and receive is also that of the slowest
/// rank, from the moment when the rank and both its neighbours in the exchange are ready. The time of a collective over
/// all ranks is from the last start to the last end. Skips attention, GEMMs that add to existing values or are parts of
/// a kernel, exchanges that only send or only receive, credits, and collectives over one of several axes. `spans` must
/// contain all ops, in order of rank, then op.
void add_op_samples(const Program& program, const Sizes& sizes, const Timeline& spans, std::vector<MicroBenchmark>& to);

}  // namespace commfuse::validate
