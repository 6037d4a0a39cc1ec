// SPDX-License-Identifier: Apache-2.0
#include "validate/compare/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "model/check.h"
#include "model/columns.h"
#include "model/text/counted.h"
#include "model/text/decimals.h"
#include "model/wrapped.h"

namespace commfuse::validate {

namespace {

using Json = nlohmann::ordered_json;

double seconds(const ComparedSchedule& schedule) { return to_seconds(schedule.measured->median.value); }

/// Returns the indices of the measured schedules.
std::vector<std::size_t> measured_indices(std::span<const ComparedSchedule> schedules) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    if (schedules[i].measured) {
      indices.push_back(i);
    }
  }
  return indices;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2.0;
}

/// Counts pairs whose predictions differ clearly, and how many of these pairs were measured in the predicted order.
void count_pairs(std::span<const ComparedSchedule> schedules, std::span<const std::size_t> indices, Agreement& result) {
  for (const std::size_t faster : indices) {
    for (const std::size_t slower : indices) {
      const ComparedSchedule& a = schedules[faster];
      const ComparedSchedule& b = schedules[slower];
      if (to_seconds(b.predicted) > to_seconds(a.predicted) * (1.0 + clear_gap)) {
        ++result.pairs;
        result.in_order += seconds(b) > seconds(a) ? 1 : 0;
      }
    }
  }
}

/// Returns the lead of the winner over the best rival: the fastest other schedule, or the predicted winner if it lost.
std::optional<Ratio> lead_of(std::span<const ComparedSchedule> schedules, std::span<const std::size_t> indices,
                             const Agreement& result) {
  constexpr std::uint64_t seed = 1;
  const ComparedSchedule* rival = nullptr;
  for (const std::size_t index : indices) {
    const bool is_rival = result.measured_winner == result.predicted_winner ? index != result.measured_winner
                                                                            : index == result.predicted_winner;
    if (is_rival && (rival == nullptr || seconds(schedules[index]) < seconds(*rival))) {
      rival = &schedules[index];
    }
  }
  if (rival == nullptr) {
    return std::nullopt;
  }
  return ratio_of_medians(rival->makespans, schedules[result.measured_winner].makespans, seed);
}

/// Returns "2.2% ahead of the next (95% interval 1.1 to 3.0)".
std::string in_words(const Ratio& lead, std::string_view rival) {
  const auto percent = [](double ratio) { return with_decimals((ratio - 1.0) * 100.0, 1); };
  return fmt::format("{}% ahead of {} (95% interval {} to {}){}", percent(lead.value), rival, percent(lead.low),
                     percent(lead.high), lead.low <= 1.0 ? ", too close to call" : "");
}

std::string winner_in_words(std::span<const ComparedSchedule> schedules, const Agreement& agreement) {
  const ComparedSchedule& expected = schedules[agreement.predicted_winner];
  if (!agreement.lead) {
    return fmt::format("Only {} was measured.", expected.name());
  }
  const std::string prediction_text =
      fmt::format("{} was predicted to win by {:.1f}%", expected.name(), agreement.predicted_gap * 100.0);
  if (agreement.predicted_winner == agreement.measured_winner) {
    return fmt::format("{}, and won, {}.", prediction_text, in_words(*agreement.lead, "the next"));
  }
  return fmt::format("{}, but {} won, {}.", prediction_text, schedules[agreement.measured_winner].name(),
                     in_words(*agreement.lead, "the predicted winner"));
}

/// Returns what an emulated run shows, with a space before it.
std::string meaning_of_emulation(const Agreement& agreement) {
  constexpr std::string_view emulated = " This run is emulated: every op slept for its predicted duration.";
  if (agreement.worst_error > clear_gap) {
    return fmt::format(
        "{} It does not confirm the prediction, because the two differ by more than {:.0f}%; usually other programs "
        "delay its threads. End them, or raise --dilation, and measure again; commfuse-validate doctor shows how late "
        "threads wake up.",
        emulated, clear_gap * 100.0);
  }
  return fmt::format(
      "{} It shows that the order of ops, their waits and the evaluator agree; it does not show that the predicted "
      "durations are right.",
      emulated);
}

std::string ms(Duration time) { return fmt::format("{:.3f}", to_seconds(time) * 1e3); }

/// Returns the lines about a schedule's ops, which follow the schedule's own line.
std::string lines_of(const ComparedOps& ops) {
  std::string text;
  const auto line = [&](const std::string& what, const OpTimes& times) {
    text += fmt::format("  {:<27} {:>9} {:>9} {:>7}\n", cut(what, 27), ms(times.predicted), ms(times.measured),
                        times.predicted > Duration{} ? fmt::format("{:.3f}", times.ratio()) : "-");
  };
  for (const OpTimes& kind : ops.kinds) {
    line(fmt::format("{} x {}", kind.ops, kind.what), kind);
  }
  line(fmt::format("worst: {}", ops.furthest.what), ops.furthest);
  return text;
}

Json json_of(const OpTimes& times) {
  return {{"what", times.what},
          {"ops", times.ops},
          {"predicted_us", to_microseconds(times.predicted)},
          {"measured_us", to_microseconds(times.measured)}};
}

Json json_of(const ComparedOps& ops) {
  Json kinds = Json::array();
  for (const OpTimes& kind : ops.kinds) {
    kinds.push_back(json_of(kind));
  }
  return {{"kinds", std::move(kinds)}, {"furthest", json_of(ops.furthest)}};
}

/// Returns "1.234..1.240", or "-" for too few samples.
std::string range_of(const Estimate& estimate) {
  return estimate.range ? fmt::format("{}..{}", ms(estimate.range->low), ms(estimate.range->high)) : "-";
}

}  // namespace

