// SPDX-License-Identifier: Apache-2.0
// Scores pairs of torchtitan steps, without and with async tensor parallelism.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "model/text/suggest.h"
#include "sim/score/model_column.h"
#include "sim/score/step_case.h"

namespace commfuse::score {

namespace {

/// The only configuration that is scored. It was recalled from memory, but agrees with MFU and throughput.
constexpr std::string_view configuration = "64x H100, TP=8 x FSDP=8, seq 8192, bf16";
constexpr std::int64_t ranks = 8;
constexpr std::int64_t tokens = 8192;

StepCase case_of(const Framework& framework, const Transformer& model, std::int64_t local_batch) {
  StepCase step;
  step.model = model;
  step.run_by(framework);
  step.plan.tensor = ranks;
  step.plan.sequence_parallel = true;
  step.plan.data = ranks;
  step.plan.global_batch = ranks * local_batch;
  step.plan.micro_batch = local_batch;
  step.plan.seq = tokens;
  step.plan.recompute = Recompute::full;
  return step;
}

/// Returns the model that a cell names, in torchtitan's words: "llama3_70b" is llama-3.1-70b, which has the same shape.
/// Returns null if there is no such file.
const Transformer* model_of_torchtitan(std::string_view name, ModelColumn& models) {
  constexpr std::string_view family = "llama3_";
  return name.starts_with(family) ? models.of(fmt::format("llama-3.1-{}", name.substr(family.size())))
                                  : models.of(name);
}

/// Reads a cell that must be yes or no. Returns whether it is yes.
bool uses_async_tp(Row& row, const Column& column) {
  const std::string_view cell = row.text(column);
  if (cell != "yes" && cell != "no") {
    row.fault(fmt::format("{} is {}; it must be yes or no", column.name, in_quotes(cell)));
  }
  return cell == "yes";
}

/// The times of one model and batch, without and with async tensor parallelism.
struct StepPair {
  std::optional<StepSeconds> without, with;
};

/// Compares the steps of complete pairs. Returns the largest error of a gain; nothing without a complete pair.
std::optional<double> compare_pairs(const std::map<std::pair<std::string, std::int64_t>, StepPair>& pairs,
                                    Tally& tally) {
  std::optional<double> largest_gain_error;
  for (const auto& [work, pair] : pairs) {
    if (pair.without && pair.with) {
      tally.compare(pair.with->measured / pair.without->measured, pair.with->predicted / pair.without->predicted);
      const double measured_gain = pair.without->measured / pair.with->measured - 1.0;
      const double predicted_gain = pair.without->predicted / pair.with->predicted - 1.0;
      largest_gain_error = std::max(largest_gain_error.value_or(0.0), std::abs(predicted_gain - measured_gain));
    }
  }
  return largest_gain_error;
}

}  // namespace

void score_step_pairs(const Table& table, Context& context, Tally& tally) {
  const Column rate = table.column("peak_wps_per_gpu");
  const FoundMachine node = context.machines.in_prose("H100");
  const Framework exposed = load_framework("torchtitan");
  const Framework overlapped = load_framework("torchtitan-async-tp");
  StepScorer scorer(context);
  ModelColumn models;
  std::map<std::pair<std::string, std::int64_t>, StepPair> pairs;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const std::string name(row.text(table.column("model")));
    const bool overlaps = uses_async_tp(row, table.column("async_tp"));
    const std::int64_t local_batch = row.count(table.column("local_batch"));
    const double tokens_per_second = row.amount(rate);
    if (!tally.takes(row, true)) {
      continue;
    }
    const Transformer* const model = model_of_torchtitan(name, models);
    if (model == nullptr || !row.text(table.column("config_recalled")).starts_with(configuration)) {
      tally.skip(model == nullptr ? fmt::format("no model file is known as {}", in_quotes(name))
                                  : "its configuration is not known");
      continue;
    }
    const StepCase step = case_of(overlaps ? overlapped : exposed, *model, local_batch);
    const StepScorer::Answer answer = scorer.predict(step, node, {});
    if (!answer.step) {
      tally.skip(answer.why_not);
      continue;
    }
    const double tokens_per_gpu =
        static_cast<double>(step.plan.global_batch * tokens) / static_cast<double>(step.plan.gpus());
    const StepSeconds seconds{tokens_per_gpu / tokens_per_second, to_seconds(answer.step->time)};
    const std::string_view part = overlaps ? "async TP" : "no overlap";
    if (tally.score(row, *answer.machine, true,
                    {{1e6 * seconds.measured, 1e6 * seconds.predicted, std::span(&part, 1)}})) {
      StepPair& pair = pairs[{name, local_batch}];
      (overlaps ? pair.with : pair.without) = seconds;
    }
  }
  const std::optional<double> largest_gain_error = compare_pairs(pairs, tally);
  tally.result().gain_distance = largest_gain_error;
  tally.result().remarks.push_back(
      fmt::format(
          "This table is marked because its configuration was recalled from memory. Everything is recomputed, as the "
          "share of the forward pass shows.{} ",
          largest_gain_error
              ? fmt::format(" The gain of async TP is at most {:.1f} points off.", 100.0 * *largest_gain_error)
              : "") +
      remark_on_spread());
}

}  // namespace commfuse::score
