// SPDX-License-Identifier: Apache-2.0
// Kernels that move data between virtual ranks with a given number of CTAs. With a pace, a move takes at least as long
// as on a link of that pace.
#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "validate/cuda/module/clocks.cuh"
#include "validate/cuda/module/failures.h"
#include "validate/cuda/module/kernels.h"
#include "validate/cuda/module/numbers.cuh"

namespace commfuse::validate {

namespace {

constexpr unsigned threads = 512;
/// Loads in flight per thread: 512 threads with 4 x 16 bytes keep one multiprocessor's share of a fast link busy.
constexpr unsigned loads_in_flight = 4;
constexpr std::size_t max_pieces = 32;  // pieces of a launch, whose table is a kernel argument

/// A rectangle of units of memory, or of elements that change their dtype.
struct Piece {
  View from, to;              // pieces of bytes have strides in bytes
  std::uint32_t rows = 0;     // only pieces of bytes have rows here
  std::uint32_t columns = 0;  // units in a row of a piece of bytes
  std::int16_t unit = 0;      // bytes of a unit; 0: elements
  std::int16_t bits = 0;      // pieces of bytes: log2 of the number of neighbouring threads in a row
  bool aligned = false;
  Tiles tiles;  // only pieces of elements have tiles
};

struct Batch {
  Piece pieces[max_pieces];
  int count = 0;
  DType wire = DType::bf16;
  std::int64_t* clock = nullptr;
  bool notes_start = false;   // stores the start in the clock, for a later launch
  bool since_clock = false;   // counts the pace from the clock, not from the start of the CTA
  std::int64_t hold_ns = -1;  // -1: no pace
};

template <class Unit>
__device__ void copy_units(const Piece& piece) {
  const std::uint32_t width = 1U << piece.bits;
  const std::uint32_t height = threads >> piece.bits;
  const std::uint32_t step = gridDim.x * height;
  const auto at = [](const View& view, std::uint32_t row) {
    return view.at + static_cast<Address>(std::int64_t{row} * view.stride);
  };
  for (std::uint32_t row = blockIdx.x * height + (threadIdx.x >> piece.bits); row < piece.rows;
       row += loads_in_flight * step) {
    for (std::uint32_t column = threadIdx.x & (width - 1U); column < piece.columns; column += width) {
      Unit loaded[loads_in_flight];
#pragma unroll
      for (unsigned i = 0; i < loads_in_flight; ++i) {
        if (row + i * step < piece.rows) {
          loaded[i] = reinterpret_cast<const Unit*>(at(piece.from, row + i * step))[column];
        }
      }
#pragma unroll
      for (unsigned i = 0; i < loads_in_flight; ++i) {
        if (row + i * step < piece.rows) {
          reinterpret_cast<Unit*>(at(piece.to, row + i * step))[column] = loaded[i];
        }
      }
    }
  }
}

template <DType wire>
__device__ void round_all(Eight& part) {
#pragma unroll
  for (float& value : part.value) {
    value = rounded(wire, value);
  }
}

template <class From, class To>
__device__ void convert(const Piece& piece, DType wire) {
  piece.tiles.for_each(blocks_along_rows(), threads, [&](std::int64_t row, std::int64_t column, int count) {
    Eight part = load_eight<From>(piece.from, row, column, count, piece.aligned);
    if (wire == DType::bf16) {
      round_all<DType::bf16>(part);
    } else if (wire == DType::fp16) {
      round_all<DType::fp16>(part);
    } else if (wire == DType::fp8) {
      round_all<DType::fp8>(part);
    }
    store_eight<To>(piece.to, row, column, part, count, piece.aligned);
  });
}

/// From, To: dtypes of all pieces that change their dtype.
template <class From, class To>
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
      case 8: copy_units<std::uint64_t>(piece); break;
      case 4: copy_units<std::uint32_t>(piece); break;
      case 2: copy_units<std::uint16_t>(piece); break;
      case 1: copy_units<std::uint8_t>(piece); break;
      default: convert<From, To>(piece, batch.wire);
    }
  }
  if (batch.hold_ns >= 0) {
    __syncthreads();
    if (threadIdx.x == 0) {
      wait_until((batch.since_clock ? *batch.clock : begin) + batch.hold_ns);
    }
  }
}

/// Returns the largest unit that divides all values whose bitwise or is `combined`.
std::int16_t unit_of(std::int64_t combined) {
  for (const std::int16_t unit : {std::int16_t{16}, std::int16_t{8}, std::int16_t{4}, std::int16_t{2}}) {
    if (combined % unit == 0) {
      return unit;
    }
  }
  return 1;
}

Piece bytes_piece(Address from, Address to, std::int64_t rows, std::int64_t bytes, std::int64_t from_stride,
                  std::int64_t to_stride) {
  const auto addresses = static_cast<std::int64_t>((from | to) % 16);
  const std::int16_t unit = unit_of(rows == 1 ? addresses | bytes : addresses | bytes | from_stride | to_stride);
  constexpr std::int64_t max_rows = (std::int64_t{1} << 31) - 1;
  require(rows <= max_rows && bytes / unit <= max_rows,
          "a move has fewer than 2^31 rows and fewer than 2^31 units per row");
  Piece piece{.from = {from, from_stride},
              .to = {to, to_stride},
              .rows = static_cast<std::uint32_t>(rows),
              .columns = static_cast<std::uint32_t>(bytes / unit),
              .unit = unit};
  while ((1U << piece.bits) < piece.columns && (1U << piece.bits) < threads) {
    ++piece.bits;
  }
  return piece;
}

