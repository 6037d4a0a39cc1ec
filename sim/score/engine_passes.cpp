// SPDX-License-Identifier: Apache-2.0
// Scores tables of Triton-distributed's demo engine: whole passes, single blocks of a layer, and GEMMs with their
// collective, all as the PyTorch baseline runs them, with NCCL. The predictions are those of `run --scope prefill` and
// `run --scope decode`, both with `--sequence-parallel off` (`attention_ms` and `mlp_ms`, divided by the number of
// layers, for single blocks), and of `run --scope gate_up` and `run --scope down`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
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

/// The work that a row measures.
enum class Work : std::uint8_t { pass, attention, mlp, gather_gemm, gemm_scatter };

struct KnownCase {
  std::string_view begin;  ///< Beginning of the case's name.
  Work work = Work::pass;
  bool decodes = false;
  std::string_view part;
};
constexpr std::array known_cases{
    KnownCase{"e2e_prefill", Work::pass, false, "prefill, serial"},
    KnownCase{"e2e_decode", Work::pass, true, "decode, serial"},
    KnownCase{"attn_prefill", Work::attention, false, "attention of a prefill, serial"},
    KnownCase{"attn_decode", Work::attention, true, "attention of decoding, serial"},
    KnownCase{"mlp", Work::mlp, false, "MLP, serial"},
    KnownCase{"ag_gemm", Work::gather_gemm, false, "all-gather and gate-up, serial"},
    KnownCase{"gemm_rs", Work::gemm_scatter, false, "down and reduce-scatter, serial"},
};

const KnownCase* case_of(std::string_view name) {
  const auto* const match =
      std::ranges::find_if(known_cases, [&](const KnownCase& known) { return name.starts_with(known.begin); });
  return match == known_cases.end() ? nullptr : match;
}

/// The source labels this case with 2,048 tokens, but the command of the case and an earlier revision of the source
/// (ac02c72) have 4,096. The case takes 1.8 times as long as mlp_gemm_ar, the other case with 2,048 tokens.
constexpr std::string_view mislabelled = "mlp_ag_rs";

/// Returns why a row is not predicted; empty if it is.
std::string why_not(const KnownCase* known, std::string_view name, const Sequences& sequences) {
  return known == nullptr      ? "an unknown case"
         : name == mislabelled ? "the source gives this row 2,048 tokens in one revision and 4,096 in another"
         : sequences.batch == 0 || sequences.tokens == 0 ? "the shape states neither bsz and ctx nor M"
                                                         : "";
}

/// Returns the sequences of a shape such as "bsz=32 ctx=128" or "M=2048"; zeros for any other shape.
Sequences sequences_of(std::string_view shape) {
  const std::int64_t tokens = number_in(shape, "M=");
  return tokens > 0 ? Sequences{.batch = 1, .tokens = tokens}
                    : Sequences{.batch = number_in(shape, "bsz="), .tokens = number_in(shape, "ctx=")};
}

/// Returns the time of a pass, or of one layer's block. Throws ConfigError for a pass that is not possible.
double pass_us(const KnownCase& known, const Transformer& model, ServedMachine& on, const Sequences& sequences) {
  StepPoint point = on.prefill(model, engine_ranks, sequences);
  if (known.decodes) {
    point.cached = std::exchange(point.plan.seq, 1);
  }
  require_possible(point);
  const auto time_of = [&](const auto& prediction) {
    return known.work == Work::pass        ? to_microseconds(prediction.time)
           : known.work == Work::attention ? to_microseconds(prediction.parts->mixing / model.layers)
                                           : to_microseconds(prediction.parts->mlp / model.layers);
  };
  return known.decodes ? time_of(predict_decode(point, on.sites())) : time_of(predict_prefill(point, on.sites()));
}

/// Returns the time of a GEMM and its collective, one after the other. Throws ConfigError for a point that is not
/// possible.
double site_us(const KnownCase& known, const Transformer& model, const Machine& machine, const Sequences& sequences,
               Context& context) {
  Point point{.model = model, .machine = machine};
  point.scope = known.work == Work::gather_gemm ? Scope::gate_up : Scope::down;
  point.ranks = engine_ranks;
  point.seq = sequences.tokens;
  require_possible(point);
  return makespan_us(context.predictor.predict(point, serial_strategy, {.dtype = point.dtype}));
}

/// The machines that the rows of a table name.
class ServedMachines {
 public:
  explicit ServedMachines(const Context& context) : machines_(context.machines) {}

  const FoundMachine& of(std::string_view name) { return machines_.of(name); }
  ServedMachine& serving(const Machine& machine) {
    std::unique_ptr<ServedMachine>& served = served_[machine.name];
    if (served == nullptr) {
      served = std::make_unique<ServedMachine>(machine);
    }
    return *served;
  }

 private:
  MachineColumn machines_;
  std::map<std::string, std::unique_ptr<ServedMachine>, std::less<>> served_;
};

}  // namespace

void score_engine_passes(const Table& table, Context& context, Tally& tally) {
  const Column hw = table.column("hw");
  const Column work = table.column("case");
  const Column shape = table.column("shape");
  const Column time = table.column("torch_ms");
  ServedMachines machines(context);
  ModelColumn models;
  const Transformer* model = models.of(engine_model);
  tally.result().remarks.push_back(
      fmt::format("{} on {} ranks: whole passes, single blocks and GEMMs with their collective as PyTorch and NCCL run "
                  "them, launched kernel by kernel. The authors' own kernels are not scored.",
                  engine_model, engine_ranks));
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const KnownCase* const known = case_of(row.text(work));
    const Sequences sequences = sequences_of(row.text(shape));
    const double measured_us = 1e3 * row.amount(time);
    if (!tally.takes(row, true)) {
      continue;
    }
    const FoundMachine& match = machines.of(row.text(hw));
    const std::string reason = why_not(known, row.text(work), sequences);
    if (match.machine == nullptr || !reason.empty()) {
      tally.skip(match.machine == nullptr ? match.why_not : reason);
      continue;
    }
    if (model == nullptr) {
      tally.skip(fmt::format("no model file is known as {}", in_quotes(engine_model)));
      continue;
    }
    try {
      const bool is_site = known->work == Work::gather_gemm || known->work == Work::gemm_scatter;
      const double predicted_us = is_site ? site_us(*known, *model, *match.machine, sequences, context)
                                          : pass_us(*known, *model, machines.serving(*match.machine), sequences);
      tally.score(row, *match.machine, true, {{measured_us, predicted_us, std::span(&known->part, 1)}});
    } catch (const ConfigError& error) {
      tally.skip(error.what());
    }
  }
}

}  // namespace commfuse::score
