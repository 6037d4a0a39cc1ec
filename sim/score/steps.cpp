// SPDX-License-Identifier: Apache-2.0
// Scores tables of training steps. Remarks state the assumptions about settings that a table does not contain.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "model/fit/holdout.h"
#include "model/strategies/strategies.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"
#include "sim/score/machine_column.h"
#include "sim/score/model_column.h"
#include "sim/score/step_case.h"

namespace commfuse::score {

namespace {

/// Reads the columns "layers", "hidden", "heads" of a table.
Transformer gpt_of(const Table& table, Row& row, std::int64_t vocab, std::int64_t seq) {
  return gpt({.layers = row.count(table.column("layers"), max_layers),
              .hidden = row.count(table.column("hidden")),
              .heads = row.count(table.column("heads")),
              .vocab = vocab,
              .seq = seq});
}

/// Adds a fault to a row that states a number of GPUs different from that of its layout.
void require_layout_of(Row& row, std::string_view column, std::int64_t gpus, const TrainingPlan& plan) {
  if (gpus != plan.gpus()) {
    row.fault(fmt::format("{} is {}, but tensor {} x context {} x pipeline {} x data {} is {}", column, gpus,
                          plan.tensor, plan.context, plan.pipeline, plan.data, plan.gpus()));
  }
}

/// Adds a fault to a row whose cell, if there is one, states a number of GPUs different from that of its layout.
void require_stated_gpus(Row& row, const Column& stated, const TrainingPlan& plan) {
  if (row.has(stated)) {
    require_layout_of(row, stated.name, row.count(stated, max_gpus), plan);
  }
}

/// Returns the rank of every pair by its value on side `side`, counted from 0. Equal values share the mean of their
/// ranks.
std::vector<double> ranks_by(const std::vector<std::array<double, 2>>& pairs, std::size_t side) {
  std::vector<std::size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t pair) { return pairs[pair][side]; });
  std::vector<double> ranks(pairs.size());
  for (std::size_t first = 0, end = 0; first < order.size(); first = end) {
    while (end < order.size() && pairs[order[end]][side] == pairs[order[first]][side]) {
      ++end;
    }
    for (std::size_t at = first; at < end; ++at) {
      ranks[order[at]] = 0.5 * static_cast<double>(first + end - 1);
    }
  }
  return ranks;
}

/// Returns Spearman's rank correlation, which is the correlation of the ranks; nothing if a side has fewer than two
/// different values.
std::optional<double> rank_correlation(const std::vector<std::array<double, 2>>& pairs) {
  const std::array<std::vector<double>, 2> ranks{ranks_by(pairs, 0), ranks_by(pairs, 1)};
  const double mean = 0.5 * (static_cast<double>(pairs.size()) - 1.0);
  double covariance = 0.0;
  std::array<double, 2> variances{};
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    covariance += (ranks[0][i] - mean) * (ranks[1][i] - mean);
    for (std::size_t side = 0; side < 2; ++side) {
      variances[side] += (ranks[side][i] - mean) * (ranks[side][i] - mean);
    }
  }
  const double product = variances[0] * variances[1];
  return product > 0.0 ? std::optional(covariance / std::sqrt(product)) : std::nullopt;
}

/// Counts the pairs of layouts of the same work whose measured times differ by more than 5%, and the pairs among them
/// whose faster layout is predicted correctly.
void count_layouts(const std::map<std::string, std::vector<StepSeconds>>& by_work, StepScore& into) {
  constexpr double min_ratio = 1.05;
  for (const auto& [work, layouts] : by_work) {
    for (std::size_t a = 0; a < layouts.size(); ++a) {
      for (std::size_t b = a + 1; b < layouts.size(); ++b) {
        const double measured = layouts[a].measured / layouts[b].measured;
        if (measured > min_ratio || measured < 1.0 / min_ratio) {
          ++into.layout_pairs;
          into.better_named += (measured > 1.0) == (layouts[a].predicted > layouts[b].predicted) ? 1 : 0;
        }
      }
    }
  }
}

