// SPDX-License-Identifier: Apache-2.0
// Programs that measure one op, which all ranks or one pair of ranks run simultaneously: the time that the executor
// needs is the price of the op. Like schedules, these programs run on any executor.
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

/// Elements of one row of a kernel, exchange, collective or transfer.
inline constexpr std::int64_t row_elements = 256;

/// Consecutive transfers of a pair of ranks in one run of its program.
inline constexpr int transfers_per_run = 4;

struct MicroProgram {
  std::shared_ptr<const Program> program;
  Sizes sizes;
  MicroBenchmark what;  ///< Without samples.
};

/// Returns one GEMM on every rank. Requires m, n, k >= 1.
MicroProgram product_alone(std::int32_t ranks, const GemmSize& size);

/// Returns a kernel with one or two inputs that reads and writes at most `traffic` bytes in total: as many whole rows
/// of 256 elements as fit. The function may be copy, add (with two inputs), gelu, swiglu, norm or residual. Requires
/// `traffic` to suffice for one row.
MicroProgram kernel_alone(std::int32_t ranks, Function function, DType dtype, Bytes traffic);

/// Returns an exchange in which every rank sends `bytes` to the next rank and receives the same number of bytes.
/// Requires at least two ranks, and `bytes` that make up whole rows of 256 elements.
MicroProgram exchange_alone(std::int32_t ranks, DType wire, Bytes bytes);

/// Placement of the buffers of a collective. In place, the input of an all-gather is the rank's own part of the output,
/// the output of a reduce-scatter is its own part of the input, and an all-reduce has a single buffer.
enum class Placing : std::uint8_t { out_of_place, in_place };
/// Returns whether a collective can run in place: all but an all-to-all can.
constexpr bool can_be_in_place(CollectiveKind kind) { return kind != CollectiveKind::all_to_all; }

/// Returns a collective; `total` counts bytes as nccl-tests does. Requires that `total` makes up whole rows of 256
/// elements, the same number for every rank and at least one, and that the kind supports `placing`.
MicroProgram collective_alone(std::int32_t ranks, CollectiveKind kind, DType wire, Bytes total,
                              Placing placing = Placing::out_of_place);

/// Returns small copies, each of which waits for the previous one, on one lane ("next") or alternating between two
/// lanes ("wake"). They measure the time from the end of an op to the start of the op that waits for it.
MicroProgram gaps(std::int32_t ranks, bool on_two_lanes);

/// Returns `count` transfers of `bytes` each, one after another, from one rank to another, while all other ranks are
/// idle. Requires two different ranks, and `bytes` that make up whole rows of 256 elements.
MicroProgram transfers_alone(std::int32_t ranks, Rank from, Rank to, DType wire, Bytes bytes, int count);

/// Like transfers_alone(), but with as many simultaneous transfers in the opposite direction, on another lane.
MicroProgram transfers_both_ways(std::int32_t ranks, Rank first, Rank second, DType wire, Bytes bytes, int count);

/// Returns a GEMM that all ranks run simultaneously; only its time on `rank` is measured.
MicroProgram product_of_rank(std::int32_t ranks, Rank rank, const GemmSize& size);

enum class Watched : std::uint8_t { product, exchange };
/// Returns a GEMM, and on another lane `exchanges` exchanges, one after another. `watched` selects whether the GEMM or
/// the exchanges are measured.
MicroProgram beside_each_other(std::int32_t ranks, const GemmSize& size, Bytes bytes, int exchanges, Watched watched);

/// Returns the samples of one run. The sample of an op is its time on the single rank that the program measures, or
/// else on the slowest rank, because the others wait for that rank sooner or later. Gaps: every gap. Exchanges next to
/// a GEMM: those that begin and end while the GEMM runs. Transfers: the time of each, from when both ranks were ready.
/// Transfers both ways: the time of each pair, from when the first of the two was ready until both have arrived.
std::vector<Duration> samples_in(const MicroProgram& micro, const Timeline& spans);

}  // namespace commfuse::validate
