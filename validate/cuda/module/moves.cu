// SPDX-License-Identifier: Apache-2.0
// Kernels that move data between virtual ranks: so many CTAs, and as long as a link of a stated pace would take.
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "validate/cuda/module/clocks.cuh"
#include "validate/cuda/module/failures.h"
#include "validate/cuda/module/kernels.h"
#include "validate/cuda/module/numbers.cuh"

namespace commfuse::validate {

namespace {

constexpr int threads = 512;
/// Loads in flight of a thread: 512 threads of 4 x 16 bytes keep one multiprocessor's share of a fast link busy.
constexpr int at_once = 4;
constexpr std::size_t most_pieces = 32;  // of a launch: their table travels with it

/// A rectangle of units of memory, or of elements that change their dtype.
struct Piece {
  View from, to;  // bytes: strides are in bytes
  std::int64_t rows = 0;
  std::int64_t columns = 0;  // bytes: units
  std::int16_t unit = 0;     // bytes of a unit; 0: elements
  std::int16_t width = 1;    // bytes: neighbouring threads in a row, a power of two
  bool aligned = false;
};

struct Batch {
  Piece pieces[most_pieces];
  int count = 0;
  DType wire = DType::bf16;
  std::int64_t* clock = nullptr;
  bool notes_start = false;   // into the clock, for a later launch
  bool since_clock = false;   // the pace counts from there, not from the CTA's own start
  std::int64_t hold_ns = -1;  // no pace: -1
};

template <class Unit>
__device__ void copy_units(const Piece& piece) {
  const std::int64_t x = threadIdx.x % static_cast<unsigned>(piece.width);
  const std::int64_t tall = threads / piece.width;
  const std::int64_t step = gridDim.x * tall;
  const std::int64_t first = blockIdx.x * tall + threadIdx.x / static_cast<unsigned>(piece.width);
  for (std::int64_t row = first; row < piece.rows; row += at_once * step) {
    for (std::int64_t column = x; column < piece.columns; column += piece.width) {
      Unit held[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        if (const std::int64_t at = row + i * step; at < piece.rows) {
          held[i] = reinterpret_cast<const Unit*>(piece.from.at + static_cast<Address>(at * piece.from.stride))[column];
        }
      }
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        if (const std::int64_t at = row + i * step; at < piece.rows) {
          reinterpret_cast<Unit*>(piece.to.at + static_cast<Address>(at * piece.to.stride))[column] = held[i];
        }
      }
    }
  }
}

__device__ void convert(const Piece& piece, DType wire) {
  const std::int64_t across = groups_of(piece.columns, Eight::size);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < piece.rows * across;
       i += step) {
    const Divided place = divided(i, across);
    const std::int64_t column = place.rest * Eight::size;
    const int count = static_cast<int>(min(piece.columns - column, static_cast<std::int64_t>(Eight::size)));
    Eight part = load_eight(piece.from, place.quotient, column, count, piece.aligned);
#pragma unroll
    for (float& value : part.value) {
      value = rounded(wire, value);
    }
    store_eight(piece.to, place.quotient, column, part, count, piece.aligned);
  }
}

__global__ void __launch_bounds__(threads) move(const __grid_constant__ Batch batch) {
  const bool keeps_time = batch.notes_start || batch.hold_ns >= 0;
  const std::int64_t begin = keeps_time ? device_time() : 0;
  if (batch.notes_start && blockIdx.x == 0 && threadIdx.x == 0) {
    *batch.clock = begin;
  }
  for (int i = 0; i < batch.count; ++i) {
    const Piece& piece = batch.pieces[i];
    switch (piece.unit) {
      case 16: copy_units<uint4>(piece); break;
      case 4: copy_units<std::uint32_t>(piece); break;
      case 2: copy_units<std::uint16_t>(piece); break;
      case 1: copy_units<std::uint8_t>(piece); break;
      default: convert(piece, batch.wire);
    }
  }
  if (batch.hold_ns >= 0) {
    __syncthreads();
    if (threadIdx.x == 0) {
      wait_until((batch.since_clock ? *batch.clock : begin) + batch.hold_ns);
    }
  }
}

/// The largest unit that divides all of these.
std::int16_t unit_of(std::int64_t all) {
  for (const std::int16_t unit : {std::int16_t{16}, std::int16_t{4}, std::int16_t{2}}) {
    if (all % unit == 0) {
      return unit;
    }
  }
  return 1;
}