/// Megatron-DeepSpeed as vTrain ran it (configs/frameworks), with an unpadded vocabulary. The time to issue a kernel is
/// the only fitted constant; it minimizes the mean error over one in 25 groups of rows.
constexpr std::int64_t vtrain_vocab = 50257;
constexpr std::int64_t one_group_in = 25;

struct GptColumns {
  explicit GptColumns(const Table& table)
      : gpus(table.column("n_gpus")),
        global_batch(table.column("global_batch")),
        micro_batch(table.column("micro_batch")),
        hidden(table.column("hidden_size")),
        heads(table.column("attention_heads")),
        layers(table.column("n_layers")),
        seq(table.column("sequence_length")),
        tensor(table.column("tensor_parallelism")),
        data(table.column("data_parallelism")),
        pipeline(table.column("pipeline_parallelism")) {}
  Column gpus, global_batch, micro_batch, hidden, heads, layers, seq, tensor, data, pipeline;
  Framework framework = load_framework("megatron-deepspeed-2023");

  [[nodiscard]] StepCase read(Row& row) const {
    StepCase step;
    const std::int64_t length = row.count(seq);
    step.model = gpt({.layers = row.count(layers, max_layers),
                      .hidden = row.count(hidden),
                      .heads = row.count(heads),
                      .vocab = vtrain_vocab,
                      .seq = length});
    step.plan = {.tensor = row.count(tensor, max_gpus),
                 .pipeline = row.count(pipeline, max_gpus),
                 .data = row.count(data, max_gpus),
                 .global_batch = row.count(global_batch),
                 .micro_batch = row.count(micro_batch),
                 .seq = length,
                 .recompute = Recompute::full,
                 .dtype = DType::fp16};
    require_stated_gpus(row, gpus, step.plan);
    step.run_by(framework);
    step.gpus_differ = false;  // the times of this table are sums, without variation
    return step;
  }
};

/// Returns the key of the group of rows that share shape and layout. The global batch is not part of the key.
std::string group_of_step(const StepCase& step) {
  return fmt::format("training_step|{}|{}|{}|{}|{}|{}", step.model.hidden, step.model.layers, step.plan.tensor,
                     step.plan.data, step.plan.pipeline, step.plan.micro_batch);
}

/// Returns Megatron-Core's usual plan: gradients summed in 32 bits, optimizer state sharded over replicas, fused
/// attention.
TrainingPlan megatron_core_plan(std::int64_t tensor) {
  return {.tensor = tensor, .sequence_parallel = tensor > 1, .zero = Zero::optimizer};
}

/// Returns a remark that names the source of settings that a table does not contain.
std::string remark_on(const Framework& framework) {
  return fmt::format("Settings follow `configs/frameworks/{}.yaml`. ", framework.name);
}

/// Returns the seconds that the FLOPs take at `tflops` TFLOP/s per GPU.
double seconds_at(Flops flops, double tflops, const TrainingPlan& plan) {
  return flops.count / (tflops * 1e12 * static_cast<double>(plan.gpus()));
}

/// Predicts the step with the settings that the table omits, as its authors probably chose them: the fastest
/// micro-batch size and number of chunks per stage that fit in a GPU's memory. Uses one sequence and one chunk if
/// nothing fits, or if no choice divides the batch and the layers.
StepScorer::Answer best_answer(StepScorer& scorer, StepCase step, const FoundMachine& node, std::string_view prose) {
  constexpr std::array<std::int64_t, 4> micro_batches{1, 2, 4, 8};
  const std::int64_t layers_per_stage = step.model.layers / step.plan.pipeline;
  std::optional<StepScorer::Answer> best;
  for (const std::int64_t micro_batch : micro_batches) {
    step.plan.micro_batch = micro_batch;
    for (std::int64_t chunks = 1; chunks <= (step.plan.pipeline > 1 ? layers_per_stage : 1); ++chunks) {
      step.plan.interleave = chunks;
      const bool divides =
          step.plan.global_batch % (step.plan.data * micro_batch) == 0 && layers_per_stage % chunks == 0;
      if (!divides || (chunks > 1 && step.plan.micro_batches() % step.plan.pipeline != 0)) {
        continue;
      }
      StepScorer::Answer answer = scorer.predict(step, node, prose);
      const bool fits = answer.step && answer.step->fits;
      if (!best || (fits && (!best->step || !best->step->fits || answer.step->time < best->step->time))) {
        best = std::move(answer);
      }
    }
  }
  if (!best) {
    step.plan.micro_batch = 1;
    step.plan.interleave = 1;
    best = scorer.predict(step, node, prose);
  }
  return *best;
}

