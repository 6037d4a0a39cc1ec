// SPDX-License-Identifier: Apache-2.0
// Scores tables that compare serial and overlapped times of a GEMM and its all-reduce on Ascend. overlap_score.cpp
// scores overlapped kernels on GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/config_error.h"
#include "model/cost/communication.h"
#include "model/cost/gemm.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"

namespace commfuse::score {

namespace {

/// hw-native-sys/pto-isa multiplies and sums tile by tile, padded to whole tiles (5416 x 1408 to 5504 x 1536, according
/// to the table). While a GEMM runs, its communication loses 20 to 30% of its bandwidth (hardware.md, 2.5).
constexpr double slowdown_during_gemm = 1.25;
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
  tally.result().remarks.push_back(fmt::format(
      "Communication during a GEMM takes {} times as long as alone: a prior, not a fit.", slowdown_during_gemm));
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const GemmSize size{.m = padded(row.count(rows), pto_tile_m),
                        .n = padded(row.count(columns), pto_tile_n),
                        .k = row.count(contraction),
                        .dtype = DType::fp16};
    const auto degree = static_cast<int>(row.count(ranks, max_gpus));
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
    const Accelerator& accelerator = match.machine->accelerator;
    if (degree > match.machine->gpus_per_node || !accelerator.supports(size.dtype)) {
      tally.skip(fmt::format("{} has no {} GPUs, or no GEMMs in {}", match.machine->name, degree, name_of(size.dtype)));
      continue;
    }
    double gemm_us = 0.0;
    try {
      gemm_us = to_microseconds(estimate_gemm(accelerator, size, accelerator.sms).time);
    } catch (const ConfigError& error) {  // it exceeds longest_op_seconds
      tally.skip(error.what());
      continue;
    }
    const Bytes sums{size.m * size.n * bytes_of(size.dtype)};
    const double all_reduce_us = to_microseconds(all_reduce_time(match.machine->link, degree, sums));
    // Nothing can be sent before the tiles of the first rank's share are computed.
    const double overlapped_us = std::max(gemm_us, gemm_us / degree + slowdown_during_gemm * all_reduce_us);
    if (tally.score(row, *match.machine, true,
                    {{compute_us, gemm_us, parts.subspan(0, 1)},
                     {serial_us, gemm_us + all_reduce_us, parts.subspan(1, 1)},
                     {pipelined_us, overlapped_us, parts.subspan(2, 1)}})) {
      tally.compare(pipelined_us / serial_us, overlapped_us / (gemm_us + all_reduce_us));
    }
  }
}

}  // namespace commfuse::score
