// SPDX-License-Identifier: Apache-2.0
// What single ops took inside a schedule, in the form of micro-benchmarks, so that fits can read both.
#pragma once

#include <vector>

#include "model/program/program.h"
#include "model/program/sizes.h"
#include "model/record/run_record.h"

namespace commfuse::validate {

/// Adds what the spans of one traced run say to those of the same op and size. A product or kernel counts by the rank
/// where it took longest; an exchange in which all ranks send and receive from when it, the rank it sends to and the
/// one it receives from stood ready, by the rank where that took longest; a collective over all ranks from the last
/// one's start to the last one's end. Passed over: attention, products that add to what is there or are parts of a
/// kernel, half exchanges, credits, and collectives over one of several axes. `spans` are of all ops, in order of rank,
/// then op.
void add_op_samples(const Program& program, const Sizes& sizes, const Timeline& spans, std::vector<MicroBenchmark>& to);

}  // namespace commfuse::validate