/// Evidence, from a measured step, that its plan fits into memory.
enum class MemoryFact : std::uint8_t {
  fitted,  ///< The step ran with everything in the GPU's memory.
  none     ///< The step kept a part of its activations elsewhere, which no plan expresses.
};

/// Scores a time of a row against a predicted step. Returns whether the time was scored.
bool score_step(Tally& tally, const Row& row, const StepScorer::Answer& answer, double measured_seconds, bool held_out,
                std::string_view part, MemoryFact fact = MemoryFact::fitted) {
  if (!answer.step) {
    tally.skip(answer.why_not);
    return false;
  }
  const bool scored = tally.score(row, *answer.machine, held_out,
                                  {{1e6 * measured_seconds, to_microseconds(answer.step->time), std::span(&part, 1)}});
  if (scored && fact == MemoryFact::fitted) {
    tally.also_memory_fact(answer.step->fits);
  }
  return scored;
}

}  // namespace

void score_gpt_steps(const Table& table, Context& context, Tally& tally) {
  const GptColumns columns(table);
  const Column time = table.column("iteration_time_ms");
  const FoundMachine node = machine_of_table(table, context);
  StepScorer scorer(context);
  std::vector<std::array<double, 2>> pairs;
  std::map<std::string, std::vector<StepSeconds>> by_work;
  double sum = 0.0;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const StepCase step = columns.read(row);
    const double measured = 1e-3 * row.amount(time);
    const bool held_out = fnv1a(group_of_step(step)) % one_group_in != 0;
    if (!tally.takes(row, held_out)) {
      continue;
    }
    const StepScorer::Answer answer = scorer.predict(step, node, table.comment("hardware"));
    const std::string part = fmt::format("TP {}", step.plan.tensor);
    if (score_step(tally, row, answer, measured, held_out, part) && held_out) {
      pairs.push_back({measured, to_seconds(answer.step->time)});
      sum += std::abs(pairs.back()[1] / pairs.back()[0] - 1.0);
      by_work[fmt::format("{}|{}|{}|{}|{}", step.model.hidden, step.model.layers, step.plan.seq, step.plan.global_batch,
                          step.plan.gpus())]
          .push_back({measured, pairs.back()[1]});
    }
  }
  if (!pairs.empty()) {
    tally.result().steps = StepScore{static_cast<std::int64_t>(pairs.size()), sum / static_cast<double>(pairs.size()),
                                     rank_correlation(pairs)};
    count_layouts(by_work, *tally.result().steps);
  }
  tally.result().remarks.push_back(fmt::format(
      "One constant is fitted: the time that the host takes to issue a kernel, {:.1f} us. Its rows are one group in {} "
      "(rows with equal shape and parallelism), selected by a hash of the group's key. The times of this table are "
      "sums over layers and micro-batches to within a few thousandths and contain no noise, so no host runs ahead of "
      "its GPU. The vocabulary of {} is not aligned on one tensor rank: its GEMMs take (16 / alignment in bytes)^{} "
      "times as long, a prior.",
      to_microseconds(columns.framework.issue.value), one_group_in, vtrain_vocab,
      columns.framework.misaligned_power.value));
}

