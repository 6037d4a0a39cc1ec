// SPDX-License-Identifier: Apache-2.0
// Programs of one op, which every rank runs at once: the executor's time for it is the op's price. Any executor runs
// them, like schedules.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/cost/gemm.h"
#include "model/program/program.h"
#include "model/program/recorder.h"
#include "model/program/sizes.h"
#include "model/record/run_record.h"

namespace commfuse::validate {

struct MicroProgram {
  std::shared_ptr<const Program> program;
  Sizes sizes;
  MicroBenchmark what;  ///< Without samples.
};

/// Returns one GEMM on every rank. Requires m, n, k >= 1.
MicroProgram product_alone(std::int32_t ranks, const GemmSize& size);

/// Returns a kernel that reads and writes this many bytes, with one or two inputs, in rows of 256 elements. The
/// function may be copy, add (with two inputs), gelu, swiglu, norm or residual.
MicroProgram kernel_alone(std::int32_t ranks, Function function, DType dtype, Bytes traffic);

/// Returns an exchange in which every rank sends this many bytes to the next one, and receives as many. Requires two
/// ranks, and rows of 256 elements that make up `bytes`.
MicroProgram exchange_alone(std::int32_t ranks, DType wire, Bytes bytes);

/// Place of the buffers of a collective. In place, the input of an all-gather is its own part of the output, the output
/// of a reduce-scatter its own part of the input, and both buffers of an all-reduce are one.
enum class Placing : std::uint8_t { out_of_place, in_place };
/// Returns whether a collective can be in place: all but an all-to-all.
constexpr bool can_be_in_place(CollectiveKind kind) { return kind != CollectiveKind::all_to_all; }

/// Returns a collective; `total` counts bytes like nccl-tests. Requires rows of 256 elements, at least one per rank,
/// that make up `total`, and a kind that can be placed so.
MicroProgram collective_alone(std::int32_t ranks, CollectiveKind kind, DType wire, Bytes total,
                              Placing placing = Placing::out_of_place);

/// Returns small copies, each waiting for the one before, on one lane ("next") or alternating between two ("wake"):
/// they measure the time from an end until the op that waited for it begins.
MicroProgram gaps(std::int32_t ranks, bool on_two_lanes);

/// Returns this many transfers of this many bytes, one after another, from one rank to another, while all others are
/// idle. Requires rows of 256 elements that make up `bytes`, and two ranks.
MicroProgram transfers_alone(std::int32_t ranks, Rank from, Rank to, DType wire, Bytes bytes, int count);

/// Returns the same with as many transfers back at the same time, on a lane of their own.
MicroProgram transfers_both_ways(std::int32_t ranks, Rank first, Rank second, DType wire, Bytes bytes, int count);

/// Returns the GEMM that all ranks run at once, to measure the time of `rank`.
MicroProgram product_of_rank(std::int32_t ranks, Rank rank, const GemmSize& size);

enum class Watched : std::uint8_t { product, exchange };
/// Returns a GEMM, and beside it on another lane this many exchanges, one after another; one of the two is measured.
MicroProgram beside_each_other(std::int32_t ranks, const GemmSize& size, Bytes bytes, int exchanges, Watched watched);

/// Returns the samples of one run: the time of its op on the slowest rank, since the others wait for that one sooner or
/// later, or on the single rank that it measures; for gaps every gap; for exchanges beside a GEMM those that begin and
/// end while it runs; for transfers the time of each from when both ranks were ready;
/// for transfers both ways the time of each pair, from when the first of both was ready until both have arrived.
std::vector<Duration> samples_in(const MicroProgram& micro, const Timeline& spans);

}  // namespace commfuse::validate
