// SPDX-License-Identifier: Apache-2.0
// Scores published facts about whether training steps fitted into memory.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

#include "model/config_error.h"
#include "model/text/counted.h"
#include "model/text/suggest.h"
#include "model/workload/memory.h"
#include "sim/score/machine_column.h"
#include "sim/score/model_column.h"
#include "sim/score/step_case.h"

namespace commfuse::score {

namespace {

/// Reads a cell that must be `yes` or `no`. Returns whether it is `yes`.
bool is_yes(Row& row, const Column& column, std::string_view yes, std::string_view no) {
  const std::string_view text = row.text(column);
  if (text != yes && text != no) {
    row.fault(
        fmt::format("{} is {}; it must be {} or {}", column.name, text.empty() ? "empty" : in_quotes(text), yes, no));
  }
  return text == yes;
}

/// The columns of a table of memory facts.
struct FitColumns {
  explicit FitColumns(const Table& table)
      : hw(table.column("hw")),
        tensor(table.column("tp")),
        shares_tokens(table.column("sp")),
        pipeline(table.column("pp")),
        interleave(table.column("interleave")),
        data(table.column("dp")),
        context(table.column("cp")),
        zero(table.column("zero")),
        micro_batch(table.column("mbs")),
        global_batch(table.column("gbs")),
        seq(table.column("seq")),
        recompute(table.column("recompute")),
        kernel(table.column("attention_kernel")),
        dropout(table.column("dropout")),
        dtype(table.column("dtype")),
        gradient_dtype(table.column("gradient_dtype")),
        fits(table.column("fits")) {}
  Column hw, tensor, shares_tokens, pipeline, interleave, data, context, zero, micro_batch, global_batch, seq,
      recompute, kernel, dropout, dtype, gradient_dtype, fits;

  [[nodiscard]] TrainingPlan read(Row& row) const {
    TrainingPlan plan{.tensor = row.count(tensor, max_gpus),
                      .sequence_parallel = is_yes(row, shares_tokens, "on", "off"),
                      .pipeline = row.count(pipeline, max_gpus),
                      .interleave = row.count(interleave),
                      .data = row.count(data, max_gpus),
                      .context = row.count(context, max_gpus),
                      .global_batch = row.count(global_batch),
                      .micro_batch = row.count(micro_batch),
                      .seq = row.count(seq)};
    const std::int64_t stage = row.size(zero);
    if (stage > 3) {
      row.fault(fmt::format("ZeRO has stages 0 to 3, not {}", stage));
    } else {
      plan.zero = static_cast<Zero>(stage);
    }
    const auto recomputed = recompute_named(row.text(recompute));
    const auto type = dtype_named(row.text(dtype));
    const auto gradient_type = dtype_named(row.text(gradient_dtype));
    if (!recomputed || !type || !gradient_type) {
      row.fault("an unknown recomputation or dtype; use none, selective or full, and fp16, bf16, fp8 or fp32");
      return plan;
    }
    plan.recompute = *recomputed;
    plan.dtype = *type;
    plan.gradient_dtype = *gradient_type;
    plan.fused_attention = is_yes(row, kernel, "fused", "unfused");
    plan.dropout = is_yes(row, dropout, "on", "off");
    return plan;
  }
};

/// Returns the model that a row names or, without a name, a GPT of the row's shape as Megatron-LM trains it. Returns
/// nothing for an unknown name.
std::optional<Transformer> model_of(Row& row, const Table& table, ModelColumn& models, std::int64_t seq) {
  if (const std::string_view name = row.text(table.column("model")); !name.empty()) {
    const Transformer* model = models.of(name);
    return model == nullptr ? std::nullopt : std::optional(*model);
  }
  Transformer model = gpt({.layers = row.count(table.column("layers"), max_layers),
                           .hidden = row.count(table.column("hidden")),
                           .heads = row.count(table.column("heads")),
                           .vocab = row.count(table.column("vocab")),
                           .seq = seq});
  model.tied_embeddings = true;
  return model;
}

/// Returns a remark about a fact that contradicts the prediction.
std::string contradiction_of(const Transformer& model, const TrainingPlan& plan, Bytes memory, Bytes capacity,
                             bool fitted) {
  return fmt::format(
      "{} on {} (TP {}, PP {}, DP {}, micro-batch {}, ZeRO {}, recompute {}) {} {:.0f} GB: {:.1f} GB are predicted.",
      model.name, counted(plan.gpus(), "GPU"), plan.tensor, plan.pipeline, plan.data, plan.micro_batch,
      static_cast<int>(plan.zero), name_of(plan.recompute), fitted ? "fitted into" : "did not fit into",
      static_cast<double>(capacity.count) / 1e9, static_cast<double>(memory.count) / 1e9);
}

}  // namespace

void score_memory_fits(const Table& table, Context& context, Tally& tally) {
  const FitColumns columns(table);
  MachineColumn machines(context.machines);
  ModelColumn models;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const TrainingPlan plan = columns.read(row);
    const std::optional<Transformer> model = model_of(row, table, models, plan.seq);
    const bool did_fit = is_yes(row, columns.fits, "yes", "no");
    if (!tally.takes(row, true)) {
      continue;
    }
    const FoundMachine& node = machines.of(row.text(columns.hw));
    if (node.machine == nullptr || !model) {
      tally.skip(node.machine == nullptr ? node.why_not : "no model file has this name");
      continue;
    }
    try {
      require_possible(*model, plan);
    } catch (const ConfigError& error) {
      tally.skip(error.what());
      continue;
    }
    const Bytes memory = largest_step_memory(*model, plan).total();
    const Bytes capacity = node.machine->accelerator.hbm_capacity;
    const bool agrees = (memory <= capacity) == did_fit;
    tally.memory_fact(*node.machine, agrees);
    if (!agrees) {
      tally.result().remarks.push_back(contradiction_of(*model, plan, memory, capacity, did_fit));
    }
  }
}

}  // namespace commfuse::score