/// Scores Korthikanti et al. 2022, table 5: full recomputation without sequence parallelism, and selective
/// recomputation with it.
void score_recomputed_steps(const Table& table, Context& context, Tally& tally) {
  const Column full = table.column("iter_s_full_recompute");
  const Column selective = table.column("iter_s_seqpar_selective");
  const FoundMachine node = machine_of_table(table, context);
  StepScorer scorer(context);
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    StepCase step;
    const std::int64_t seq = row.count(table.column("seq_len"));
    step.model = gpt_of(table, row, 51200, seq);
    step.plan = {.tensor = row.count(table.column("tp"), max_gpus),
                 .pipeline = row.count(table.column("pp"), max_gpus),
                 .interleave = row.count(table.column("interleave")),
                 .global_batch = row.count(table.column("gbs")),
                 .micro_batch = row.count(table.column("mbs")),
                 .seq = seq,
                 .recompute = Recompute::full,
                 .fused_attention = false,
                 .dropout = true,
                 .dtype = DType::fp16};
    require_stated_gpus(row, table.column("gpus"), step.plan);
    const double full_seconds = row.amount(full);
    const double selective_seconds = row.amount(selective);
    if (!tally.takes(row, true)) {
      continue;
    }
    const StepScorer::Answer full_answer = scorer.predict(step, node, table.comment("hardware"));
    step.plan.sequence_parallel = true;
    step.plan.recompute = Recompute::selective;
    const StepScorer::Answer selective_answer = scorer.predict(step, node, table.comment("hardware"));
    if (!full_answer.step || !selective_answer.step) {
      tally.skip(full_answer.step ? selective_answer.why_not : full_answer.why_not);
      continue;
    }
    constexpr std::array<std::string_view, 2> parts{"full recomputation", "selective, sequence parallelism"};
    const std::span<const std::string_view> names(parts);
    const double predicted_full = to_microseconds(full_answer.step->time);
    const double predicted_selective = to_microseconds(selective_answer.step->time);
    if (tally.score(row, *selective_answer.machine, true,
                    {{1e6 * full_seconds, predicted_full, names.first(1)},
                     {1e6 * selective_seconds, predicted_selective, names.last(1)}})) {
      tally.compare(selective_seconds / full_seconds, predicted_selective / predicted_full);
      tally.also_memory_fact(full_answer.step->fits);
      tally.also_memory_fact(selective_answer.step->fits);
    }
  }
  tally.result().remarks.push_back(
      "Attention is unfused, with dropout. Nothing is fitted to training steps; the time to "
      "issue a kernel, 12 us, is a prior. " +
      remark_on_spread());
}

/// Scores Megatron-Core's weak scaling on H100. FLOPs follow Korthikanti's equation 7, which counts all attention
/// scores.
void score_weak_scaling(const Table& table, Context& context, Tally& tally) {
  const Column rate = table.column("tflops_per_gpu");
  const FoundMachine node = machine_of_table(table, context);
  const Framework framework = load_framework("megatron-core-2024");
  StepScorer scorer(context);
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    StepCase step;
    const std::int64_t seq = row.count(table.column("seq"));
    step.model = gpt_of(table, row, row.count(table.column("vocab")), seq);
    step.plan = megatron_core_plan(row.count(table.column("tp"), max_gpus));
    step.plan.pipeline = row.count(table.column("pp"), max_gpus);
    step.plan.data = row.count(table.column("dp"), max_gpus);
    step.plan.global_batch = row.count(table.column("batch"));
    step.plan.seq = seq;
    require_stated_gpus(row, table.column("gpus"), step.plan);
    step.run_by(framework);
    const double tflops = row.amount(rate);
    if (!tally.takes(row, true)) {
      continue;
    }
    const Flops flops = training_flops(step.model, {step.plan.global_batch, seq}, AttentionCount::full);
    score_step(tally, row, best_answer(scorer, step, node, table.comment("hardware")),
               seconds_at(flops, tflops, step.plan), true, "step");
  }
  tally.result().remarks.push_back(remark_on(framework) +
                                   "Settings that the table omits are chosen as its authors probably chose them: the "
                                   "fastest micro-batch size and number of chunks per stage that fit in memory. " +
                                   remark_on_spread());
}

