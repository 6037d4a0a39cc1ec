// SPDX-License-Identifier: Apache-2.0
// Scores tables of layers of routed experts on one GPU, timed as one call of a serving framework.
#include "model/cost/expert_layer.h"

#include <fmt/format.h>

#include "model/config_error.h"
#include "model/fit/holdout.h"
#include "sim/score/checked_interval.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"
#include "sim/score/sizes.h"

namespace commfuse::score {

namespace {

constexpr std::int64_t most_tokens_of_decoding = 128;

double experts_us(const Machine& machine, const ExpertLayerSize& size) {
  return to_microseconds(expert_layer_time(machine.accelerator, size));
}

std::string_view part_of_experts(const ExpertLayerSize& size) {
  const bool is_short = size.tokens <= most_tokens_of_decoding;
  if (size.dtype == DType::fp8) {
    return is_short ? "experts in fp8, <= 128 tokens" : "experts in fp8, > 128 tokens";
  }
  return is_short ? "experts in 16 bits, <= 128 tokens" : "experts in 16 bits, > 128 tokens";
}

}  // namespace

void score_expert_layers(const Table& table, Context& context, Tally& tally) {
  const ExpertColumns columns(table);
  const Column time = table.column("time_us");
  MachineColumn machines(context.machines);
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const ExpertLayerSize size = columns.size(row);
    const double measured = row.amount(time);
    const bool held_out = is_held_out(expert_layer_group(row.text(columns.hw), size));
    if (!tally.takes(row, held_out)) {
      continue;
    }
    const FoundMachine& match = machines.of(row.text(columns.hw));
    if (match.machine == nullptr) {
      tally.skip(match.why_not);
      continue;
    }
    if (const std::string why_not = columns.why_not(row); !why_not.empty()) {
      tally.skip(why_not);
      continue;
    }
    if (expert_layer_of(match.machine->accelerator, size.dtype) == nullptr) {
      tally.skip(
          fmt::format("experts in {} on {}, which has no fit of them", name_of(size.dtype), match.machine->name));
      continue;
    }
    const std::string_view part = part_of_experts(size);
    double predicted = 0.0;
    try {
      predicted = experts_us(*match.machine, size);
    } catch (const ConfigError& error) {  // it takes longer than any run
      tally.skip(error.what());
      continue;
    }
    if (tally.score(row, *match.machine, held_out, {{measured, predicted, std::span(&part, 1)}})) {
      check_interval(*match.machine,
                     {.shape = shape_of(size),
                      .kind = size.dtype == DType::fp8 ? "experts, fp8" : "experts",
                      .key = {size.hidden, size.ffn / size.tp, size.experts / size.ep},
                      .held_out = held_out},
                     {measured, predicted}, context, tally,
                     [&](const Machine& other) { return experts_us(other, size); });
    }
  }
}

}  // namespace commfuse::score
