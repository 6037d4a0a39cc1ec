// SPDX-License-Identifier: Apache-2.0
// Scores tables of whole prefill passes of an inference engine: serial, without communication, and with the tokens
// split in two halves, one of which communicates while the other computes (TokenWeave, arXiv 2505.11329). The
// predictions are those of `run --scope prefill --sequence-parallel off --as torch_multimem,tokenweave`.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "model/config/implementation.h"
#include "model/config_error.h"
#include "model/text/suggest.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"
#include "sim/score/model_column.h"
#include "sim/score/served_machine.h"
#include "sim/step/woven.h"

namespace commfuse::score {

namespace {

/// With fewer tokens, the host launches the kernels of a mixture of experts more slowly than they run: overlapped
/// passes over 1K and 2K tokens take the same time.
constexpr std::int64_t min_mixture_tokens = 4096;

struct PrefillTimes {
  double serial_us = 0.0;
  double compute_us = 0.0;  ///< Without sums.
  double overlapped_us = 0.0;
};

/// Predicts passes over one prompt on one machine.
class Passes {
 public:
  explicit Passes(const Machine& machine) : on_(machine) {}

  [[nodiscard]] const Implementation& kernels() const { return *kernels_; }
  [[nodiscard]] StepPoint point_of(const Transformer& model, std::int64_t ranks, std::int64_t tokens) const {
    return on_.prefill(model, ranks, {.batch = 1, .tokens = tokens});
  }

  /// Throws ConfigError for a pass that takes too long.
  [[nodiscard]] PrefillTimes times_of(StepPoint point) {
    const auto time = [&] { return to_microseconds(predict_prefill(point, on_.sites()).time); };
    PrefillTimes times;
    point.free_sums = true;
    times.compute_us = time();
    point.free_sums = false;
    point.implemented.kernels = serial_.get();
    times.serial_us = time();
    point.implemented.kernels = kernels_.get();
    times.overlapped_us = time();
    return times;
  }

 private:
  ServedMachine on_;
  std::shared_ptr<const Implementation> serial_ = load_implementation("torch_multimem");
  std::shared_ptr<const Implementation> kernels_ = load_implementation("tokenweave");
};

/// Returns why a row is not predicted; empty if it is.
std::string why_not(const StepPoint& point, const Implementation& kernels) {
  const Transformer& model = *point.model;
  const std::int64_t ranks = point.plan.tensor;
  if (model.latent || !model.kinds.empty() || (model.experts && model.experts->shared_ffn > 0)) {
    return fmt::format("{} has layers other than plain attention with an MLP or routed experts", model.name);
  }
  if (ranks > point.machine->gpus_per_node || model.heads % ranks != 0 ||
      (model.experts ? model.experts->ffn : model.ffn) % ranks != 0 || model.vocab % ranks != 0) {
    return fmt::format("{} cannot be split over {} ranks of {}", model.name, ranks, point.machine->name);
  }
  const std::string refusal = refusal_of(kernels, *point.machine, static_cast<std::int32_t>(ranks), point.plan.dtype);
  return refusal.empty() ? why_no_sums(point, kernels) : refusal;
}

/// The pass of a row with its times, or the reason why it is not predicted.
struct FoundPass {
  std::optional<StepPoint> point{};
  PrefillTimes times{};
  std::string why_not{};
};

/// Finds the passes of a table: its machine, and the model, ranks and tokens of a row.
class PassColumns {
 public:
  PassColumns(const Table& table, const Context& context, std::string_view tokens)
      : model_(table.column("model")),
        ranks_(table.column("tp")),
        tokens_(table.column(tokens)),
        known_(machine_of_source(table, context)),
        passes_(known_.machine == nullptr ? nullptr : std::make_unique<Passes>(*known_.machine)) {}

  [[nodiscard]] const Machine& machine() const { return *known_.machine; }