/// Scores table 4 of "The Llama 3 Herd of Models", 2024, with one layer per chunk of the pipeline (section 3.3.2).
void score_llama_steps(const Table& table, Context& context, Tally& tally) {
  const Column rate = table.column("tflops_per_gpu");
  const Column mfu = table.column("bf16_mfu_pct");
  ModelColumn models;
  StepScorer scorer(context);
  double worst_rate = 0.0;
  double worst_percent = 0.0;
  bool has_scored = false;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const Transformer* model = models.of("llama-3.1-" + std::string(row.text(table.column("model"))));
    StepCase step;
    const std::int64_t gpus = row.count(table.column("gpus"), max_gpus);
    step.plan = megatron_core_plan(row.count(table.column("tp"), max_gpus));
    step.plan.context = row.count(table.column("cp"), max_gpus);
    step.plan.pipeline = row.count(table.column("pp"), max_gpus);
    step.plan.zero = Zero::gradients;
    step.framework.fuses_accumulation = false;
    step.plan.data = std::max<std::int64_t>(1, gpus / (step.plan.tensor * step.plan.context * step.plan.pipeline));
    require_layout_of(row, "gpus", gpus, step.plan);
    step.plan.global_batch = step.plan.data * row.count(table.column("batch_per_dp"));
    step.plan.seq = row.count(table.column("seq"));
    step.strategy = &serial_strategy;
    const double tflops = row.amount(rate);
    const double measured_mfu = row.amount(mfu) / 100.0;
    if (!tally.takes(row, true)) {
      continue;
    }
    if (model == nullptr) {
      tally.skip("no model file has this name");
      continue;
    }
    step.model = *model;
    step.plan.interleave =
        step.plan.pipeline > 1 ? std::max<std::int64_t>(1, (model->layers + 2) / step.plan.pipeline) : 1;
    const std::string_view prose = row.text(table.column("hardware"));
    FoundMachine node = context.machines.in_prose(prose.substr(0, prose.find('-')));
    const StepScorer::Answer answer = scorer.predict(step, node, prose);
    const Flops flops = training_flops(step.model, {step.plan.global_batch, step.plan.seq}, AttentionCount::causal);
    if (score_step(tally, row, answer, seconds_at(flops, tflops, step.plan), true, "step")) {
      has_scored = true;
      const double peak = answer.machine->accelerator.dense_peak(step.plan.dtype).value;
      worst_rate = std::max(worst_rate, std::abs(answer.step->mfu - tflops * 1e12 / peak));
      worst_percent = std::max(worst_percent, std::abs(answer.step->mfu - measured_mfu));
    }
  }
  std::string mfu_remark;
  if (has_scored) {
    tally.result().mfu_distance = std::max(worst_rate, worst_percent);
    mfu_remark = fmt::format(
        "MFU is at most {:.1f} points off the published TFLOP/s and {:.1f} points off the published MFU, which is "
        "rounded to whole percents; attention scores are counted causally. ",
        100.0 * worst_rate, 100.0 * worst_percent);
  }
  tally.result().remarks.push_back(
      mfu_remark +
      "Tensor parallelism is `serial`, because the paper names no overlap. The number of replicas follows from the "
      "number of GPUs. Separate kernels add up gradients in 32 bits, as in PyTorch's FSDP. The authors mask scores "
      "between documents (section 3.2); all causal scores are predicted, which are more in the row with context "
      "ranks. " +
      remark_on_spread());
}

