// SPDX-License-Identifier: Apache-2.0
// Scores tables of whole passes of Triton-distributed's demo engine: the baseline, which sums by NCCL. The times are
// those of `run --scope prefill` and `run --scope decode`, both with `--sequence-parallel off`.
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "model/config_error.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"
#include "sim/score/model_column.h"
#include "sim/score/served_machine.h"

namespace commfuse::score {

namespace {

constexpr std::string_view engine_model = "Qwen3-32B";
constexpr int engine_ranks = 8;

/// Returns the number after `key` in a cell such as "bsz=32 ctx=128"; 0 if there is none.
std::int64_t number_in(std::string_view cell, std::string_view key) {
  const std::size_t at = cell.find(key);
  if (at == std::string_view::npos) {
    return 0;
  }
  cell.remove_prefix(at + key.size());
  return parse_count(cell.substr(0, cell.find(' '))).value_or(0);
}

/// Throws ConfigError for a pass that is not possible.
double pass_us(const Transformer& model, ServedMachine& on, const Sequences& sequences, bool decodes) {
  StepPoint point = on.prefill(model, engine_ranks, sequences);
  if (decodes) {
    point.cached = std::exchange(point.plan.seq, 1);
  }
  require_possible(point);
  return to_microseconds(decodes ? predict_decode(point, on.sites()).time : predict_prefill(point, on.sites()).time);
}

}  // namespace

void score_engine_passes(const Table& table, Context& context, Tally& tally) {
  const Column hw = table.column("hw");
  const Column work = table.column("case");
  const Column shape = table.column("shape");
  const Column time = table.column("torch_ms");
  MachineColumn machines(context.machines);
  std::map<std::string, std::unique_ptr<ServedMachine>, std::less<>> known_machines;
  ModelColumn models;
  const Transformer* model = models.of(engine_model);
  tally.result().remarks.push_back(
      fmt::format("Passes of {} on {} ranks that sum by NCCL, launched kernel by kernel. Rows of single blocks are not "
                  "scored: their baseline has two values for the same work.",
                  engine_model, engine_ranks));
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const std::string_view name = row.text(work);
    const bool decodes = name.starts_with("e2e_decode");
    const Sequences sequences{.batch = number_in(row.text(shape), "bsz="),
                              .tokens = number_in(row.text(shape), "ctx=")};
    const double measured_us = 1e3 * row.amount(time);
    if (!tally.takes(row, true)) {
      continue;
    }
    const FoundMachine& known = machines.of(row.text(hw));
    if (known.machine == nullptr) {
      tally.skip(known.why_not);
    } else if (!decodes && !name.starts_with("e2e_prefill")) {
      tally.skip("a baseline for which the authors give two values for the same work");
    } else if (model == nullptr) {
      tally.skip(fmt::format("no model file is known as {}", in_quotes(engine_model)));
    } else if (sequences.batch == 0 || sequences.tokens == 0) {
      tally.skip("the shape does not state bsz and ctx");
    } else {
      std::unique_ptr<ServedMachine>& on = known_machines[known.machine->name];
      if (on == nullptr) {
        on = std::make_unique<ServedMachine>(*known.machine);
      }
      const std::string_view part = decodes ? "decode, serial" : "prefill, serial";
      try {
        const double predicted_us = pass_us(*model, *on, sequences, decodes);
        tally.score(row, *known.machine, true, {{measured_us, predicted_us, std::span(&part, 1)}});
      } catch (const ConfigError& error) {
        tally.skip(error.what());
      }
    }
  }
}

}  // namespace commfuse::score
