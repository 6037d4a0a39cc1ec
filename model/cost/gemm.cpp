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

/// Length of an edge of a tile; indexes the counts of tiles along that edge.
enum TileEdge : std::uint8_t { edge_64, edge_128, edge_192, edge_256 };
constexpr std::array<int, 4> lengths{64, 128, 192, 256};

/// Classes of tiles with the same speed in the k loop.
enum SpeedClass : std::uint8_t { large, medium, narrow, small, least };
constexpr int speed_classes = 5;

struct Tile {
  TileEdge m;
  TileEdge n;
  SpeedClass speed;
};

// The tiles that matter in cuBLAS on recent NVIDIA GPUs, largest first, so that a tie goes to the larger one.
constexpr std::array<Tile, 9> tiles{{{edge_256, edge_128, large},
                                     {edge_128, edge_256, large},
                                     {edge_192, edge_128, medium},
                                     {edge_128, edge_192, medium},
                                     {edge_128, edge_128, medium},
                                     {edge_64, edge_256, narrow},
                                     {edge_128, edge_64, small},
                                     {edge_64, edge_128, small},
                                     {edge_64, edge_64, least}}};
using TileCounts = std::array<std::int64_t, tiles.size()>;

constexpr int loop_step_shift = 6;               // a k loop runs in whole steps of 64 columns
constexpr std::int64_t least_split_depth = 128;  // a part of a split k loop is at least this deep
constexpr std::int64_t deep_part = 2560;         // k splits into parts at least this deep even when tiles fill the SMs
constexpr int max_split_shift = 6;               // at most 64 parts
constexpr double accumulator_bytes = 4.0;
constexpr double overhead_cells = 128.0 * 128.0;  // cells of the tile to which `wave_overhead` refers

/// Returns the operands that a FLOP of this tile needs, relative to a tile of 256 x 128.
constexpr double operands_of(const Tile& tile) {
  return (1.0 / lengths[tile.m] + 1.0 / lengths[tile.n]) / (1.0 / 256 + 1.0 / 128);
}

constexpr std::int64_t cells_of(const Tile& tile) { return std::int64_t{lengths[tile.m]} * lengths[tile.n]; }

/// Inputs to the choice of a tile, in addition to the GEMM.
struct Speeds {
  int sms = 0;
  double per_sm = 0.0;                                   // 1 / sms
  double wave_quantum = 0.0;                             // GemmParameters::wave_quantum
  double seconds_per_cell = 0.0;                         // seconds per wave and cell of a tile, at any depth
  double fed_seconds_per_flop = 0.0;                     // time to feed operands, for a tile of 256 x 128; 0: unlimited
  std::array<double, speed_classes> seconds_per_flop{};  // seconds per FLOP of a k loop on one SM, by class
};

/// One choice of tile and split.
struct TileChoice {
  double loops = std::numeric_limits<double>::infinity();  // seconds
  std::size_t tile = 0;
  std::int64_t units = 0;  // tiles x splits, spread over the SMs
};

double bytes(std::int64_t rows, std::int64_t columns, DType dtype) {
  return static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(bytes_of(dtype));
}

double hbm_rate(const Accelerator& accelerator, const GemmParameters& parameters, int sms) {
  return std::min(accelerator.hbm_bandwidth.value.value * parameters.hbm_efficiency.value,
                  static_cast<double>(sms) * accelerator.sm_bandwidth.value.value);
}

/// Returns the share of `weights` bytes that the L2 still holds from the previous call. `rest` counts the bytes of
/// input and output.
double warm_share(const Accelerator& accelerator, const GemmParameters& parameters, const GemmSize& size,
                  double weights, double rest) {
  if (size.weight_copies == 0) {
    return 0.0;
  }
  const auto l2 = static_cast<double>(accelerator.l2_capacity.count);
  const double filling = std::ceil(l2 / weights);
  const double between = weights * std::min(filling, static_cast<double>(size.weight_copies)) + rest;
  return share_kept({.between = between, .capacity = parameters.resident_share.value * l2});
}