namespace {

/// Returns the first number of a cell such as "29994 (29388)", whose numbers belong to the recipes FP8-CS and FP8-MX.
/// Returns nothing for a single number.
std::optional<double> first_of_two(std::string_view text) {
  const std::size_t bracket = text.find(" (");
  return bracket == std::string_view::npos ? std::nullopt : parse_number(text.substr(0, bracket));
}

/// Reads a whole number from 1 to max_gpus, or the first of two.
std::int64_t first_count(Row& row, const Column& column) {
  const std::optional<double> first = first_of_two(row.text(column));
  if (!first) {
    return row.count(column, max_gpus);
  }
  if (*first >= 1.0 && *first <= static_cast<double>(max_gpus) && *first == std::floor(*first)) {
    return static_cast<std::int64_t>(*first);
  }
  row.fault(fmt::format("{} is {}, whose first number is not a whole number from 1 to {}", column.name,
                        in_quotes(row.text(column)), max_gpus));
  return 1;
}

/// Reads a finite amount above 0, or the first of two.
double first_amount(Row& row, const Column& column) {
  const std::optional<double> first = first_of_two(row.text(column));
  if (!first) {
    return row.amount(column);
  }
  if (std::isfinite(*first) && *first > 0.0) {
    return *first;
  }
  row.fault(
      fmt::format("{} is {}; a measurement must be a finite number above 0", column.name, in_quotes(row.text(column))));
  return 1.0;
}

/// Recipes that keep activations of some layers in the host's memory if they use fp8 and shard the weights over
/// replicas (use_megatron_fsdp): those with cpu_offloading_num_layers in scripts/performance/configs of
/// Megatron-Bridge. Other recipes of the table keep all activations on the GPU.
struct OffloadingRecipe {
  std::string_view model;
  std::string_view gpu;
};
constexpr std::array offloading_recipes{OffloadingRecipe{"llama-3.1-70b", "GB300"},
                                        OffloadingRecipe{"llama-3.1-70b", "GB200"},
                                        OffloadingRecipe{"llama-3.1-405b", "GB200"}};

constexpr std::string_view remark_on_offloading =
    "Recipes of large models that shard weights keep the activations of 20 to 95 layers in the host's memory "
    "(cpu_offloading_num_layers), so they do not show what fits on the GPU; their transfers are not predicted. ";

bool keeps_activations_in_host_memory(const StepCase& step, const Machine& machine) {
  return step.plan.zero == Zero::weights && step.plan.dtype == DType::fp8 &&
         std::ranges::any_of(offloading_recipes, [&](const OffloadingRecipe& recipe) {
           return recipe.model == step.model.name && recipe.gpu == machine.accelerator.name;
         });
}

/// Reads a table of NVIDIA's recipes, row by row.
class Recipes {
 public:
  Recipes(const Table& table, Context& context)
      : table_(table), machines_(context.machines), of_table_(machine_of_table(table, context)) {}

  /// A row as a step on a node of its machine, or the reason why it cannot be scored.
  struct Recipe {
    StepCase step;
    FoundMachine node;
    std::string why_not;
  };
  Recipe read(Row& row) {
    Recipe recipe;
    const std::string_view kind = row.text(table_.column("kind"));
    const std::string name(row.text(table_.column("model")));
    if (kind.find("LoRA") != std::string_view::npos || kind.find("SFT") != std::string_view::npos) {
      recipe.why_not = "fine-tuning, whose sequences are packed";
    } else if (name.rfind("System", 0) == 0) {
      recipe.why_not = "its columns are shifted by one: the row names no model";
    } else {
      read_machine_and_model(row, name, recipe);
    }
    if (recipe.why_not.empty()) {
      recipe.step.run_by(framework_);
      read_plan(row, recipe.step.plan);
      recipe.step.plan.dtype = is_bf16(row) ? DType::bf16 : DType::fp8;
    }
    return recipe;
  }

  [[nodiscard]] bool is_bf16(const Row& row) const {
    const Column precision = table_.column("precision");
    return precision.exists() && row.text(precision) == "BF16";
  }

