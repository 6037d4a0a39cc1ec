// SPDX-License-Identifier: Apache-2.0
// Scores tables of attention kernels in decoding: one query per head and sequence.
#include "model/cost/decode_attention.h"

#include <fmt/format.h>

#include "model/config_error.h"
#include "model/fit/holdout.h"
#include "model/text/plain_text.h"
#include "sim/score/checked_interval.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"
#include "sim/score/sizes.h"

namespace commfuse::score {

namespace {

double price_us(const Machine& machine, const AttentionSize& size) {
  return to_microseconds(decode_attention_time(machine.accelerator, size));
}

std::string_view part_of(const AttentionSize& size) {
  const bool is_long = size.seq >= 1024;
  if (size.dtype == DType::fp8) {
    return is_long ? "cache in fp8, >= 1K keys" : "cache in fp8, < 1K keys";
  }
  return is_long ? "cache in 16 bits, >= 1K keys" : "cache in 16 bits, < 1K keys";
}

}  // namespace

void score_decode_attention(const Table& table, Context& context, Tally& tally) {
  const DecodeColumns columns(table);
  const Column time = table.column("time_us");
  MachineColumn machines(context.machines, framework_in(table.comment("software")));
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const AttentionSize size = columns.size(row);
    const bool has_cache = !row.has(columns.cache) || dtype_in_table(row.text(columns.cache));
    const double measured = row.amount(time);
    const bool held_out = is_held_out(decode_attention_group(row.text(columns.hw), size));
    if (!tally.takes(row, held_out)) {
      continue;
    }
    const FoundMachine& match = machines.of(row.text(columns.hw));
    if (match.machine == nullptr) {
      tally.skip(match.why_not);
      continue;
    }
    if (!has_cache) {
      tally.skip(fmt::format("a cache in {}, which no setting chooses", with_escapes(row.text(columns.cache))));
      continue;
    }
    const std::string_view part = part_of(size);
    double predicted = 0.0;
    try {
      predicted = price_us(*match.machine, size);
    } catch (const ConfigError& error) {  // it takes longer than any run
      tally.skip(error.what());
      continue;
    }
    if (tally.score(row, *match.machine, held_out, {{measured, predicted, std::span(&part, 1)}})) {
      check_interval(*match.machine,
                     {.shape = shape_of_decoding(size),
                      .kind = size.dtype == DType::fp8 ? "attention, decoding, fp8" : "attention, decoding",
                      .key = {size.heads, size.kv_heads, size.head_dim},
                      .held_out = held_out},
                     {measured, predicted}, context, tally,
                     [&](const Machine& other) { return price_us(other, size); });
    }
  }
}

}  // namespace commfuse::score
