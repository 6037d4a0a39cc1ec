// SPDX-License-Identifier: Apache-2.0
// Tables of causal prefill attention kernels.
#include <fmt/format.h>

#include "model/cost/attention.h"
#include "model/fit/holdout.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"

namespace commfuse::score {

void score_attention(const Table& table, Context& context, Tally& tally) {
  const Column hw = table.column("hw");
  const Column batch = table.column("batch");
  const Column seq = table.column("seqlen");
  const Column heads = table.column("heads");
  const Column kv_heads = table.column("kv_heads");
  const Column head_dim = table.column("head_dim");
  const Column time = table.column("time_us");
  const Column dtype = table.column("dtype");
  MachineColumn machines(context.machines);
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    AttentionSize size{.batch = row.count(batch),
                       .seq = row.count(seq),
                       .heads = row.count(heads),
                       .kv_heads = row.count(kv_heads),
                       .head_dim = row.count(head_dim)};
    const std::optional<DType> said = row.has(dtype) ? dtype_in_table(row.text(dtype)) : DType::bf16;
    size.dtype = said.value_or(DType::bf16);
    const double measured = row.amount(time);
    if (row.is_sound() && size.heads % size.kv_heads != 0) {
      row.fault(fmt::format("{} heads are no multiple of {} kv_heads", size.heads, size.kv_heads));
    }
    const bool back = held_back(attention_group("attention", row.text(hw), size.heads, size.kv_heads, size.head_dim));
    if (!tally.takes(row, back)) {
      continue;
    }
    const FoundMachine& found = machines.of(row.text(hw));
    if (found.machine == nullptr) {
      tally.skip(found.why_not);
    } else if (!said || !found.machine->accelerator.supports(size.dtype)) {
      tally.skip(fmt::format("{} has no products in {}", found.machine->name, row.text(dtype)));
    } else {
      const Accelerator& accelerator = found.machine->accelerator;
      const std::string_view part = size.seq >= 1024 ? "sequence >= 1K" : "sequence < 1K";
      tally.score(
          row, *found.machine, back,
          {{measured, to_microseconds(attention_time(accelerator, size, accelerator.sms)), std::span(&part, 1)}});
    }
  }
}

}  // namespace commfuse::score