  [[nodiscard]] const Framework& framework() const { return framework_; }
  /// Returns true also for rows without a format, because NVIDIA's pages that name no format describe releases that had
  /// only fp8.
  [[nodiscard]] bool is_fp8(const Row& row) const {
    const Column precision = table_.column("precision");
    const std::string_view text = precision.exists() ? row.text(precision) : "";
    return text.empty() || text == "FP8" || text == "FP8-CS";
  }

 private:
  void read_machine_and_model(const Row& row, const std::string& name, Recipe& recipe) {
    const Column system = table_.column("system");
    recipe.node = system.exists() ? machines_.of(row.text(system)) : of_table_;
    const Transformer* model = models_.of(name);
    if (model == nullptr && name.rfind("LLAMA3", 0) == 0) {  // has the shape of Llama 3.1
      model = models_.of("llama-3.1" + name.substr(6));
    }
    if (recipe.node.machine == nullptr) {
      recipe.why_not = recipe.node.why_not;
    } else if (model == nullptr) {
      recipe.why_not = fmt::format("no model file is known as {}", in_quotes(name));
    } else if (!is_bf16(row) && !is_fp8(row)) {
      recipe.why_not = "block-scaled formats (MXFP8, NVFP4), which hardware files do not describe";
    } else {
      recipe.step.model = *model;
    }
  }

  /// Returns whether FSDP shards the weights. The cell has the number of ranks that share the weights, or two numbers,
  /// of which the first counts; 0, n/a and an empty cell mean no FSDP.
  [[nodiscard]] bool shards_weights(Row& row) const {
    const Column fsdp = table_.column("fsdp");
    const std::string_view cell = row.text(fsdp);
    const std::string_view sharers = cell.substr(0, cell.find(" ("));
    if (sharers.empty() || sharers == "n/a") {
      return false;
    }
    const std::optional<std::int64_t> ranks = parse_integer(sharers);
    if (!ranks || *ranks < 0 || *ranks > max_gpus) {
      row.fault(fmt::format("fsdp is {}, which is not a whole number from 0 to {}", in_quotes(cell), max_gpus));
    }
    return ranks.value_or(0) > 0;
  }

  void read_plan(Row& row, TrainingPlan& plan) const {
    const auto count = [&](const char* name) { return first_count(row, table_.column(name)); };
    const auto count_or_one = [&](const char* name) {
      const std::string_view text = row.text(table_.column(name));
      return text.empty() || text == "n/a" ? std::int64_t{1} : count(name);
    };
    plan.tensor = count("tp");
    plan.sequence_parallel = plan.tensor > 1;
    plan.pipeline = count("pp");
    plan.context = count("cp");
    plan.zero = shards_weights(row) ? Zero::weights : Zero::optimizer;
    plan.interleave = plan.pipeline > 1 ? count_or_one("vp") : 1;
    plan.expert = count_or_one("ep");
    const std::int64_t gpus = count("gpus");
    plan.data = std::max<std::int64_t>(1, gpus / (plan.tensor * plan.context * plan.pipeline));
    require_layout_of(row, "gpus", gpus, plan);
    plan.global_batch = row.count(table_.column("gbs"));
    plan.micro_batch = row.count(table_.column("mbs"));
    plan.seq = row.count(table_.column("seq_len"));
  }

  const Table& table_;
  Framework framework_ = load_framework("megatron-bridge");
  ModelColumn models_;
  MachineColumn machines_;
  FoundMachine of_table_;
};

}  // namespace

