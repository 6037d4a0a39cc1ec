// SPDX-License-Identifier: Apache-2.0
#include "model/cost/gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "model/check.h"
#include "model/cost/op_time.h"

namespace commfuse {

namespace {

/// Sizes are powers of two, kept as exponents: a shift where a division would cost more than all the rest.
struct Tile {
  int m_shift;
  int n_shift;
  std::int64_t m() const { return std::int64_t{1} << m_shift; }
  std::int64_t n() const { return std::int64_t{1} << n_shift; }
  double cells() const { return static_cast<double>(std::int64_t{1} << (m_shift + n_shift)); }
  std::int64_t covering(std::int64_t rows, std::int64_t columns) const {
    return ((rows + m() - 1) >> m_shift) * ((columns + n() - 1) >> n_shift);
  }
};

// The tiles of cuBLAS on recent NVIDIA parts that matter; large first, so that a tie goes to the large one: 256 x 128,
// 128 x 256, 128 x 128, 256 x 64, 64 x 256, 128 x 64, 64 x 128, 64 x 64.
constexpr std::array<Tile, 8> tiles{{{8, 7}, {7, 8}, {7, 7}, {8, 6}, {6, 8}, {7, 6}, {6, 7}, {6, 6}}};
using TileCounts = std::array<std::int64_t, tiles.size()>;

constexpr int loop_step_shift = 6;               // A k loop runs in whole steps of 64 columns.
constexpr std::int64_t least_split_depth = 128;  // A part of a split k loop is at least this deep.
constexpr int most_split_shift = 6;              // Into at most 64 parts.
constexpr double cached_share_of_l2 = 0.6;       // Prior: the part of L2 that still holds what the op before wrote.
constexpr double accumulator_bytes = 4.0;

/// One choice of tile and split.
struct Choice {
  double loops = std::numeric_limits<double>::infinity();  // Seconds.
  Tile tile{};
  std::int64_t units = 0;  // Tiles x splits, spread over the SMs.
  std::int64_t waves = 0;
};

double bytes(std::int64_t rows, std::int64_t columns, DType dtype) {
  return static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(bytes_of(dtype));
}

double hbm_rate(const Accelerator& accelerator, const GemmParameters& parameters, int sms) {
  return std::min(accelerator.hbm_bandwidth.value.value * parameters.hbm_efficiency.value,
                  static_cast<double>(sms) * accelerator.sm_bandwidth.value.value);
}

double memory_seconds(const Accelerator& accelerator, const GemmParameters& parameters, const GemmSize& size,
                      double rate) {
  const double input = bytes(size.m, size.k, size.dtype);
  const double cached = std::min(input, cached_share_of_l2 * static_cast<double>(accelerator.l2_capacity.count));
  const double output = bytes(size.m, size.n, size.out.value_or(size.dtype));
  const double traffic = bytes(size.k, size.n, size.dtype) + (input - cached) +
                         parameters.cached_input_cost.value * cached + parameters.output_cost.value * output;
  return (size.accumulate ? traffic + output : traffic) / rate;
}

/// How many of each tile cover the product.
TileCounts count_tiles(const GemmSize& size) {
  TileCounts counts{};
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    counts[i] = tiles[i].covering(size.m, size.n);
  }
  return counts;
}

/// ceil(units / sms); a 32-bit division where it will do, because it is several times faster.
std::int64_t waves_of(std::int64_t units, int sms) {
  const std::int64_t filled = units + sms - 1;
  return filled <= std::numeric_limits<std::uint32_t>::max()
             ? std::int64_t{static_cast<std::uint32_t>(filled) / static_cast<std::uint32_t>(sms)}
             : filled / sms;
}

/// Seconds a cell of a tile takes when the k loop runs in `splits` parts.
double seconds_a_cell(const GemmSize& size, int split_shift, double sm_rate) {
  const int shift = loop_step_shift + split_shift;
  const std::int64_t steps = (size.k + (std::int64_t{1} << shift) - 1) >> shift;
  return 2.0 * static_cast<double>(steps << loop_step_shift) / sm_rate;
}

/// The fastest tile; with the k loop split, only tiles whose parts fit one wave, and there may be none.
Choice fastest_tile(const TileCounts& counts, int sms, int split_shift, double a_cell, double wave_overhead) {
  Choice best;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const std::int64_t units = counts[i] << split_shift;
    if (split_shift > 0 && units > sms) {
      continue;
    }
    const std::int64_t waves = units <= sms ? 1 : waves_of(units, sms);
    const double loops = static_cast<double>(waves) * (tiles[i].cells() * a_cell + wave_overhead);
    if (loops < best.loops) {
      best = {loops, tiles[i], units, waves};
    }
  }
  return best;
}