double memory_seconds(const Accelerator& accelerator, const GemmParameters& parameters, const GemmSize& size,
                      double rate) {
  const std::int64_t rows = size.m * size.groups;
  const double input = bytes(rows, size.k, size.dtype);
  const auto l2 = static_cast<double>(accelerator.l2_capacity.count);
  const double cached = std::min(input, cached_share_of_l2 * l2);
  const double output = bytes(rows, size.n, size.out.value_or(size.dtype));
  const std::int64_t columns = size.n * size.groups;  // columns of all weights
  const double weights = size.weight_bits > 0.0
                             ? static_cast<double>(size.k) * static_cast<double>(columns) * size.weight_bits / 8.0
                             : bytes(size.k, columns, size.dtype);
  const double warm = warm_share(accelerator, parameters, size, weights, input + output);
  const double kept =
      share_kept({.between = input + weights + output, .capacity = parameters.resident_output_share.value * l2});
  const double output_cost = kept * parameters.cached_output_cost.value + (1.0 - kept) * parameters.output_cost.value;
  const double traffic = weights * (1.0 - warm + warm * parameters.cached_weight_cost.value) + (input - cached) +
                         parameters.cached_input_cost.value * cached + output_cost * output;
  return (size.accumulate ? traffic + output : traffic) / rate;
}

/// Returns the time to convert the activations from 16 bits. A byte that the L2 still holds costs less. Lines are
/// replaced at random, so the share h that stays is exp(-(1 - h) x / cache) for x bytes between two uses; (cache / x)^2
/// is within 5.3 percentage points of that.
double conversion_seconds(const Accelerator& accelerator, const GemmParameters& parameters, const GemmSize& size,
                          double rate) {
  if (!size.converts) {
    return 0.0;
  }
  const std::int64_t rows = size.m * size.groups;
  const double converted = bytes(rows, size.k, size.dtype);
  const double between = converted + bytes(rows, size.k, DType::bf16);
  const double cache = cached_share_of_l2 * static_cast<double>(accelerator.l2_capacity.count);
  const double kept = between <= cache ? 1.0 : (cache / between) * (cache / between);
  const double cost = kept * parameters.cached_conversion_cost.value + (1.0 - kept);
  return parameters.conversion_passes.value * cost * converted / rate;
}

/// Returns the fixed time of a GEMM. The fitted ramp of fp8 contains the calls of the conversion, which a GEMM with fp8
/// inputs does not make.
Duration ramp_of(const Accelerator& accelerator, const GemmSize& size) {
  const Duration fitted = accelerator.matrix_unit(size.dtype).gemm.ramp.value;
  const bool has_unused_calls = size.dtype == DType::fp8 && !size.converts && accelerator.supports(DType::bf16);
  return has_unused_calls ? std::min(fitted, accelerator.matrix_unit(DType::bf16).gemm.ramp.value) : fitted;
}

/// Returns the shortest time that the chip's power limit allows: the rate falls from `burst_efficiency` of the peak to
/// `sustained_share` of that rate.
double power_seconds(const GemmParameters& parameters, const GemmSize& size, double peak) {
  if (parameters.burst_efficiency.value <= 0.0) {
    return 0.0;
  }
  const double at_peak = flops_of(size).count / peak;
  const double run_at_peak = std::max(at_peak, size.run.count / peak);
  const double burst = to_seconds(parameters.burst_time.value);
  const double share = parameters.burst_efficiency.value * (burst + parameters.sustained_share.value * run_at_peak) /
                       (burst + run_at_peak);
  return at_peak / share;
}