  /// Reads the row's cells and notes their faults. Must be called before Tally::takes(), which counts them.
  void read(Row& row) {
    row_ranks_ = row.count(ranks_, max_gpus);
    row_tokens_ = row.count(tokens_);
  }
  /// Requires `row` to be the row that read() read last.
  FoundPass pass_of(Row& row) {
    const Transformer* model = models_.of(row.text(model_));
    if (passes_ == nullptr) {
      return {.why_not = known_.why_not};
    }
    if (model == nullptr) {
      return {.why_not = fmt::format("no model file is known as {}", in_quotes(row.text(model_)))};
    }
    FoundPass pass{.point = passes_->point_of(*model, row_ranks_, row_tokens_)};
    pass.why_not = why_not(*pass.point, passes_->kernels());
    if (pass.why_not.empty()) {
      try {
        pass.times = passes_->times_of(*pass.point);
      } catch (const ConfigError& error) {
        pass.why_not = error.what();
      }
    }
    return pass;
  }

 private:
  Column model_, ranks_, tokens_;
  FoundMachine known_;
  std::unique_ptr<Passes> passes_;
  ModelColumn models_;
  std::int64_t row_ranks_ = 1;
  std::int64_t row_tokens_ = 1;
};

}  // namespace

void score_throughput(const Table& table, Context& context, Tally& tally) {
  const Column serial_rate = table.column("serial_tps");
  const Column overlapped_rate = table.column("overlapped_tps");
  PassColumns columns(table, context, "chunk_size");
  tally.result().remarks.push_back(
      "Only the gain is scored: the time of a pass over as many prompt tokens as a chunk, overlapped over serial. An "
      "engine also decodes, samples and schedules, which neither time contains.");
  constexpr std::string_view part = "overlapped over serial";
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    columns.read(row);
    const double measured = row.amount(serial_rate) / row.amount(overlapped_rate);
    if (!tally.takes(row, true)) {
      continue;
    }
    const FoundPass pass = columns.pass_of(row);
    if (!pass.why_not.empty()) {
      tally.skip(pass.why_not);
      continue;
    }
    const double predicted = pass.times.overlapped_us / pass.times.serial_us;
    if (tally.score(row, columns.machine(), true, {{measured, predicted, std::span(&part, 1), true}})) {
      tally.winner((predicted < 1.0) == (measured < 1.0));
    }
  }
}

void score_prefill(const Table& table, Context& context, Tally& tally) {
  const Column serial_ms = table.column("serial_ms");
  const Column compute_ms = table.column("compute_only_ms");
  const Column overlapped_ms = table.column("overlapped_ms");
  PassColumns columns(table, context, "prompt_tokens");
  tally.result().remarks.push_back(
      "`commfuse-sim run --scope prefill --sequence-parallel off --as torch_multimem,tokenweave` predicts these "
      "passes; no cost is fitted to them.");
  constexpr std::array<std::string_view, 3> parts{"serial", "compute only", "overlapped"};
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    columns.read(row);
    const PrefillTimes measured{.serial_us = 1e3 * row.amount(serial_ms),
                                .compute_us = 1e3 * row.amount(compute_ms),
                                .overlapped_us = 1e3 * row.amount(overlapped_ms)};
    if (!tally.takes(row, true)) {
      continue;
    }
    const FoundPass pass = columns.pass_of(row);
    if (!pass.why_not.empty()) {
      tally.skip(pass.why_not);
      continue;
    }
    if (pass.point->model->experts && pass.point->plan.seq < min_mixture_tokens) {
      tally.skip("too few tokens: the host launches kernels more slowly than they run");
      continue;
    }
    const PrefillTimes& predicted = pass.times;
    const std::span<const std::string_view> names(parts);
    if (tally.score(row, columns.machine(), true,
                    {{measured.serial_us, predicted.serial_us, names.subspan(0, 1)},
                     {measured.compute_us, predicted.compute_us, names.subspan(1, 1)},
                     {measured.overlapped_us, predicted.overlapped_us, names.subspan(2, 1)}})) {
      tally.compare(measured.overlapped_us / measured.serial_us, predicted.overlapped_us / predicted.serial_us);
      tally.ratio(columns.machine(), "serial over compute only", measured.serial_us / measured.compute_us,
                  predicted.serial_us / predicted.compute_us);
      tally.ratio(columns.machine(), "overlapped over compute only", measured.overlapped_us / measured.compute_us,
                  predicted.overlapped_us / predicted.compute_us);
    }
  }
}

}  // namespace commfuse::score