Piece bytes_piece(Address from, Address to, std::int64_t rows, std::int64_t bytes, std::int64_t from_stride,
                  std::int64_t to_stride) {
  const auto addresses = static_cast<std::int64_t>((from | to) % 16);
  const std::int16_t unit = unit_of(rows == 1 ? addresses | bytes : addresses | bytes | from_stride | to_stride);
  const auto units = static_cast<std::uint64_t>(bytes / unit);
  return {.from = {from, from_stride},
          .to = {to, to_stride},
          .rows = rows,
          .columns = bytes / unit,
          .unit = unit,
          .width = static_cast<std::int16_t>(std::min<std::uint64_t>(std::bit_ceil(units), threads))};
}

/// What lies one behind the other is cut into rows that keep all threads of a CTA busy, and a rest.
void add_flat(std::vector<Piece>& pieces, Address from, Address to, std::int64_t bytes) {
  const auto addresses = static_cast<std::int64_t>((from | to) % 16);
  const std::int64_t row = std::int64_t{threads} * unit_of(addresses);
  const std::int64_t rows = bytes / row;
  if (rows > 0) {
    pieces.push_back(bytes_piece(from, to, rows, row, row, row));
  }
  if (const std::int64_t rest = bytes - rows * row; rest > 0) {
    const auto done = static_cast<Address>(rows * row);
    pieces.push_back(bytes_piece(from + done, to + done, 1, rest, rest, rest));
  }
}

std::vector<Piece> pieces_of(const MoveCall& call) {
  std::vector<Piece> pieces;
  for (const MoveCall::Part& part : call.parts) {
    const Panel& from = part.from;
    const Panel& to = part.to;
    require(from.rows == to.rows && from.columns == to.columns, "a move keeps its rows and columns");
    if (from.rows == 0 || from.columns == 0) {
      continue;
    }
    const std::int64_t size = bytes_of(from.dtype);
    if (!moves_bytes(part, call.wire)) {
      pieces.push_back({.from = view_of(from),
                        .to = view_of(to),
                        .rows = from.rows,
                        .columns = from.columns,
                        .aligned = is_aligned(from) && is_aligned(to)});
    } else if (from.contiguous() && to.contiguous()) {
      add_flat(pieces, from.at, to.at, from.bytes().count);
    } else {
      pieces.push_back(
          bytes_piece(from.at, to.at, from.rows, from.columns * size, from.stride * size, to.stride * size));
    }
  }
  return pieces;
}

/// How long the link takes for all of it; -1 where it keeps no pace.
std::int64_t hold_of(const MoveCall& call) {
  if (call.link.kind != LinkKind::paced) {
    return -1;
  }
  require(call.link.pace.bandwidth.value > 0.0, "a paced link has a bandwidth");
  Bytes all;
  for (const MoveCall::Part& part : call.parts) {
    all += {part.from.rows * part.from.columns * bytes_of(call.wire)};
  }
  const Duration time = call.link.pace.latency + all / call.link.pace.bandwidth;
  return std::chrono::ceil<std::chrono::nanoseconds>(time).count();
}

}  // namespace

bool moves_bytes(const MoveCall::Part& part, DType wire) { return part.from.dtype == wire && part.to.dtype == wire; }

void launch_move(cudaStream_t stream, const MoveCall& call, int ctas, std::int64_t* clock) {
  require(ctas > 0, "a move has a CTA");
  const std::vector<Piece> pieces = pieces_of(call);
  const std::int64_t hold = hold_of(call);
  const std::size_t launches = std::max<std::size_t>((pieces.size() + most_pieces - 1) / most_pieces, 1);
  for (std::size_t i = 0; i < launches; ++i) {
    const auto table = std::span(pieces).subspan(std::min(i * most_pieces, pieces.size()));
    Batch batch{.count = static_cast<int>(std::min(table.size(), most_pieces)),
                .wire = call.wire,
                .clock = clock,
                .notes_start = hold >= 0 && i == 0 && launches > 1,
                .since_clock = launches > 1,
                .hold_ns = i + 1 == launches ? hold : -1};
    std::copy_n(table.begin(), batch.count, batch.pieces);
    launch("move", move, {static_cast<unsigned>(ctas), threads, stream}, batch);
    require(cudaGetLastError(), "a move kernel");
  }
}

}  // namespace commfuse::validate