Speeds speeds_of(const Accelerator& accelerator, const MatrixUnit& unit, int sms) {
  const GemmParameters& gemm = unit.gemm;
  const double feed = gemm.operand_feed.value;
  const double base = accelerator.sms / (unit.dense_peak.value.value * gemm.loop_efficiency.value);
  return {.sms = sms,
          .per_sm = 1.0 / sms,
          .wave_quantum = gemm.wave_quantum.value,
          .seconds_per_cell = to_seconds(gemm.wave_overhead.value) / overhead_cells,
          .fed_seconds_per_flop = feed > 0.0 ? 1.0 / (unit.dense_peak.value.value * feed) : 0.0,
          .seconds_per_flop = {base / gemm.tile_256x128.value, base, base / gemm.tile_64x256.value,
                               base / gemm.tile_128x64.value, base / gemm.tile_64x64.value}};
}

/// Counts the tiles of each kind that cover the GEMM, in all its groups.
TileCounts count_tiles(const GemmSize& size) {
  const auto tiles_along = [](std::int64_t extent) {
    return std::array<std::int64_t, lengths.size()>{(extent + 63) / 64, (extent + 127) / 128, (extent + 191) / 192,
                                                    (extent + 255) / 256};
  };
  const auto rows = tiles_along(size.m);
  const auto columns = tiles_along(size.n);
  TileCounts counts{};
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    counts[i] = rows[tiles[i].m] * columns[tiles[i].n] * size.groups;
  }
  return counts;
}

/// Returns ceil(units / sms). Multiplies by 1 / sms and corrects the result, because a division would cost more than
/// everything else.
std::int64_t waves_of(std::int64_t units, const Speeds& speeds) {
  auto waves = static_cast<std::int64_t>(static_cast<double>(units) * speeds.per_sm);
  waves += waves * speeds.sms < units ? 1 : 0;
  return waves - ((waves - 1) * speeds.sms >= units ? 1 : 0);
}

/// Returns the number of waves that the time includes; `wave_quantum` determines how much of a partly full last wave
/// counts.
double effective_waves(std::int64_t units, const Speeds& speeds) {
  if (units <= speeds.sms) {
    return 1.0;
  }
  const auto waves = static_cast<double>(waves_of(units, speeds));
  const double fractional_waves = static_cast<double>(units) * speeds.per_sm;
  return fractional_waves + speeds.wave_quantum * (waves - fractional_waves);
}

/// The k loop of a GEMM in `1 << split_shift` parts.
struct KLoop {
  double flops_per_cell = 0.0;
  int split_shift = 0;
};

KLoop k_loop_of(std::int64_t k, int split_shift) {
  const int shift = loop_step_shift + split_shift;
  const std::int64_t steps = (k + (std::int64_t{1} << shift) - 1) >> shift;
  return {2.0 * static_cast<double>(steps << loop_step_shift), split_shift};
}

/// Returns the seconds of the k loops of all `units`. Inlined, because a GEMM tries nine tiles for every split.
[[gnu::always_inline]] inline double loop_seconds(const Tile& tile, std::int64_t units, const KLoop& loop,
                                                  const Speeds& speeds) {
  const double waves = effective_waves(units, speeds);
  double multiplied = waves * loop.flops_per_cell * speeds.seconds_per_flop[tile.speed];
  if (speeds.fed_seconds_per_flop > 0.0) {
    const double fed =
        static_cast<double>(units) * loop.flops_per_cell * operands_of(tile) * speeds.fed_seconds_per_flop;
    multiplied = std::sqrt(multiplied * multiplied + fed * fed);
  }
  return static_cast<double>(cells_of(tile)) * (multiplied + waves * speeds.seconds_per_cell);
}

/// Returns the fastest tile. If the k loop is split, considers only tiles whose parts fit in one wave or are deep; if
/// there is none, the choice's `loops` stays infinite.
TileChoice fastest_tile(const TileCounts& counts, const Speeds& speeds, std::int64_t k, const KLoop& loop) {
  const bool may_fill_several_waves = loop.split_shift == 0 || (k >> loop.split_shift) >= deep_part;
  TileChoice best;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const std::int64_t units = counts[i] << loop.split_shift;
    if (!may_fill_several_waves && units > speeds.sms) {
      continue;
    }
    const double loops = loop_seconds(tiles[i], units, loop, speeds);
    if (loops < best.loops) {
      best = {loops, i, units};
    }
  }
  return best;
}