/// Cuts contiguous bytes into rows that keep all threads of a CTA busy, and a remainder.
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

Piece changed_piece(const Panel& from, const Panel& to) {
  return {.from = view_of(from),
          .to = view_of(to),
          .aligned = is_aligned(from) && is_aligned(to),
          .tiles = tiles_of(from.rows, from.columns, threads)};
}

/// Adds elements that change their dtype. Contiguous elements are cut as in add_flat().
void add_changed(std::vector<Piece>& pieces, const Panel& from, const Panel& to) {
  constexpr std::int64_t row = std::int64_t{threads} * Eight::size;
  const std::int64_t elements = from.rows * from.columns;
  if (!from.contiguous() || !to.contiguous() || elements < row) {
    pieces.push_back(changed_piece(from, to));
    return;
  }
  const std::int64_t rows = elements / row;
  const auto part = [&](const Panel& panel, std::int64_t first, std::int64_t height, std::int64_t columns) {
    return Panel{panel.at + static_cast<Address>(first * bytes_of(panel.dtype)), height, columns, columns, panel.dtype};
  };
  pieces.push_back(changed_piece(part(from, 0, rows, row), part(to, 0, rows, row)));
  if (const std::int64_t rest = elements - rows * row; rest > 0) {
    pieces.push_back(changed_piece(part(from, rows * row, 1, rest), part(to, rows * row, 1, rest)));
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
    if (!keeps_bytes(part, call.wire)) {
      add_changed(pieces, from, to);
    } else if (from.contiguous() && to.contiguous()) {
      add_flat(pieces, from.at, to.at, from.bytes().count);
    } else {
      pieces.push_back(
          bytes_piece(from.at, to.at, from.rows, from.columns * size, from.stride * size, to.stride * size));
    }
  }
  return pieces;
}

/// Returns the link's time for the whole move, in nanoseconds; -1 if it has no pace.
std::int64_t hold_of(const MoveCall& call) {
  if (call.link.kind != LinkKind::paced) {
    return -1;
  }
  require(call.link.pace.bandwidth.value > 0.0, "a paced link has a bandwidth");
  Bytes bytes;
  for (const MoveCall::Part& part : call.parts) {
    bytes += {part.from.rows * part.from.columns * bytes_of(call.wire)};
  }
  const Duration time = call.link.pace.latency + bytes / call.link.pace.bandwidth;
  return std::chrono::ceil<std::chrono::nanoseconds>(time).count();
}

using Kernel = void (*)(Batch);

/// Returns a kernel for known dtypes if all pieces that change their dtype do so in the same way, as those of one
/// message do.
Kernel kernel_of(std::span<const Piece> pieces) {
  const Piece* changed = nullptr;
  for (const Piece& piece : pieces) {
    if (piece.unit != 0) {
      continue;
    }
    if (changed != nullptr && (piece.from.dtype != changed->from.dtype || piece.to.dtype != changed->to.dtype)) {
      return move<AnyDtype, AnyDtype>;
    }
    changed = &piece;
  }
  const View bytes{.at = 0, .stride = 0, .dtype = DType::fp32};
  const View& from_view = changed == nullptr ? bytes : changed->from;
  const View& to_view = changed == nullptr ? bytes : changed->to;
  return with_known_sent(from_view.dtype, [&](auto from) {
    return with_known_sent(to_view.dtype, [](auto to) -> Kernel { return move<decltype(from), decltype(to)>; });
  });
}

}  // namespace

bool keeps_bytes(const MoveCall::Part& part, DType wire) { return part.from.dtype == wire && part.to.dtype == wire; }

void launch_move(cudaStream_t stream, const MoveCall& call, int ctas, std::int64_t* clock) {
  require(ctas > 0 && ctas <= max_blocks_along_y,
          "a move has 1 to 65535 CTAs");  // more could overflow the 32-bit row counters, which run past the last row
  const std::vector<Piece> pieces = pieces_of(call);
  const std::int64_t hold = hold_of(call);
  const std::size_t launches = std::max<std::size_t>((pieces.size() + max_pieces - 1) / max_pieces, 1);
  for (std::size_t i = 0; i < launches; ++i) {
    const auto table = std::span(pieces).subspan(std::min(i * max_pieces, pieces.size()));
    Batch batch{.count = static_cast<int>(std::min(table.size(), max_pieces)),
                .wire = call.wire,
                .clock = clock,
                .notes_start = hold >= 0 && i == 0 && launches > 1,
                .since_clock = launches > 1,
                .hold_ns = i + 1 == launches ? hold : -1};
    std::copy_n(table.begin(), batch.count, batch.pieces);
    launch("move", kernel_of(table.first(static_cast<std::size_t>(batch.count))),
           {static_cast<unsigned>(ctas), threads, stream}, batch);
    require(cudaGetLastError(), "a move kernel");
  }
}

}  // namespace commfuse::validate
