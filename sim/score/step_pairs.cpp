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

#include "sim/score/model_column.h"
#include "sim/score/step_case.h"

namespace commfuse::score {

namespace {

/// The only configuration that the rows name. It was recalled from memory, but agrees with MFU and throughput.
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

}  // namespace

void score_step_pairs(const Table& table, Context& context, Tally& tally) {
  const Column rate = table.column("peak_wps_per_gpu");
  const FoundMachine node = context.machines.in_prose("H100");
  const Framework exposed = load_framework("torchtitan");
  const Framework overlapped = load_framework("torchtitan-async-tp");
  StepScorer scorer(context);
  ModelColumn models;
  std::map<std::pair<std::string, std::int64_t>, StepSeconds> without_overlap;
  std::optional<double> largest_gain_error;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const std::string name(row.text(table.column("model")));
    const bool overlaps = row.text(table.column("async_tp")) == "yes";
    const std::int64_t local_batch = row.count(table.column("local_batch"));
    const double tokens_per_second = row.amount(rate);
    if (!tally.takes(row, true)) {
      continue;
    }
    const std::size_t split = name.find('_');
    const Transformer* const model =
        models.of(split == std::string::npos ? name : "llama-3.1-" + name.substr(split + 1));
    if (model == nullptr || !row.text(table.column("config_recalled")).starts_with(configuration)) {
      tally.skip(model == nullptr ? "no model file has this name" : "its configuration is not known");
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
    if (!tally.score(row, *answer.machine, true,
                     {{1e6 * seconds.measured, 1e6 * seconds.predicted, std::span(&part, 1)}})) {
      continue;
    }
    if (!overlaps) {
      without_overlap[{name, local_batch}] = seconds;
    } else if (const auto pair = without_overlap.find({name, local_batch}); pair != without_overlap.end()) {
      const StepSeconds& before = pair->second;
      tally.compare(seconds.measured / before.measured, seconds.predicted / before.predicted);
      const double measured_gain = before.measured / seconds.measured - 1.0;
      const double predicted_gain = before.predicted / seconds.predicted - 1.0;
      largest_gain_error = std::max(largest_gain_error.value_or(0.0), std::abs(predicted_gain - measured_gain));
    }
  }
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
