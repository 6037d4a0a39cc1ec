// SPDX-License-Identifier: Apache-2.0
// Scores a table whose rows time single calls of one kernel.
//
// A kind of kernel is a type with these static members:
//   Columns                    type that reads a row; it has the member `hw` and size(Row&)
//   has_frameworks             whether a framework in the table's `# software:` comment helps to choose the machine
//   group(hw, size)            the key that chooses the held-out rows
//   why_not(columns, row, size, machine)  why the machine does not price the row; empty if it does
//   part(size), interval_kind(size)       names under which the score counts the row's error, and its interval
//   shape(size), key(size)     as in CheckedOp
//   time(accelerator, size)    the predicted time
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/config_error.h"
#include "model/fit/holdout.h"
#include "sim/score/checked_interval.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"

namespace commfuse::score {

template <class Kernel>
void score_calls(const Table& table, Context& context, Tally& tally) {
  const typename Kernel::Columns columns(table);
  const Column time = table.column("time_us");
  MachineColumn machines = Kernel::has_frameworks
                               ? MachineColumn(context.machines, framework_in(table.comment("software")))
                               : MachineColumn(context.machines);
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const auto size = columns.size(row);
    const double measured = row.amount(time);
    const bool held_out = is_held_out(Kernel::group(row.text(columns.hw), size));
    if (!tally.takes(row, held_out)) {
      continue;
    }
    const FoundMachine& match = machines.of(row.text(columns.hw));
    if (match.machine == nullptr) {
      tally.skip(match.why_not);
      continue;
    }
    if (const std::string why_not = Kernel::why_not(columns, row, size, *match.machine); !why_not.empty()) {
      tally.skip(why_not);
      continue;
    }
    const auto price_us = [&](const Machine& machine) {
      return to_microseconds(Kernel::time(machine.accelerator, size));
    };
    double predicted = 0.0;
    try {
      predicted = price_us(*match.machine);
    } catch (const ConfigError& error) {  // the time exceeds longest_op_seconds
      tally.skip(error.what());
      continue;
    }
    const std::string_view part = Kernel::part(size);
    if (tally.score(row, *match.machine, held_out, {{measured, predicted, std::span(&part, 1)}})) {
      check_interval(*match.machine,
                     {.shape = Kernel::shape(size),
                      .kind = Kernel::interval_kind(size),
                      .key = Kernel::key(size),
                      .held_out = held_out},
                     {measured, predicted}, context, tally, price_us);
    }
  }
}

/// Returns the name of the part in which the score counts a row of decode attention with `keys` keys and a KV cache in
/// dtype `cache`.
inline std::string_view part_of_decoding(std::int64_t keys, DType cache) {
  const bool is_long = keys >= 1024;
  if (cache == DType::fp8) {
    return is_long ? "cache in fp8, >= 1K keys" : "cache in fp8, < 1K keys";
  }
  return is_long ? "cache in 16 bits, >= 1K keys" : "cache in 16 bits, < 1K keys";
}

}  // namespace commfuse::score
