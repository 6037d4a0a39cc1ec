// SPDX-License-Identifier: Apache-2.0
// Programs of one op, which every rank does at once: what an executor takes for it is that op's price. They run by any
// executor, as schedules do.
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

/// Requires m, n, k >= 1.
MicroProgram product_alone(std::int32_t ranks, const GemmSize& size);

/// So many bytes are read and written by a function of one or two inputs, in rows of 256 elements. The function may be
/// copy, add (of two), gelu, swiglu, norm or residual.
MicroProgram kernel_alone(std::int32_t ranks, Function function, DType dtype, Bytes traffic);

/// Every rank sends so many bytes to the next one, and receives as many. Requires two ranks, and rows of 256 elements
/// that make up `bytes`.
MicroProgram exchange_alone(std::int32_t ranks, DType wire, Bytes bytes);

/// `total` as nccl-tests counts it. Requires rows of 256 elements, one a rank at least, that make it up.
MicroProgram collective_alone(std::int32_t ranks, CollectiveKind kind, DType wire, Bytes total);

/// Small copies, one waiting for the other, on one lane ("next") or on two in turns ("wake"): how long it is from an
/// end until what waited for it begins.
MicroProgram gaps(std::int32_t ranks, bool on_two_lanes);

/// So many transfers of so many bytes, one after another, from one rank to another, while all others do nothing.
/// Requires rows of 256 elements that make up `bytes`, and two ranks of them.
MicroProgram transfers_alone(std::int32_t ranks, Rank from, Rank to, DType wire, Bytes bytes, int count);

/// The same with as many transfers back at the same time, on a lane of their own.
MicroProgram transfers_both_ways(std::int32_t ranks, Rank first, Rank second, DType wire, Bytes bytes, int count);

/// The product that all ranks do at once, and how long `rank` takes for it.
MicroProgram product_of_rank(std::int32_t ranks, Rank rank, const GemmSize& size);

enum class Watched : std::uint8_t { product, exchange };
/// A product, and beside it on another lane so many exchanges, one after another; one of both is measured.
MicroProgram beside_each_other(std::int32_t ranks, const GemmSize& size, Bytes bytes, int exchanges, Watched watched);

/// What one run of it says: how long its op took on the rank where it took longest, since the others wait for that one
/// sooner or later, or on the one rank that it is about; of gaps every gap; of exchanges beside a product those that
/// begin and end while it runs; of transfers each, from when both ranks stood ready; of transfers both ways each pair,
/// from when the first of both stood ready until both have arrived.
std::vector<Duration> samples_in(const MicroProgram& micro, const Timeline& spans);

}  // namespace commfuse::validate
