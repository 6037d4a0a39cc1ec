// SPDX-License-Identifier: Apache-2.0
// Scores tables that compare serial and overlapped times of a GEMM and its all-reduce on Ascend. overlap_score.cpp
// scores overlapped kernels on GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/config_error.h"
#include "model/workload/bare_mlp.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"

namespace commfuse::score {

namespace {

/// hw-native-sys/pto-isa multiplies and sums tile by tile, padded to whole tiles (5416 x 1408 to 5504 x 1536, according
/// to the table).
constexpr std::int64_t pto_tile_m = 128;
constexpr std::int64_t pto_tile_n = 256;

std::int64_t padded(std::int64_t extent, std::int64_t tile) { return (extent + tile - 1) / tile * tile; }

}  // namespace

void score_gemm_ar(const Table& table, Context& context, Tally& tally) {
  const Column hw = table.column("hw");
  const Column ranks = table.column("ranks");
  const Column rows = table.column("M");
  const Column contraction = table.column("K");
  const Column columns = table.column("N");
  const Column compute = table.column("compute_only_us");
  const Column serial = table.column("sequential_us");
  const Column pipelined = table.column("pipelined_us");
  MachineColumn machines(context.machines);
  constexpr std::array<std::string_view, 3> names{"product", "serial", "overlapped"};
  const std::span<const std::string_view> parts(names);
  tally.result().remarks.push_back(
      "K is that of one rank. No implementation describes the overlapped kernel; the best of `sliced` is scored.");
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const auto degree = static_cast<std::int32_t>(row.count(ranks, max_gpus));
    const MlpWidths widths{.hidden = padded(row.count(columns), pto_tile_n), .ffn = degree * row.count(contraction)};
    const std::int64_t tokens = padded(row.count(rows), pto_tile_m);
    const double compute_us = row.amount(compute);
    const double serial_us = row.amount(serial);
    const double pipelined_us = row.amount(pipelined);
    if (!tally.takes(row, true)) {
      continue;
    }
    const FoundMachine& match = machines.of(row.text(hw));
    if (match.machine == nullptr) {
      tally.skip(match.why_not);
      continue;
    }
    try {
      Point point{.model = bare_mlp(widths), .machine = *match.machine};
      point.scope = Scope::down_ar;
      point.ranks = degree;
      point.seq = tokens;
      point.dtype = DType::fp16;
      require_possible(point);
      const StrategyOptions options{.dtype = point.dtype};
      const Prediction whole = context.predictor.predict(point, serial_strategy, options);
      const Prediction overlapped =
          context.predictor.predict_best(point, sliced_strategy, sliced_strategy.variants(options));
      if (tally.score(row, *match.machine, true,
                      {{compute_us, to_microseconds(whole.ideal), parts.subspan(0, 1)},
                       {serial_us, makespan_us(whole), parts.subspan(1, 1)},
                       {pipelined_us, makespan_us(overlapped), parts.subspan(2, 1)}})) {
        tally.compare(pipelined_us / serial_us, makespan_us(overlapped) / makespan_us(whole));
      }
    } catch (const ConfigError& error) {
      tally.skip(error.what());
    }
  }
}

}  // namespace commfuse::score