double join_seconds(const GemmParameters& parameters, const GemmSize& size, std::int64_t splits, double rate) {
  if (splits == 1) {
    return 0.0;
  }
  const double cells = static_cast<double>(size.m) * static_cast<double>(size.n) * static_cast<double>(splits);
  return to_seconds(parameters.split_overhead.value) + accumulator_bytes * cells / rate;
}

GemmEstimate describe(const Choice& choice, std::int64_t splits, int sms, double memory) {
  const std::int64_t last_wave = choice.units - (choice.waves - 1) * sms;
  return {.tile_m = static_cast<int>(choice.tile.m()),
          .tile_n = static_cast<int>(choice.tile.n()),
          .splits = static_cast<int>(splits),
          .waves = choice.waves,
          .last_wave_fill = static_cast<double>(last_wave) / sms,
          .memory_bound = memory > choice.loops};
}

}  // namespace

Bytes compulsory_traffic(const GemmSize& size) {
  const std::int64_t touches = size.accumulate ? 2 : 1;
  return {bytes_of(size.dtype) * (size.m * size.k + size.k * size.n) +
          touches * bytes_of(size.out.value_or(size.dtype)) * size.m * size.n};
}

GemmEstimate estimate_gemm(const Accelerator& accelerator, const GemmSize& size, int sms) {
  check(size.m >= 1 && size.n >= 1 && size.k >= 1, "a matrix product has m, n, k of at least 1");
  check(sms >= 1 && sms <= accelerator.sms, "the SM budget lies between 1 and what the accelerator has");
  const MatrixUnit& unit = accelerator.matrix_unit(size.dtype);
  const GemmParameters& parameters = unit.gemm;
  const double sm_rate = unit.dense_peak.value.value * parameters.loop_efficiency.value / accelerator.sms;
  const double wave_overhead = to_seconds(parameters.wave_overhead.value);
  const double rate = hbm_rate(accelerator, parameters, sms);
  const double memory = memory_seconds(accelerator, parameters, size, rate);

  const TileCounts counts = count_tiles(size);
  const std::int64_t fewest = *std::min_element(counts.begin(), counts.end());

  double least = std::numeric_limits<double>::infinity();
  GemmEstimate estimate;
  for (int shift = 0; shift <= most_split_shift; ++shift) {
    const std::int64_t splits = std::int64_t{1} << shift;
    if (shift > 0 && (size.k < splits * least_split_depth || splits * fewest > sms)) {
      break;
    }
    const Choice choice = fastest_tile(counts, sms, shift, seconds_a_cell(size, shift, sm_rate), wave_overhead);
    const double seconds =
        std::sqrt(choice.loops * choice.loops + memory * memory) + join_seconds(parameters, size, splits, rate);
    if (seconds < least) {
      least = seconds;
      estimate = describe(choice, splits, sms, memory);
    }
  }
  const double total = to_seconds(parameters.ramp.value) + least;
  estimate.time = std::max(accelerator.kernel_floor.value, op_time(total, "a matrix product"));
  return estimate;
}

}  // namespace commfuse
