// SPDX-License-Identifier: Apache-2.0
// Scores tables of causal prefill attention kernels.
#include <fmt/format.h>

#include "model/config_error.h"
#include "model/cost/attention.h"
#include "model/fit/holdout.h"
#include "model/text/plain_text.h"
#include "sim/score/checked_interval.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"
#include "sim/score/sizes.h"

namespace commfuse::score {

void score_attention(const Table& table, Context& context, Tally& tally) {
  const AttentionColumns columns(table);
  const Column time = table.column("time_us");
  MachineColumn machines(context.machines, framework_in(table.comment("software")));
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const AttentionSize size = columns.size(row);
    const bool has_dtype = !row.has(columns.dtype) || dtype_in_table(row.text(columns.dtype));
    const double measured = row.amount(time);
    const bool held_out = is_held_out(attention_group("attention", row.text(columns.hw), size));
    if (!tally.takes(row, held_out)) {
      continue;
    }
    const FoundMachine& match = machines.of(row.text(columns.hw));
    if (match.machine == nullptr) {
      tally.skip(match.why_not);
    } else if (!has_dtype || !match.machine->accelerator.supports(size.dtype)) {
      tally.skip(fmt::format("{} has no GEMMs in {}", match.machine->name,
                             has_dtype ? std::string(name_of(size.dtype)) : with_escapes(row.text(columns.dtype))));
    } else {
      const Accelerator& accelerator = match.machine->accelerator;
      const std::string_view part = size.seq >= 1024 ? "sequence >= 1K" : "sequence < 1K";
      double predicted = 0.0;
      try {
        predicted = to_microseconds(attention_time(accelerator, size, accelerator.sms));
      } catch (const ConfigError& error) {  // it takes longer than any run
        tally.skip(error.what());
        continue;
      }
      if (tally.score(row, *match.machine, held_out, {{measured, predicted, std::span(&part, 1)}})) {
        check_interval(*match.machine,
                       {.shape = shape_of(size),
                        .kind = size.seq >= 1024 ? "attention >= 1K" : "attention < 1K",
                        .key = {size.heads, size.kv_heads, size.head_dim},
                        .held_out = held_out},
                       {measured, predicted}, context, tally, [&](const Machine& other) {
                         return to_microseconds(attention_time(other.accelerator, size, other.accelerator.sms));
                       });
      }
    }
  }
}

}  // namespace commfuse::score
