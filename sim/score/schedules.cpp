// SPDX-License-Identifier: Apache-2.0
// Scores tables with published times of this project's strategies on machines of the catalogue. Every row is predicted
// like a run of commfuse-sim, with the fastest values of the parameters that the row does not fix.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>

#include "model/config/catalogue.h"
#include "model/config/choices.h"
#include "model/config_error.h"
#include "model/text/plain_text.h"
#include "model/text/suggest.h"
#include "sim/score/judged_ways.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"
#include "sim/score/sizes.h"

namespace commfuse::score {

namespace {

/// A strategy that was measured at a point of the table.
struct Work {
  const Machine* machine = nullptr;
  Way way;
};
using PointKey = std::tuple<std::string_view, std::string_view, std::string_view, std::int64_t, std::int64_t,
                            std::int64_t, DType, AttentionKernel>;

struct Columns {
  explicit Columns(const Table& table)
      : hw(table.column("hw")),
        model(table.column("model")),
        scope(table.column("scope")),
        ranks(table.column("ranks")),
        batch(table.column("batch")),
        seq(table.column("seq")),
        dtype(table.column("dtype")),
        strategy(table.column("strategy")),
        slices(table.column("slices")),
        attention(table.column("attention_kernel")),
        time(table.column("time_us")) {}
  Column hw, model, scope, ranks, batch, seq, dtype, strategy, slices, attention, time;
};

/// Throws ConfigError for an unknown kind of kernel.
AttentionKernel attention_named(std::string_view word) {
  for (const auto& [known, kernel] : attention_choices) {
    if (known == word) {
      return kernel;
    }
  }
  throw ConfigError(fmt::format("unknown kind of attention kernel {}", in_quotes(word)));
}

/// A machine of the catalogue, and copies of it that each have one parameter raised by its standard error.
struct DoubtfulMachine {
  explicit DoubtfulMachine(std::string_view name)
      : machine(load_machine(name)),
        raised(std::make_shared<const std::vector<RaisedMachine>>(raised_beside_decoding(machine))) {}
  Machine machine;
  std::shared_ptr<const std::vector<RaisedMachine>> raised;
};

/// Predicts the strategy of a row with its fastest options; `slices` may fix the number of slices. Throws ConfigError
/// for anything the model lacks.
Prediction predicted(const Row& row, const Columns& columns, std::optional<std::int32_t> slices, const Point& point,
                     Predictor& predictor) {
  const Strategy* strategy = find_strategy(row.text(columns.strategy));
  if (strategy == nullptr || !applies(*strategy, kinds_of(point.scope))) {
    throw ConfigError(
        fmt::format("{} is not a strategy for {}", with_escapes(row.text(columns.strategy)), row.text(columns.scope)));
  }
  require_possible(point);
  StrategyOptions base{.dtype = point.dtype};
  OptionSet fixed;
  if (slices) {
    base.slices = *slices;
    fixed.add(Option::slices);
  }
  const std::vector<StrategyOptions> candidates = strategy->variants(base, fixed);
  return predictor.predict_best(point, *strategy, candidates);
}

/// Returns whether any parameter of the machine was fitted to a published time of a schedule rather than to a table of
/// single ops.
bool depends_on_schedules(const Machine& machine) {
  return std::ranges::any_of(parameters_of(machine), [](const NamedParameter& parameter) {
    return parameter.provenance == Provenance::fitted && parameter.source.find(".csv") == std::string::npos;
  });
}

/// Compares the strategies measured at each point with the first of them.
void compare(const std::map<PointKey, std::vector<Work>>& works, Tally& tally) {
  std::size_t point_number = 0;
  for (const auto& [point, variants] : works) {
    ++point_number;
    if (variants.size() < 2) {
      continue;
    }
    for (std::size_t i = 1; i < variants.size(); ++i) {
      const Way& first = variants[0].way;
      const Way& other = variants[i].way;
      tally.ratio(other.measured_us / first.measured_us, other.predicted_us / first.predicted_us);
      if (!depends_on_schedules(*variants[0].machine)) {
        judge(*variants[0].machine, "two schedules", first, other, {static_cast<std::int64_t>(point_number)}, tally);
      }
    }
    const auto faster = [](double Way::*time) {
      return [time](const Work& a, const Work& b) { return a.way.*time < b.way.*time; };
    };
    tally.winner(std::min_element(variants.begin(), variants.end(), faster(&Way::measured_us)) ==
                 std::min_element(variants.begin(), variants.end(), faster(&Way::predicted_us)));
  }
}

}  // namespace

void score_schedules(const Table& table, Context& context, Tally& tally) {
  const Columns columns(table);
  std::map<std::string, DoubtfulMachine, std::less<>> machines;
  std::map<PointKey, std::vector<Work>> works;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const std::string_view scope_word = row.text(columns.scope);
    Point point;
    point.ranks = static_cast<std::int32_t>(row.count(columns.ranks, max_gpus));
    point.batch = row.count(columns.batch);
    point.seq = row.count(columns.seq);
    const std::optional<std::int32_t> slices =
        row.has(columns.slices) ? std::optional(static_cast<std::int32_t>(row.count(columns.slices))) : std::nullopt;
    const double measured = row.amount(columns.time);
    if (!tally.takes(row, true)) {
      continue;
    }
    try {
      const std::optional<Scope> scope = scope_named(scope_word);
      const std::optional<DType> dtype = dtype_in_table(row.text(columns.dtype));
      if (!scope || !dtype) {
        throw ConfigError(scope ? fmt::format("unknown dtype {}", in_quotes(row.text(columns.dtype)))
                                : fmt::format("unknown scope {}", in_quotes(scope_word)));
      }
      if (row.has(columns.attention)) {
        point.price.attention = attention_named(row.text(columns.attention));
      }
      point.scope = *scope;
      point.dtype = *dtype;
      point.model = load_model(row.text(columns.model));
      const std::string_view hw = row.text(columns.hw);
      auto known = machines.find(hw);
      if (known == machines.end()) {
        known = machines.emplace(hw, DoubtfulMachine(hw)).first;
      }
      if (const FoundMachine kept = context.machines.unless_left_out(known->second.machine); kept.machine == nullptr) {
        tally.skip(kept.why_not);
        continue;
      }
      point.machine = known->second.machine;
      point.raised = known->second.raised;
      const Prediction prediction = predicted(row, columns, slices, point, context.predictor);
      const double time = to_microseconds(prediction.analysis.critical.makespan);
      const std::string_view part = row.text(columns.strategy);
      if (tally.score(row, point.machine, true, {{measured, time, std::span(&part, 1)}})) {
        works[{hw, row.text(columns.model), scope_word, point.ranks, point.batch, point.seq, point.dtype,
               point.price.attention}]
            .push_back({&known->second.machine, {measured, time, context.predictor.uncertainty(point, prediction)}});
      }
    } catch (const ConfigError& error) {
      tally.skip(error.what());
    }
  }
  compare(works, tally);
}

}  // namespace commfuse::score