std::string ComparedSchedule::name() const {
  return parameters.empty() ? strategy : fmt::format("{} ({})", strategy, parameters);
}

double ComparedSchedule::ratio() const {
  check(measured.has_value() && predicted > Duration{}, "a ratio needs a measured time and a predicted time above 0");
  return to_seconds(measured->median.value) / to_seconds(predicted);
}

std::optional<Agreement> agreement_of(std::span<const ComparedSchedule> schedules) {
  const std::vector<std::size_t> indices = measured_indices(schedules);
  if (indices.empty()) {
    return std::nullopt;
  }
  Agreement result{.compared = indices.size()};
  std::vector<double> errors;
  for (const std::size_t index : indices) {
    errors.push_back(std::abs(schedules[index].ratio() - 1.0));
    if (errors.back() > result.worst_error || index == indices.front()) {
      result.worst_error = errors.back();
      result.worst = index;
    }
  }
  result.median_error = median_of(errors);
  const auto predicted = [&](std::size_t index) { return schedules[index].predicted; };
  const auto measured = [&](std::size_t index) { return schedules[index].measured->median.value; };
  result.predicted_winner = *std::ranges::min_element(indices, {}, predicted);
  result.measured_winner = *std::ranges::min_element(indices, {}, measured);
  std::optional<Duration> second;
  for (const std::size_t index : indices) {
    if (index != result.predicted_winner) {
      second = std::min(second.value_or(predicted(index)), predicted(index));
    }
  }
  if (second) {
    result.predicted_gap = to_seconds(*second) / to_seconds(predicted(result.predicted_winner)) - 1.0;
  }
  result.lead = lead_of(schedules, indices, result);
  count_pairs(schedules, indices, result);
  return result;
}

Evidence evidence_of(const RunRecord& record) {
  return record.compute == "emulated" ? Evidence::emulated : Evidence::measured;
}

std::string verdict_in_words(std::span<const ComparedSchedule> schedules, const Agreement& agreement,
                             Evidence evidence) {
  std::string text =
      winner_in_words(schedules, agreement) +
      fmt::format(" Measured and predicted differ by {:.1f}% in the median, at most by {:.1f}% ({}).",
                  agreement.median_error * 100.0, agreement.worst_error * 100.0, schedules[agreement.worst].name());
  if (agreement.pairs > 0) {
    text += fmt::format(" Of {} predicted more than {:.0f}% apart, {} came in that order.",
                        counted(agreement.pairs, "pair"), clear_gap * 100.0, agreement.in_order);
  }
  return evidence == Evidence::emulated ? text + meaning_of_emulation(agreement) : text;
}

std::string to_table(std::span<const ComparedSchedule> schedules, Evidence evidence) {
  std::vector<const ComparedSchedule*> order;
  for (const ComparedSchedule& schedule : schedules) {
    order.push_back(&schedule);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->predicted < b->predicted; });
  constexpr auto line = "{:<29} {:>9} {:>9} {:>7} {:>20}\n";
  std::string text = fmt::format(line, "milliseconds", "predicted", "measured", "ratio", "95% interval");
  for (const ComparedSchedule* schedule : order) {
    const std::string name = cut(schedule->name(), 29);
    text += schedule->measured
                ? fmt::format(line, name, ms(schedule->predicted), ms(schedule->measured->median.value),
                              fmt::format("{:.3f}", schedule->ratio()), range_of(schedule->measured->median))
                : fmt::format(line, name, ms(schedule->predicted), "failed", "-", "-");
    text += schedule->ops ? lines_of(*schedule->ops) : "";
  }
  if (const std::optional<Agreement> agreement = agreement_of(schedules)) {
    text += wrapped(verdict_in_words(schedules, *agreement, evidence), "", "");
  }
  return text;
}

std::string to_json(std::span<const ComparedSchedule> schedules, Evidence evidence) {
  const std::optional<Agreement> agreement = agreement_of(schedules);
  std::string text = "[";
  for (const ComparedSchedule& schedule : schedules) {
    const auto index = static_cast<std::size_t>(&schedule - schedules.data());
    Json object{{"schema", comparison_schema},
                {"strategy", schedule.strategy},
                {"parameters", schedule.parameters},
                {"schedule_sha256", schedule.schedule_sha256},
                {"status", schedule.measured ? "ok" : "failed"},
                {"emulated", evidence == Evidence::emulated},
                {"predicted_us", to_microseconds(schedule.predicted)}};
    const auto put = [&](const char* key, const Json& value) { object[key] = schedule.measured ? value : Json(); };
    const Summary summary = schedule.measured.value_or(Summary{});
    const TimeRange range = summary.median.range.value_or(TimeRange{});
    put("measured_us", to_microseconds(summary.median.value));
    put("measured_low_us", summary.median.range ? Json(to_microseconds(range.low)) : Json());
    put("measured_high_us", summary.median.range ? Json(to_microseconds(range.high)) : Json());
    put("p10_us", to_microseconds(summary.p10));
    put("p90_us", to_microseconds(summary.p90));
    put("samples", summary.samples);
    put("ratio", schedule.measured ? schedule.ratio() : 0.0);
    const bool has_lead = agreement && agreement->lead && agreement->measured_winner == index;
    const Ratio lead = has_lead ? *agreement->lead : Ratio{};
    object["lead"] = has_lead ? Json{{"ratio", lead.value}, {"low", lead.low}, {"high", lead.high}} : Json();
    put("predicted_winner", agreement && agreement->predicted_winner == index);
    put("measured_winner", agreement && agreement->measured_winner == index);
    if (schedule.ops) {
      object["ops"] = json_of(*schedule.ops);
    }
    text += fmt::format("{}\n{}", index == 0 ? "" : ",", object.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  return text + "\n]\n";
}

}  // namespace commfuse::validate
