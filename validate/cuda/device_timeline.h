// SPDX-License-Identifier: Apache-2.0
// Turns the spans of a device's tracer into a timeline of ops.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "model/program/recorder.h"
#include "validate/cuda/driver.h"

namespace commfuse::validate {

/// Labels of issued work: the gate, other work that belongs to no op, the barrier that starts all ranks together, and
/// then the steps of a plan.
inline constexpr std::uint64_t gate_label = 0;
inline constexpr std::uint64_t frame_label = 1;
inline constexpr std::uint64_t align_label = 2;
inline constexpr std::uint64_t first_step_label = 3;

/// An op on a rank.
using OpHere = std::pair<Rank, OpId>;

/// Returns the timeline of the last iteration. `ops` has, for each step, the ops to which the step's kernels belong; an
/// op lasts from the start of its first kernel to the end of its last. Time zero is the end of the barrier that starts
/// all ranks; without a barrier, the end of the gate; without either, the start of the first span.
Timeline device_timeline(std::span<const DeviceSpan> spans, std::span<const std::vector<OpHere>> ops, int iterations);

}  // namespace commfuse::validate
