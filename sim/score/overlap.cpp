// SPDX-License-Identifier: Apache-2.0
// Tables that set one product with serial communication against the same work overlapped.
//
// The overlapped kernels are other people's: what a model of schedules can know of them is the bound of fused kernels
// (model/strategies/fused_kernel.cpp), and what their code costs beyond it is one constant an implementation, fitted on
// one row, which is not scored.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/config_error.h"
#include "model/cost/communication.h"
#include "model/cost/gemm.h"
#include "model/math/functions.h"
#include "sim/score/judged_ways.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"

namespace commfuse::score {

namespace {

/// One implementation's constant and the row that fixed it.
struct Implementation {
  double overhead_us = 0.0;
  std::int64_t fitted_m = 0;
};

/// yifuwang/symm-mem-recipes: a persistent Triton kernel whose tiles wait for shards that copy engines bring. Its own
/// product is slower than cuBLAS, and it starts with a barrier over symmetric memory.
constexpr Implementation symmetric_memory{.overhead_us = 119.0, .fitted_m = 8192};

/// hw-native-sys/pto-isa: products and sums tile by tile, padded to whole tiles (5416 x 1408 to 5504 x 1536, says the
/// table). Its communication beside a product gets less of the wires
/// than alone; hardware.md, 2.5: 20 to 30 %.
constexpr double lost_beside_product = 1.25;
constexpr std::int64_t pto_tile_m = 128;
constexpr std::int64_t pto_tile_n = 256;

std::int64_t padded(std::int64_t extent, std::int64_t tile) { return (extent + tile - 1) / tile * tile; }

Transformer one_product(std::int64_t contraction, std::int64_t columns) {
  return {.name = "one product",
          .layers = 1,
          .hidden = contraction,
          .ffn = columns,
          .heads = 1,
          .kv_heads = 1,
          .head_dim = 1,
          .vocab = 1,
          .gated_mlp = false};
}

double makespan_us(const Prediction& prediction) { return to_microseconds(prediction.analysis.critical.makespan); }

struct Times {
  double product_us = 0.0;
  double serial_us = 0.0;
  double overlapped_us = 0.0;
  Uncertainty of_serial{};
  Uncertainty of_overlapped{};
};

/// Of a time that is longer by a constant of its own, which nothing doubts.
Uncertainty beside_constant(Uncertainty uncertainty, double us, double constant_us) {
  for (Doubt& one : uncertainty.doubts) {
    one.effect = math::log((us * math::exp(one.effect) + constant_us) / (us + constant_us));
  }
  return uncertainty;
}

/// All-gather of the tokens, then one product with a shard of the columns.
Times ag_gemm(Context& context, const Machine& machine, int ranks, std::int64_t tokens, std::int64_t contraction,
              std::int64_t columns) {
  Point point{.model = one_product(contraction, ranks * columns), .machine = machine};
  point.scope = Scope::gate_up;
  point.ranks = ranks;
  point.seq = tokens;
  point.raised = context.doubts.raised(machine);
  require_possible(point);
  const GemmSize size{.m = tokens, .n = columns, .k = contraction};
  const Prediction serial = context.predictor.predict(point, serial_strategy, {});
  const Prediction fused = context.predictor.predict(point, fused_kernel_strategy, {.sub_slices = 8});
  const double fused_us = makespan_us(fused);
  return {.product_us = to_microseconds(estimate_gemm(machine.accelerator, size, machine.accelerator.sms).time),
          .serial_us = makespan_us(serial),
          .overlapped_us = fused_us + symmetric_memory.overhead_us,
          .of_serial = context.predictor.uncertainty(point, serial),
          .of_overlapped =
              beside_constant(context.predictor.uncertainty(point, fused), fused_us, symmetric_memory.overhead_us)};
}

}  // namespace

void score_ag_gemm(const Table& table, Context& context, Tally& tally) {
  const Column tokens = table.column("M");
  const Column columns = table.column("N_per_gpu");
  const Column contraction = table.column("K");
  const Column ranks = table.column("ngpus");
  const Column product = table.column("cublas_mm_us");
  const Column serial = table.column("serial_cublas_nccl_us");
  const Column fused = table.column("fused_us");
  const FoundMachine found = machine_of_table(table, context);
  constexpr std::array<std::string_view, 3> names{"product", "serial", "overlapped"};
  const std::span<const std::string_view> parts(names);
  tally.result().remarks.push_back(
      fmt::format("The fused kernel is the bound of fused kernels and {} us of its own, fitted on the row with M = {}, "
                  "whose overlapped time is not scored.",
                  symmetric_memory.overhead_us, symmetric_memory.fitted_m));
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const std::int64_t m = row.count(tokens);
    const std::int64_t n = row.count(columns);
    const std::int64_t k = row.count(contraction);
    const auto degree = static_cast<int>(row.count(ranks, most_gpus));
    const double product_us = row.amount(product);
    const double serial_us = row.amount(serial);
    const double fused_us = row.amount(fused);
    if (!tally.takes(row, true)) {
      continue;
    }
    if (found.machine == nullptr) {
      tally.skip(found.why_not);
      continue;
    }
    try {
      const Times times = ag_gemm(context, *found.machine, degree, m, k, n);
      const bool is_fitted = m == symmetric_memory.fitted_m;
      const std::array all{Compared{product_us, times.product_us, parts.subspan(0, 1)},
                           Compared{serial_us, times.serial_us, parts.subspan(1, 1)},
                           Compared{fused_us, times.overlapped_us, parts.subspan(2, 1)}};
      if (tally.score(row, *found.machine, true, std::span(all).first(is_fitted ? 2 : 3)) && !is_fitted) {
        tally.compare(fused_us / serial_us, times.overlapped_us / times.serial_us);
        judge(*found.machine, "serial or overlapped", {serial_us, times.serial_us, times.of_serial},
              {fused_us, times.overlapped_us, times.of_overlapped}, {n, k}, tally);
      }
    } catch (const ConfigError& error) {
      tally.skip(error.what());
    }
  }
}