double join_seconds(const GemmParameters& parameters, const GemmSize& size, std::int64_t splits, double rate) {
  if (splits == 1) {
    return 0.0;
  }
  const double cells =
      static_cast<double>(size.m * size.groups) * static_cast<double>(size.n) * static_cast<double>(splits);
  return to_seconds(parameters.split_overhead.value) + parameters.join_cost.value * accumulator_bytes * cells / rate;
}

/// Returns the time of the kernel that the library chooses, relative to the fastest. It depends on the whole chip, not
/// on the SM budget, so a smaller budget never saves time.
double choice_factor(const Accelerator& accelerator, const MatrixUnit& unit, const GemmSize& size) {
  if (unit.kernel_choice == nullptr) {
    return 1.0;
  }
  return unit.kernel_choice->factor({.tiles_per_sm = static_cast<double>(tiles_of_128(size)) / accelerator.sms,
                                     .k = size.k,
                                     .m = size.m,
                                     .n = size.n});
}

/// Returns the greater of two times that mostly hide each other, plus the visible part of the lesser.
double overlapped(double a, double b, double unhidden) {
  const double greater = std::max(a, b);
  const double lesser = std::min(a, b);
  return greater + unhidden * lesser * (lesser / greater);
}

/// Parts of a GEMM's time on a budget of SMs that do not depend on its tile.
struct Budget {
  Speeds speeds;
  double rate = 0.0;    // HBM, bytes per second
  double memory = 0.0;  // seconds of HBM traffic
  double power = 0.0;   // least seconds that the power limit allows
};

Budget budget_of(const Accelerator& accelerator, const MatrixUnit& unit, const GemmSize& size, int sms) {
  const double rate = hbm_rate(accelerator, unit.gemm, sms);
  return {.speeds = speeds_of(accelerator, unit, sms),
          .rate = rate,
          .memory = memory_seconds(accelerator, unit.gemm, size, rate),
          .power = power_seconds(unit.gemm, size, unit.dense_peak.value.value)};
}

/// A tile and a split of the k loop, with the time of the GEMM without ramp and conversion.
struct Kernel {
  TileChoice choice;
  KLoop loop;
  double seconds = std::numeric_limits<double>::infinity();
};

double seconds_of(const GemmParameters& parameters, const GemmSize& size, const Kernel& kernel, const Budget& budget) {
  const double loops = root_of_fourths(kernel.choice.loops, budget.power);
  return overlapped(loops, budget.memory, parameters.unhidden.value) +
         join_seconds(parameters, size, std::int64_t{1} << kernel.loop.split_shift, budget.rate);
}

Kernel fastest_kernel(const GemmParameters& parameters, const GemmSize& size, const Budget& budget) {
  const TileCounts counts = count_tiles(size);
  const std::int64_t fewest = *std::min_element(counts.begin(), counts.end());
  Kernel fastest;
  for (int shift = 0; shift <= max_split_shift; ++shift) {
    const std::int64_t splits = std::int64_t{1} << shift;
    const bool fits = splits * fewest <= budget.speeds.sms || (size.k >> shift) >= deep_part;
    if (shift > 0 && (size.k < splits * least_split_depth || !fits)) {
      break;
    }
    const KLoop loop = k_loop_of(size.k, shift);
    Kernel kernel{fastest_tile(counts, budget.speeds, size.k, loop), loop};
    kernel.seconds = seconds_of(parameters, size, kernel, budget);
    if (kernel.seconds < fastest.seconds) {
      fastest = kernel;
    }
  }
  return fastest;
}

