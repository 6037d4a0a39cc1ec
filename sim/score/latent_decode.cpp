// SPDX-License-Identifier: Apache-2.0
// Scores tables of latent attention kernels in decoding, over narrow keys that heads share.
#include "model/cost/latent_decode.h"

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

double latent_price_us(const Machine& machine, const LatentDecodeSize& size) {
  return to_microseconds(latent_decode_time(machine.accelerator, size));
}

std::string_view latent_part_of(const LatentDecodeSize& size) {
  const bool is_long = size.seq >= 1024;
  if (size.dtype == DType::fp8) {
    return is_long ? "cache in fp8, >= 1K keys" : "cache in fp8, < 1K keys";
  }
  return is_long ? "cache in 16 bits, >= 1K keys" : "cache in 16 bits, < 1K keys";
}

/// Returns why the machine cannot price rows with this cache; empty if it can.
std::string why_no_price(const Machine& machine, std::string_view cache) {
  const std::optional<DType> dtype = dtype_in_table(cache);
  if (!dtype) {
    return fmt::format("a cache in {}, which no setting chooses", with_escapes(cache));
  }
  return machine.accelerator.supports(*dtype)
             ? ""
             : fmt::format("{} has no peak rate for a cache in {}", machine.name, name_of(*dtype));
}

}  // namespace

void score_latent_decode(const Table& table, Context& context, Tally& tally) {
  const LatentDecodeColumns columns(table);
  const Column time = table.column("time_us");
  MachineColumn machines(context.machines, framework_in(table.comment("software")));
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const LatentDecodeSize size = columns.size(row);
    const double measured = row.amount(time);
    const bool held_out = is_held_out(latent_decode_group(row.text(columns.hw), size));
    if (!tally.takes(row, held_out)) {
      continue;
    }
    const FoundMachine& match = machines.of(row.text(columns.hw));
    if (match.machine == nullptr) {
      tally.skip(match.why_not);
      continue;
    }
    if (const std::string why = why_no_price(*match.machine, row.text(columns.cache)); !why.empty()) {
      tally.skip(why);
      continue;
    }
    const std::string_view part = latent_part_of(size);
    double predicted = 0.0;
    try {
      predicted = latent_price_us(*match.machine, size);
    } catch (const ConfigError& error) {  // it takes longer than any run
      tally.skip(error.what());
      continue;
    }
    if (tally.score(row, *match.machine, held_out, {{measured, predicted, std::span(&part, 1)}})) {
      check_interval(
          *match.machine,
          {.shape = shape_of(size),
           .kind = size.dtype == DType::fp8 ? "latent attention, decoding, fp8" : "latent attention, decoding",
           .key = {size.heads, size.batch},
           .held_out = held_out},
          {measured, predicted}, context, tally, [&](const Machine& other) { return latent_price_us(other, size); });
    }
  }
}

}  // namespace commfuse::score