/// Scores NVIDIA's recipes: tokens per second per GPU of named models.
void score_recipes(const Table& table, Context& context, Tally& tally) {
  const Column rate = table.column("tokens_s_gpu");
  Recipes recipes(table, context);
  StepScorer scorer(context);
  bool has_offloading = false;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    if (!row.is_sound()) {
      tally.takes(row, true);
      continue;
    }
    const Recipes::Recipe recipe = recipes.read(row);
    if (!recipe.why_not.empty()) {
      tally.skip(recipe.why_not);
      continue;
    }
    const double tokens = first_amount(row, rate);
    if (!tally.takes(row, true)) {
      continue;
    }
    const TrainingPlan& plan = recipe.step.plan;
    const double seconds =
        static_cast<double>(plan.global_batch * plan.seq) / (tokens * static_cast<double>(plan.gpus()));
    const bool offloads = keeps_activations_in_host_memory(recipe.step, *recipe.node.machine);
    has_offloading = has_offloading || offloads;
    score_step(
        tally, row, scorer.predict(recipe.step, recipe.node, table.comment("hardware")), seconds, true,
        fmt::format("{}, {}", recipe.step.model.experts ? "experts" : "dense", recipes.is_bf16(row) ? "bf16" : "fp8"),
        offloads ? MemoryFact::none : MemoryFact::fitted);
  }
  tally.result().remarks.push_back(remark_on(recipes.framework()) +
                                   "GEMMs of layers are in fp8, and so are the tensors that tensor ranks gather for "
                                   "them outside of rings; activations, sums and logits have 16 bits; conversions are "
                                   "priced where the fit of the GEMMs includes them. Nothing is recomputed. " +
                                   (has_offloading ? std::string(remark_on_offloading) : "") + remark_on_spread());
}

/// Scores Korthikanti et al. 2022, table 4: the forward and backward pass of one layer of the 22B model, which has 64
/// heads.
void score_layer_passes(const Table& table, Context& context, Tally& tally) {
  const Column forward = table.column("forward_ms");
  const Column backward = table.column("backward_ms");
  constexpr std::int64_t hidden_of_22b = 6144;
  // The table of the paper has no comments.
  const FoundMachine node =
      table.comment("hardware").empty() ? context.machines.in_prose("A100") : machine_of_table(table, context);
  StepScorer scorer(context);
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const std::string_view experiment = row.text(table.column("experiment"));
    const auto mentions = [&](std::string_view word) { return experiment.find(word) != std::string_view::npos; };
    StepCase step;
    const std::int64_t seq = row.count(table.column("seq"));
    step.model =
        gpt({.layers = 48, .hidden = row.count(table.column("hidden")), .heads = 64, .vocab = 51200, .seq = seq});
    step.plan = {.tensor = row.count(table.column("tp"), max_gpus),
                 .sequence_parallel = mentions("sequence"),
                 .global_batch = row.count(table.column("micro_batch")),
                 .micro_batch = row.count(table.column("micro_batch")),
                 .seq = seq,
                 .fused_attention = false,
                 .dropout = true,
                 .dtype = DType::fp16};
    step.plan.recompute = mentions("full recompute") ? Recompute::full
                          : mentions("selective")    ? Recompute::selective
                                                     : Recompute::none;
    const double forward_ms = row.amount(forward);
    const double backward_ms = row.amount(backward);
    if (!tally.takes(row, true)) {
      continue;
    }
    if (step.model.hidden != hidden_of_22b) {
      tally.skip("the table does not state the number of heads");
      continue;
    }
    const StepScorer::Answer answer = scorer.predict(step, node, table.comment("hardware"));
    if (!answer.layer) {
      tally.skip(answer.why_not);
      continue;
    }
    const double predicted_forward = to_microseconds(answer.layer->first);
    const double predicted_backward = to_microseconds(answer.layer->second);
    constexpr std::array<std::string_view, 3> parts{"forward", "backward", "both"};
    const std::span<const std::string_view> names(parts);
    tally.score(row, *answer.machine, true,
                {{1e3 * forward_ms, predicted_forward, names.subspan(0, 1)},
                 {1e3 * backward_ms, predicted_backward, names.subspan(1, 1)},
                 {1e3 * (forward_ms + backward_ms), predicted_forward + predicted_backward, names.subspan(2, 1)}});
  }
  tally.result().remarks.emplace_back(
      "These are layers of the 22B model, with 64 heads and unfused attention with dropout.");
}

}  // namespace commfuse::score
