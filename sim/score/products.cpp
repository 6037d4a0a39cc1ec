// SPDX-License-Identifier: Apache-2.0
// Tables of single matrix products.
#include <fmt/format.h>

#include "model/config_error.h"
#include "model/cost/gemm.h"
#include "model/fit/holdout.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"
#include "sim/score/sizes.h"
#include "sim/score/slicing_penalty.h"

namespace commfuse::score {

namespace {

/// A row of either kind but for its time.
struct ProductRow {
  GemmSize size;
  const Machine* machine = nullptr;
  bool held_back = false;
};

/// Reads it and counts it where it cannot be scored; then `machine` is null.
ProductRow read_product(Row& row, const ProductColumns& columns, MachineColumn& machines, std::string_view kind,
                        Tally& tally) {
  const GemmSize size = columns.size(row);
  const std::string_view hw = row.text(columns.hw);
  const std::string_view word = row.text(columns.dtype);
  const std::optional<DType> dtype = dtype_in_table(word);
  const std::string_view said = dtype ? name_of(*dtype) : word;
  ProductRow read{.size = size, .machine = nullptr, .held_back = held_back(gemm_group(kind, hw, said, size.n, size.k))};
  if (!tally.takes(row, read.held_back)) {
    return read;
  }
  const FoundMachine& found = machines.of(hw);
  if (found.machine == nullptr) {
    tally.skip(found.why_not);
  } else if (!dtype || !found.machine->accelerator.supports(*dtype)) {
    tally.skip(fmt::format("{} has no products in {}", found.machine->name, word));
  } else {
    read.machine = found.machine;
  }
  return read;
}

double predicted_us(const Machine& machine, const GemmSize& size) {
  return to_microseconds(estimate_gemm(machine.accelerator, size, machine.accelerator.sms).time);
}

}  // namespace

void score_products(const Table& table, Context& context, Tally& tally) {
  const ProductColumns columns(table);
  const Column time = table.column("time_us");
  MachineColumn machines(context.machines);
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
    if (tally.score(row, *read.machine, read.held_back, {{measured, predicted, std::span(&part, 1)}})) {
      products.push_back({read.machine, read.size.n, read.size.k, static_cast<int>(read.size.dtype), read.size.m,
                          measured, predicted, read.held_back});
    }
  }
  tally.result().penalties = slicing_penalties(std::move(products));
}

void score_best_products(const Table& table, Context& context, Tally& tally) {
  const ProductColumns columns(table);
  const Column rate = table.column("tflops");
  MachineColumn machines(context.machines);
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const double tflops = row.amount(rate);
    const ProductRow read = read_product(row, columns, machines, "gemm_best", tally);
    if (read.machine == nullptr) {
      continue;
    }
    const double flops =
        2.0 * static_cast<double>(read.size.m) * static_cast<double>(read.size.n) * static_cast<double>(read.size.k);
    tally.score(row, *read.machine, read.held_back, {{flops / tflops / 1e6, predicted_us(*read.machine, read.size)}});
  }
}

}  // namespace commfuse::score