/// Returns the same kernel on fewer SMs. No SM runs faster than its share of the dense peak, so whole waves at that
/// rate take the shortest possible time.
Kernel with_fewer_sms(const Accelerator& accelerator, const MatrixUnit& unit, const GemmSize& size, Kernel kernel,
                      const Budget& budget) {
  const Tile& tile = tiles[kernel.choice.tile];
  kernel.choice.loops = loop_seconds(tile, kernel.choice.units, kernel.loop, budget.speeds);
  const double of_a_wave =
      static_cast<double>(cells_of(tile)) * kernel.loop.flops_per_cell * accelerator.sms / unit.dense_peak.value.value;
  const double whole_waves = static_cast<double>(waves_of(kernel.choice.units, budget.speeds)) * of_a_wave;
  kernel.seconds = std::max(seconds_of(unit.gemm, size, kernel, budget), whole_waves);
  return kernel;
}

GemmEstimate describe(const Kernel& kernel, const Budget& budget) {
  const TileChoice& choice = kernel.choice;
  const int sms = budget.speeds.sms;
  const std::int64_t waves = choice.units <= sms ? 1 : waves_of(choice.units, budget.speeds);
  const std::int64_t last_wave = choice.units - (waves - 1) * sms;
  return {.tile_m = lengths[tiles[choice.tile].m],
          .tile_n = lengths[tiles[choice.tile].n],
          .splits = 1 << kernel.loop.split_shift,
          .waves = waves,
          .last_wave_fill = static_cast<double>(last_wave) / sms,
          .memory_bound = budget.memory > std::max(choice.loops, budget.power),
          .power_bound = budget.power > std::max(choice.loops, budget.memory)};
}

}  // namespace

Flops flops_of(const GemmSize& size) {
  return {2.0 * static_cast<double>(size.m * size.groups) * static_cast<double>(size.n) * static_cast<double>(size.k)};
}

std::int64_t tiles_of_128(const GemmSize& size) {
  return ((size.m + 127) / 128) * ((size.n + 127) / 128) * size.groups;
}

Bytes compulsory_traffic(const GemmSize& size) {
  const std::int64_t touches = size.accumulate ? 2 : 1;
  const std::int64_t weights =
      size.weight_bits > 0.0 ? static_cast<std::int64_t>(static_cast<double>(size.k * size.n) * size.weight_bits / 8.0)
                             : bytes_of(size.dtype) * size.k * size.n;
  return size.groups * Bytes{bytes_of(size.dtype) * size.m * size.k + weights +
                             touches * bytes_of(size.out.value_or(size.dtype)) * size.m * size.n};
}

GemmEstimate estimate_gemm(const Accelerator& accelerator, const GemmSize& size, int sms) {
  check(size.m >= 1 && size.n >= 1 && size.k >= 1 && size.groups >= 1,
        "a matrix product has m, n, k and groups of at least 1");
  check(sms >= 1 && sms <= accelerator.sms, "the SM budget lies between 1 and the accelerator's SMs");
  const MatrixUnit& unit = accelerator.matrix_unit(size.dtype);
  Budget budget = budget_of(accelerator, unit, size, accelerator.sms);
  Kernel kernel = fastest_kernel(unit.gemm, size, budget);
  if (sms < accelerator.sms) {
    budget = budget_of(accelerator, unit, size, sms);
    kernel = with_fewer_sms(accelerator, unit, size, kernel, budget);
  }
  GemmEstimate estimate = describe(kernel, budget);
  const double conversion = conversion_seconds(accelerator, unit.gemm, size, budget.rate);
  const double total =
      conversion + choice_factor(accelerator, unit, size) * (to_seconds(ramp_of(accelerator, size)) + kernel.seconds);
  estimate.time = std::max(accelerator.kernel_floor.value, op_time(total, "a matrix product"));
  return estimate;
}

Limit limit_of(const Accelerator& accelerator, const GemmEstimate& estimate, DType dtype) {
  const Duration fixed = std::max(accelerator.kernel_floor.value, accelerator.matrix_unit(dtype).gemm.ramp.value);
  if (estimate.time <= 2 * fixed) {
    return Limit::latency;
  }
  if (estimate.memory_bound) {
    return Limit::bandwidth;
  }
  return estimate.waves == 1 || estimate.splits > 1 ? Limit::few_tiles : Limit::compute;
}

}  // namespace commfuse
