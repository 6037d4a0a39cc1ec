// SPDX-License-Identifier: Apache-2.0
// Scores tables of single GEMMs.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "model/config_error.h"
#include "model/cost/gemm.h"
#include "model/fit/holdout.h"
#include "model/text/plain_text.h"
#include "sim/score/checked_interval.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"
#include "sim/score/product_pairs.h"
#include "sim/score/sizes.h"
#include "sim/score/slicing_penalty.h"

namespace commfuse::score {

namespace {

/// A row of a table of GEMMs, without its time.
struct GemmRow {
  GemmSize size;
  const Machine* machine = nullptr;
  bool held_out = false;
};

/// Reads a row. If the row cannot be scored, adds it to the tally as skipped or faulty and leaves `machine` null.
GemmRow read_gemm_row(Row& row, const ProductColumns& columns, MachineColumn& machines, std::string_view kind,
                      Tally& tally) {
  const GemmSize size = columns.size(row);
  const std::string_view hw = row.text(columns.hw);
  const std::string_view word = row.text(columns.dtype);
  if (word.empty()) {
    row.fault("dtype is missing");
  }
  const std::optional<DType> dtype = dtype_in_table(word);
  const std::string_view dtype_word = dtype ? name_of(*dtype) : word;
  GemmRow parsed{.size = size, .machine = nullptr, .held_out = is_held_out(gemm_group(kind, hw, dtype_word, size))};
  if (!tally.takes(row, parsed.held_out)) {
    return parsed;
  }
  const FoundMachine& known = machines.of(hw);
  if (known.machine == nullptr) {
    tally.skip(known.why_not);
  } else if (!dtype || !known.machine->accelerator.supports(*dtype)) {
    tally.skip(fmt::format("{} does not support GEMMs in {}", known.machine->name, with_escapes(word)));
  } else {
    parsed.machine = known.machine;
  }
  return parsed;
}

// A search like those that users of mamf-finder run: m, n and k each take the first `search_steps` multiples of
// `search_step`.
constexpr std::int64_t search_step = 1024;
constexpr std::int64_t search_steps = 20;

/// Returns the TFLOP/s of the fastest GEMM in the search, without conversion kernels.
double best_rate(Accelerator accelerator, DType dtype) {
  accelerator.matrix_units[index_of(dtype)]->gemm.conversion_passes.value = 0.0;
  double best = 0.0;
  for (std::int64_t m = 1; m <= search_steps; ++m) {
    for (std::int64_t n = 1; n <= search_steps; ++n) {
      for (std::int64_t k = 1; k <= search_steps; ++k) {
        GemmSize size{.m = m * search_step, .n = n * search_step, .k = k * search_step, .dtype = dtype};
        size.out = dtype == DType::fp8 ? std::optional(DType::bf16) : std::nullopt;
        const Duration time = estimate_gemm(accelerator, size, accelerator.sms).time;
        best = std::max(best, flops_of(size).count / to_seconds(time) / 1e12);
      }
    }
  }
  return best;
}

/// Caches the best rate of each machine and dtype.
class BestRates {
 public:
  double of(const Machine& machine, DType dtype) {
    const auto [rate, is_new] = rates_.try_emplace({machine.name, dtype}, 0.0);
    if (is_new) {
      rate->second = best_rate(machine.accelerator, dtype);
    }
    return rate->second;
  }

 private:
  std::map<std::pair<std::string, DType>, double> rates_;
};

double predicted_us(const Machine& machine, const GemmSize& size) {
  return to_microseconds(estimate_gemm(machine.accelerator, size, machine.accelerator.sms).time);
}

}  // namespace

void score_products(const Table& table, Context& context, Tally& tally) {
  const ProductColumns columns(table);
  const Column time = table.column("time_us");
  MachineColumn machines(context.machines, framework_in(table.comment("software")));
  std::vector<TimedGemm> gemms;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const double measured = row.amount(time);
    const GemmRow parsed = read_gemm_row(row, columns, machines, "gemm", tally);
    if (parsed.machine == nullptr) {
      continue;
    }
    double predicted = 0.0;
    try {
      predicted = predicted_us(*parsed.machine, parsed.size);
    } catch (const ConfigError& error) {  // the time exceeds longest_op_seconds
      tally.skip(error.what());
      continue;
    }
    const std::string_view part = name_of(parsed.size.dtype);
    if (tally.score(row, *parsed.machine, parsed.held_out, {{measured, predicted, std::span(&part, 1)}})) {
      gemms.push_back({parsed.machine, parsed.size.n, parsed.size.k, static_cast<int>(parsed.size.dtype), parsed.size.m,
                       measured, predicted, parsed.held_out, is_unseen(*parsed.machine, parsed.held_out, context),
                       parsed.size.weight_copies});
      check_interval(*parsed.machine,
                     {.shape = shape_of(parsed.size),
                      .kind = gemm_kind(parsed.size.dtype),
                      .key = {parsed.size.n, parsed.size.k},
                      .held_out = parsed.held_out},
                     {measured, predicted}, context, tally,
                     [&](const Machine& machine) { return predicted_us(machine, parsed.size); });
    }
  }
  judge_gemm_pairs(gemms, context.doubts, tally);
  tally.result().penalties = slicing_penalties(std::move(gemms));
}

void score_best_products(const Table& table, Context& context, Tally& tally) {
  const ProductColumns columns(table);
  const Column rate = table.column("tflops");
  MachineColumn machines(context.machines);
  BestRates best;
  tally.result().remarks.push_back(fmt::format(
      "Each row is the best rate that a search over shapes found, so it is compared with the best rate predicted for "
      "m, n and k among the first {} multiples of {}, an assumed range. The conversion to fp8, which frameworks "
      "include in their times, is left out.",
      search_steps, search_step));
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const double tflops = row.amount(rate);
    const GemmRow parsed = read_gemm_row(row, columns, machines, "gemm_best", tally);
    if (parsed.machine == nullptr) {
      continue;
    }
    const double flops = flops_of(parsed.size).count;
    tally.score(row, *parsed.machine, parsed.held_out,
                {{flops / tflops / 1e6, flops / best.of(*parsed.machine, parsed.size.dtype) / 1e6}});
  }
}

}  // namespace commfuse::score
