// SPDX-License-Identifier: Apache-2.0
// Scores tables of single GEMMs.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "model/cost/gemm.h"
#include "model/fit/holdout.h"
#include "sim/score/checked_interval.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"
#include "sim/score/product_pairs.h"
#include "sim/score/sizes.h"
#include "sim/score/slicing_penalty.h"

namespace commfuse::score {

namespace {

/// A row of a table of GEMMs, without its time.
struct ProductRow {
  GemmSize size;
  const Machine* machine = nullptr;
  bool held_out = false;
};

/// Reads a row. If the row cannot be scored, counts it and leaves `machine` null.
ProductRow read_product(Row& row, const ProductColumns& columns, MachineColumn& machines, std::string_view kind,
                        Tally& tally) {
  const GemmSize size = columns.size(row);
  const std::string_view hw = row.text(columns.hw);
  const std::string_view word = row.text(columns.dtype);
  const std::optional<DType> dtype = dtype_in_table(word);
  const std::string_view said = dtype ? name_of(*dtype) : word;
  ProductRow read{.size = size, .machine = nullptr, .held_out = is_held_out(gemm_group(kind, hw, said, size))};
  if (!tally.takes(row, read.held_out)) {
    return read;
  }
  const FoundMachine& known = machines.of(hw);
  if (known.machine == nullptr) {
    tally.skip(known.why_not);
  } else if (!dtype || !known.machine->accelerator.supports(*dtype)) {
    tally.skip(fmt::format("{} has no GEMMs in {}", known.machine->name, word));
  } else {
    read.machine = known.machine;
  }
  return read;
}

// A search over shapes like those of mamf-finder's users: m, n and k take all multiples of a step.
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
  std::vector<TimedProduct> products;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const double measured = row.amount(time);
    const ProductRow read = read_product(row, columns, machines, "gemm", tally);
    if (read.machine == nullptr) {
      continue;
    }
    const double predicted = predicted_us(*read.machine, read.size);
    const std::string_view part = name_of(read.size.dtype);
    if (tally.score(row, *read.machine, read.held_out, {{measured, predicted, std::span(&part, 1)}})) {
      products.push_back({read.machine, read.size.n, read.size.k, static_cast<int>(read.size.dtype), read.size.m,
                          measured, predicted, read.held_out, is_unseen(*read.machine, read.held_out, context)});
      check_interval(*read.machine,
                     {.shape = shape_of(read.size),
                      .kind = gemm_kind(read.size.dtype),
                      .key = {read.size.n, read.size.k},
                      .held_out = read.held_out},
                     {measured, predicted}, context, tally,
                     [&](const Machine& machine) { return predicted_us(machine, read.size); });
    }
  }
  judge_product_pairs(products, context.doubts, tally);
  tally.result().penalties = slicing_penalties(std::move(products));
}

void score_best_products(const Table& table, Context& context, Tally& tally) {
  const ProductColumns columns(table);
  const Column rate = table.column("tflops");
  MachineColumn machines(context.machines);
  BestRates best;
  tally.result().remarks.push_back(
      fmt::format("A row is the best of a search over shapes, so it is held against the best that the model finds for "
                  "m, n and k of 1 to {} times {} (a prior), without the conversion into fp8 that frameworks time.",
                  search_steps, search_step));
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const double tflops = row.amount(rate);
    const ProductRow read = read_product(row, columns, machines, "gemm_best", tally);
    if (read.machine == nullptr) {
      continue;
    }
    const double flops = flops_of(read.size).count;
    tally.score(row, *read.machine, read.held_out,
                {{flops / tflops / 1e6, flops / best.of(*read.machine, read.size.dtype) / 1e6}});
  }
}

}  // namespace commfuse::score