void score_gemm_ar(const Table& table, Context& context, Tally& tally) {
  const Column hw = table.column("hw");
  const Column ranks = table.column("ranks");
  const Column rows = table.column("M");
  const Column contraction = table.column("K");
  const Column columns = table.column("N");
  const Column product = table.column("compute_only_us");
  const Column serial = table.column("sequential_us");
  const Column pipelined = table.column("pipelined_us");
  MachineColumn machines(context.machines);
  constexpr std::array<std::string_view, 3> names{"product", "serial", "overlapped"};
  const std::span<const std::string_view> parts(names);
  tally.result().remarks.push_back(fmt::format(
      "Communication beside a product takes {} times as long as alone: a prior, no fit.", lost_beside_product));
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const GemmSize size{.m = padded(row.count(rows), pto_tile_m),
                        .n = padded(row.count(columns), pto_tile_n),
                        .k = row.count(contraction),
                        .dtype = DType::fp16};
    const auto degree = static_cast<int>(row.count(ranks, most_gpus));
    const double product_us = row.amount(product);
    const double serial_us = row.amount(serial);
    const double pipelined_us = row.amount(pipelined);
    if (!tally.takes(row, true)) {
      continue;
    }
    const FoundMachine& found = machines.of(row.text(hw));
    if (found.machine == nullptr) {
      tally.skip(found.why_not);
      continue;
    }
    const Accelerator& accelerator = found.machine->accelerator;
    if (degree > found.machine->gpus_per_node || !accelerator.supports(size.dtype)) {
      tally.skip(
          fmt::format("{} has no {} GPUs, or no products in {}", found.machine->name, degree, name_of(size.dtype)));
      continue;
    }
    const double multiply = to_microseconds(estimate_gemm(accelerator, size, accelerator.sms).time);
    const Bytes sums{size.m * size.n * bytes_of(size.dtype)};
    const double reduce = to_microseconds(all_reduce_time(found.machine->link, degree, sums));
    // The tiles of the first rank's share are multiplied before anything can be sent.
    const double woven = std::max(multiply, multiply / degree + lost_beside_product * reduce);
    if (tally.score(row, *found.machine, true,
                    {{product_us, multiply, parts.subspan(0, 1)},
                     {serial_us, multiply + reduce, parts.subspan(1, 1)},
                     {pipelined_us, woven, parts.subspan(2, 1)}})) {
      tally.compare(pipelined_us / serial_us, woven / (multiply + reduce));
    }
  }
}

}  // namespace commfuse::score
