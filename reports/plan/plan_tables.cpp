// SPDX-License-Identifier: Apache-2.0
#include "reports/plan/plan_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "model/math/functions.h"
#include "model/text/counted.h"
#include "model/text/decimals.h"
#include "reports/commas.h"
#include "reports/percents.h"
#include "reports/plan/plan_words.h"

namespace commfuse::reports {

namespace {

using Row = std::vector<std::string>;

constexpr const char* layout_name = "TPxPPxDPxCP";

/// Returns the limits that a run does not meet: "deadline, p99 step".
std::string misses_in_words(const CapacityRun& run) {
  std::string text = run.misses;
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

/// Names the cheapest run of the front that is shorter and cheaper than the answer, and the limits that it misses.
/// Empty if no run is both; a run that met all limits would be the answer.
std::string better_without_limits(const CapacityPlan& plan) {
  const CapacityKind* kind = plan.best_kind();
  std::string text;
  for (const RunPlace& place : plan.pareto) {  // cheapest last
    const CapacityRun& run = plan.kinds[place.kind].runs[place.run];
    if (kind != nullptr && !run.misses.empty() && run.days.value < kind->best()->days.value &&
        run.cost.value < kind->best()->cost.value) {
      text = fmt::format("{} {} would be both shorter and cheaper ({} days, {}) but miss a limit: {}. ", run.gpus,
                         run.kind, days(run.days.value), money(plan, run.cost.value), misses_in_words(run));
    }
  }
  return text;
}

constexpr const char* layout_words = "TPxPPxDPxCP: tensor, pipeline, data and context ranks.";

/// Returns an empty table if there is only one kind, which the verdict describes.
PlanTable kinds_table(const CapacityPlan& plan) {
  PlanTable table{
      .id = "kinds",
      .title = "Kinds of GPUs compared",
      .columns = {
          {"kind", true}, {"GPUs"}, {"days"}, {"cost"}, {"per Mtoken"}, {"chance"}, {"break-even"}, {layout_name}}};
  if (plan.kinds.size() < 2) {
    return table;
  }
  for (const CapacityKind& kind : plan.kinds) {
    const CapacityRun* run = kind.best();
    if (run == nullptr) {
      table.rows.push_back({kind.name, "none", "", "", "", "", "", ""});
      table.note += plan.answer ? fmt::format("For {}, {}. ", kind.name, kind.reason) : "";
      continue;
    }
    if (plan.best_kind() == &kind) {
      table.answer_row = table.rows.size();
    }
    table.rows.push_back({kind.name, with_commas(run->gpus), days(run->days.value), money(plan, run->cost.value),
                          money(plan, run->cost_per_mtok.value), has_limits(plan) ? likelihood(run->confidence) : "-",
                          kind.break_even_price ? money(plan, *kind.break_even_price) : "-",
                          layout_in_short(run->layout)});
  }
  table.note += better_without_limits(plan);
  table.note +=
      fmt::format("{}{} break-even: price per GPU-hour at which it costs as much as the next cheapest kind.",
                  layout_words, has_limits(plan) ? fmt::format(" chance: of meeting {}.", limits_in_words(plan)) : "");
  return table;
}

Row with_interval(std::string name, const Interval& interval, const auto& digits) {
  return {std::move(name), digits(interval.value), digits(interval.low), digits(interval.high)};
}

Row without_interval(std::string name, std::string value) { return {std::move(name), std::move(value), "", ""}; }

void add_run_rows(const CapacityPlan& plan, const CapacityRun& run, std::vector<Row>& rows) {
  const auto in_money = [&](double amount) { return money(plan, amount); };
  rows.push_back(with_interval("days", run.days, days));
  rows.push_back(with_interval("GPU-hours", run.gpu_hours, large));
  rows.push_back(with_interval("cost", run.cost, in_money));
  rows.push_back(with_interval("cost per million tokens", run.cost_per_mtok, in_money));
  if (run.energy_mwh) {
    rows.push_back(with_interval("energy, MWh", *run.energy_mwh, large));
    rows.push_back(without_interval("power, MW", plain(*run.power_mw)));
    if (plan.energy_price > 0.0) {
      rows.push_back(
          without_interval("cost of that energy", money(plan, 1e3 * run.energy_mwh->value * plan.energy_price)));
    }
  }
  rows.push_back(with_interval("goodput", run.goodput, share_percent));
  rows.push_back(without_interval("  failures in the run", plain(run.failures)));
  rows.push_back(without_interval("  minutes between checkpoints", plain(run.checkpoint_every_s / 60.0)));
}

void add_step_rows(const CapacityPlan& plan, const CapacityKind& kind, const CapacityRun& run, std::vector<Row>& rows) {
  const auto seconds = [&](const char* name, double time) {
    rows.push_back(without_interval(name, step_seconds(time)));
  };
  rows.push_back(with_interval("step, s", run.step_s, step_seconds));
  seconds("  compute, s", run.compute_s);
  seconds("  waiting, s", run.waiting_s);
  seconds("  gradients, s", run.gradients_s);
  seconds("  optimizer, s", run.optimizer_s);
  rows.push_back(without_interval("  share lost to the slowest GPU",
                                  share_percent(1.0 - run.step_equal_gpus_s / std::max(run.step_s.value, 1e-12))));
  seconds("  p50 over machines, s", run.step_p50_s);
  seconds("  p95 over machines, s", run.step_p95_s);
  seconds("  p99 over machines, s", run.step_p99_s);
  seconds("  p99.9 over machines, s", run.step_p99_9_s);
  rows.push_back(with_interval("tokens per second", run.tokens_per_second, large));
  const double gpus = static_cast<double>(run.gpus);
  rows.push_back(without_interval("  per GPU", plain(run.tokens_per_second.value / gpus)));
  rows.push_back(without_interval("model TFLOP/s per GPU",
                                  plain(run.tokens_per_second.value / gpus * plan.flops_per_token / 1e12)));
  rows.push_back(with_interval("MFU", run.mfu, share_percent));
  rows.push_back(without_interval("HFU", share_percent(run.hfu)));
  rows.push_back(without_interval("memory of the fullest GPU, GB",
                                  fmt::format("{:.1f} of {:.1f}", run.memory_gb, kind.memory_limit_gb)));
}

PlanTable answer_table(const CapacityPlan& plan, const CapacityKind& kind, const CapacityRun& run) {
  PlanTable table{
      .id = "answer",
      .title = fmt::format("The answer: {} {} on {}", with_commas(run.gpus), kind.name, counted(run.nodes, "node")),
      .columns = {{"", true}, {"value"}, {"5%"}, {"95%"}}};
  add_run_rows(plan, run, table.rows);
  add_step_rows(plan, kind, run, table.rows);
  table.note = plan.kinds.size() < 2 ? better_without_limits(plan) : "";
  table.note += fmt::format(
      "The columns 5% and 95% bound 90% of {} draws. The standard error of the step time is {}, of which {} is the "
      "model's own; prices and failures vary by the errors in the plan. {}",
      plan.draws, share_percent(kind.step_error), share_percent(plan.model_error), model_error_sentence(plan));
  return table;
}

PlanTable layout_table(const CapacityKind& kind, const CapacityRun& run) {
  const TrainingPlan& layout = run.layout;
  const auto number = [](std::int64_t value) { return fmt::format("{}", value); };
  const std::string gpus = fmt::format("{} GPU{}", with_commas(run.gpus), run.gpus == 1 ? "" : "s");
  return {
      .id = "layout",
      .title = run.excess_over_fastest > 0.0
                   ? fmt::format("Layout: within {} of the fastest on {}, chosen for {}",
                                 share_percent(run.excess_over_fastest), gpus, run.layout_rule)
                   : fmt::format("Layout: the fastest on {}", gpus),
      .note = fmt::format("{} layout{} considered{}; {} fit{} in memory.", size_with_commas(kind.layouts),
                          kind.layouts == 1 ? "" : "s", kind.count ? "" : " over all numbers of GPUs",
                          size_with_commas(kind.fitting), kind.fitting == 1 ? "s" : ""),
      .columns = {{"", true}, {""}, {"", true}, {""}},
      .rows = {{"tensor ranks", number(layout.tensor), "sequences per micro-batch", number(layout.micro_batch)},
               {"pipeline stages", number(layout.pipeline), "recompute", std::string(name_of(layout.recompute))},
               {"chunks per stage", number(layout.interleave), "ZeRO", number(static_cast<int>(layout.zero))},
               {"context ranks", number(layout.context), "sequence parallel", layout.sequence_parallel ? "yes" : "no"},
               {"Ulysses ranks", number(layout.ulysses), "expert ranks", number(layout.expert)},
               {"data replicas", number(layout.data), "pipeline schedule", std::string(name_of(layout.schedule))}}};
}

PlanTable sites_table(const CapacityKind& kind) {
  PlanTable table{
      .id = "schedules",
      .title = "Schedule of every GEMM that meets a collective, for one micro-batch",
      .columns = {{"site", true}, {"serial us"}, {"chosen us"}, {"compute us"}, {"hidden at"}, {"schedule", true}}};
  for (const CapacitySite& site : kind.sites) {
    const auto us = [](double time) { return fmt::format("{:.1f}", time); };
    table.rows.push_back({site.name, us(site.serial_us), us(site.best_us), us(site.compute_us),
                          site.rate_to_hide ? fmt::format("x{:.2f}", *site.rate_to_hide) : "never", site.schedule});
  }
  table.note =
      "hidden at: rate of the node's links, times today's, at which communication costs at most 1% of the time; "
      "never: more than x16.";
  return table;
}

/// Returns which of "answer", "tie", "knee" and "front" the run is, and the limits that it misses.
std::string notes_on_run(const CapacityPlan& plan, std::size_t kind, std::size_t run) {
  const auto on_front =
      std::ranges::find_if(plan.pareto, [&](const RunPlace& place) { return place.kind == kind && place.run == run; });
  std::string text = misses_in_words(plan.kinds[kind].runs[run]);
  text = text.empty() ? "" : "misses " + text;
  const auto add = [&](const char* word) { text = text.empty() ? word : fmt::format("{}; {}", word, text); };
  if (on_front != plan.pareto.end()) {
    add(plan.knee && on_front - plan.pareto.begin() == static_cast<std::ptrdiff_t>(*plan.knee) ? "knee" : "front");
  }
  if (std::ranges::any_of(plan.ties, [&](const RunPlace& tie) { return tie.kind == kind && tie.run == run; })) {
    add("tie");
  }
  if (plan.answer == kind && plan.kinds[kind].answer == run) {
    add("answer");
  }
  return text;
}

/// Removes the column of the kind if all rows have the same kind.
void drop_the_only_kind(const CapacityPlan& plan, PlanTable& table) {
  if (plan.kinds.size() > 1) {
    return;
  }
  table.columns.erase(table.columns.begin());
  for (Row& row : table.rows) {
    row.erase(row.begin());
  }
}

/// Returns whether the user fixed the number of GPUs of every kind, so that no number remains to choose.
bool has_fixed_counts(const CapacityPlan& plan) {
  return std::ranges::all_of(plan.kinds, [](const CapacityKind& kind) { return kind.count.has_value(); });
}

PlanTable counts_table(const CapacityPlan& plan) {
  PlanTable table{
      .id = "counts",
      .title = has_fixed_counts(plan) ? "The number of GPUs with its layout" : "Every number of GPUs with its layout",
      .columns = {{"kind", true}, {"GPUs"}, {"days"}, {"cost"}, {"MFU"}, {"step s"}, {layout_name}, {"notes", true}}};
  const double longest = longest_shown_days(plan);
  std::size_t longer = 0;
  for (std::size_t kind = 0; kind < plan.kinds.size(); ++kind) {
    for (std::size_t i = 0; i < plan.kinds[kind].runs.size(); ++i) {
      const CapacityRun& run = plan.kinds[kind].runs[i];
      if (run.days.value > longest) {
        ++longer;
        continue;
      }
      if (plan.answer == kind && plan.kinds[kind].answer == i) {
        table.answer_row = table.rows.size();
      }
      table.rows.push_back({run.kind, with_commas(run.gpus), days(run.days.value), money(plan, run.cost.value),
                            share_percent(run.mfu.value), step_seconds(run.step_s.value), layout_in_short(run.layout),
                            notes_on_run(plan, kind, i)});
    }
  }
  table.note =
      fmt::format("{}{} front: no other run is both shorter and cheaper; knee: the bend of the front{}.{}",
                  longer > 0 ? fmt::format("Not shown: {} more than {} days; JSON and CSV list them. ",
                                           longer == 1 ? "1 run that takes" : fmt::format("{} runs that take", longer),
                                           days(longest))
                             : "",
                  layout_words,
                  plan.ties.empty()    ? ""
                  : plan.deadline_days ? "; tie: cost within verdict.difference of the lowest, or not clearly higher"
                                       : "; tie: days within verdict.difference of the fewest, or not clearly more",
                  has_fixed_counts(plan) ? "" : " Only numbers that some layout divides evenly.");
  drop_the_only_kind(plan, table);
  return table;
}

/// Returns whether the table omits this change of a rate. The figure shows it, and halves and doubles suffice in the
/// table.
bool is_between_rates(const WhatIf& change) {
  return std::ranges::any_of(std::array{" x0.75", " x1.5", " x3"},
                             [&](const char* end) { return change.break_even_gpu && change.change.ends_with(end); });
}

PlanTable what_if_table(const CapacityPlan& plan) {
  PlanTable table{.id = "what-if",
                  .title = "What if: the same number of GPUs, the best layout for each change",
                  .columns = {{"change", true},
                              {"days"},
                              {"vs plan"},
                              {"cost"},
                              {"/GPU-hour"},
                              {"/GPU"},
                              {"days, 5 to 95%", false, true},
                              {"cost, 5 to 95%", false, true},
                              {"more GPU-hours", false, true},
                              {layout_name}}};
  const CapacityRun& answer = *plan.best_kind()->best();
  for (const WhatIf& change : plan.what_ifs) {
    if (is_between_rates(change)) {
      continue;
    }
    const double hours_more = 24.0 * static_cast<double>(answer.gpus) * (change.days.value - answer.days.value);
    table.rows.push_back({change_in_words(change.change), days(change.days.value), signed_percent(change.days_share),
                          money(plan, change.cost.value),
                          change.break_even_gpu_hour ? money(plan, *change.break_even_gpu_hour) : "",
                          change.break_even_gpu ? money(plan, *change.break_even_gpu) : "",
                          fmt::format("{} to {}", days(change.days.low), days(change.days.high)),
                          fmt::format("{} to {}", money(plan, change.cost.low), money(plan, change.cost.high)),
                          large(hours_more), layout_in_short(change.layout)});
  }
  table.note =
      "vs plan: difference in days, from the fastest layout before the change to the fastest after it. links: inside a "
      "node; network: between nodes. /GPU-hour, /GPU: break-even "
      "premium for such links, per hour and for the whole run.";
  return table;
}

std::string rate_or(const std::optional<double>& times, const char* other) {
  return times ? fmt::format("x{:.2f}", *times) : other;
}

PlanTable rates_table(const CapacityPlan& plan) {
  PlanTable table{
      .id = "rates",
      .title = "Rates of links that this run needs",
      .columns = {{"links", true}, {"now, GB/s"}, {"hidden at"}, {"hidden at, GB/s"}, {"95% at"}, {"knee"}}};
  for (const RateCurve& curve : plan.curves) {
    const CapacityKind& kind = *plan.best_kind();
    const double now = curve.links == "network" ? kind.network_gb_s.value_or(0.0) : kind.link_gb_s;
    table.rows.push_back({curve.links == "network" ? "between nodes" : "inside a node", plain(now),
                          rate_or(curve.to_hide, "never"), curve.to_hide_gb_s ? plain(*curve.to_hide_gb_s) : "-",
                          rate_or(curve.plateau, "none"), rate_or(curve.knee, "none")});
  }
  table.note =
      "x: times today's rate. hidden at: communication costs this layout at most 1%; below x1, today's links suffice. "
      "95% at: 95% of the tokens per second at x4. knee: the bend of the curve, its point farthest from the chord.";
  return table;
}

PlanTable sensitivity_table(const CapacityPlan& plan) {
  const std::string less = fmt::format("-{:g}%", 100.0 * plan.change);
  const std::string more = fmt::format("+{:g}%", 100.0 * plan.change);
  PlanTable table{.id = "sensitivity",
                  .title = "One input changed at a time, with the same layout",
                  .columns = {{"input", true}, {"days " + less}, {"days " + more}, {"cost " + less}, {"cost " + more}}};
  for (const Sensitivity* input : by_effect(plan.sensitivities)) {
    table.rows.push_back({input_in_words(input->input), days(input->days_low), days(input->days_high),
                          money(plan, input->cost_low), money(plan, input->cost_high)});
  }
  return table;
}

PlanTable doubts_table(const CapacityKind& kind) {
  PlanTable table{.id = "doubts",
                  .title = "Parameters whose errors change the time of a step most",
                  .note = "step: longer (+) or shorter (-) with the parameter one standard error higher.",
                  .columns = {{"known from", true}, {"step"}, {"parameter", true}}};
  for (const CapacityDoubt& doubt : kind.doubts) {
    table.rows.push_back({doubt.provenance, with_sign(100.0 * math::expm1(doubt.effect), 2) + "%", doubt.parameter});
  }
  return table;
}

std::string failures_in_words(double per_gpu_hour) {
  if (per_gpu_hour <= 0.0) {
    return "none";
  }
  constexpr double largest_with_commas = 1e12;
  const double hours = 1.0 / per_gpu_hour;
  const std::string text = hours < 10.0                  ? plain(hours)
                           : hours < largest_with_commas ? with_commas(std::llround(hours))
                                                         : fmt::format("{:.3g}", hours);
  return fmt::format("one per {} GPU-hour{}", text, text == "1" ? "" : "s");
}

void add_asked(const CapacityPlan& plan, std::vector<Row>& rows) {
  const std::string active = plan.active_parameters < plan.parameters
                                 ? fmt::format(", {} active", large(plan.active_parameters))
                                 : std::string{};
  rows.push_back({"model", fmt::format("{}, {} parameters{}", plan.model, large(plan.parameters), active)});
  rows.push_back({"shape", plan.shape});
  rows.push_back({"tokens", large(plan.tokens)});
  rows.push_back({"step", fmt::format("{} sequence{} of {} tokens: {} tokens, {}", with_commas(plan.batch),
                                      plan.batch == 1 ? "" : "s", with_commas(plan.seq),
                                      large(static_cast<double>(plan.batch * plan.seq)), plan.dtype)});
  if (!plan.framework.empty()) {
    rows.push_back({"run by", plan.framework});
  }
  rows.push_back({"FLOPs per token", fmt::format("{} with causal attention (half of the scores); 6N would be {}",
                                                 large(plan.flops_per_token), large(plan.six_n))});
  if (plan.deadline_days) {
    rows.push_back({"deadline", deadline_in_words(plan)});
  }
  if (plan.budget) {
    rows.push_back({"budget", money(plan, *plan.budget)});
  }
  if (has_limits(plan)) {
    rows.push_back({"required",
                    fmt::format("{:.0f}% chance of meeting {}", 100.0 * plan.asked_confidence, limits_in_words(plan))});
  }
  if (plan.p99_limit_s) {
    rows.push_back({"p99 of a step", fmt::format("at most {} s", plain(*plan.p99_limit_s))});
  }
  if (plan.power_limit_mw) {
    rows.push_back({"power", fmt::format("at most {} MW", plain(*plan.power_limit_mw))});
  }
  rows.push_back({"memory", fmt::format("at most {} of a GPU", share_percent(plan.memory_share))});
  rows.push_back({"failures", fmt::format("{}; a checkpoint takes {} s, a restart {} s",
                                          failures_in_words(plan.failures_per_gpu_hour), plain(plan.checkpoint_s),
                                          plain(plan.restart_s))});
  rows.push_back({"energy", plan.energy_price > 0.0
                                ? fmt::format("PUE {}, {} per kWh", plain(plan.pue), money(plan, plan.energy_price))
                                : fmt::format("PUE {}, not priced separately", plain(plan.pue))});
  rows.push_back({"jitter", fmt::format("{}, seed {}", plan.jitter, plan.seed)});
}

PlanTable inputs_table(const CapacityPlan& plan) {
  PlanTable table{.id = "inputs", .title = "Input", .columns = {{"", true}, {"", true}}};
  add_asked(plan, table.rows);
  for (const CapacityKind& kind : plan.kinds) {
    std::string links = fmt::format("{} GB/s in a node", plain(kind.link_gb_s));
    links += kind.network_gb_s ? fmt::format(", {} between nodes", plain(*kind.network_gb_s)) : "";
    table.rows.push_back(
        {kind.name,
         fmt::format("{}, {}; {} per GPU-hour on {}{}; {}{}", kind.machine, links, money(plan, kind.price),
                     kind.price_date, kind.price_source.empty() ? "" : fmt::format(" ({})", kind.price_source),
                     available_in_words(kind),
                     kind.power_w > 0.0 ? fmt::format(", {} W each", plain(kind.power_w)) : "")});
  }
  return table;
}

PlanTable hardware_table(const CapacityPlan& plan) {
  PlanTable table{
      .id = "hardware",
      .title = "Assumptions about the machines",
      .note = "error: one standard error, where it is known.",
      .columns = {{"kind", true}, {"what", true}, {"value"}, {"error"}, {"known from", true}, {"source", true, true}}};
  for (const CapacityKind& kind : plan.kinds) {
    for (const CapacityInput& input : kind.inputs) {
      table.rows.push_back({kind.name, input.what, input.value,
                            input.standard_error > 0.0 ? share_percent(input.standard_error) : "-", input.provenance,
                            input.source});
    }
  }
  drop_the_only_kind(plan, table);
  return table;
}

}  // namespace

std::vector<PlanTable> plan_tables(const CapacityPlan& plan) {
  std::vector<PlanTable> tables{kinds_table(plan)};
  if (const CapacityKind* kind = plan.best_kind()) {
    tables.push_back(answer_table(plan, *kind, *kind->best()));
    tables.push_back(layout_table(*kind, *kind->best()));
    tables.push_back(sites_table(*kind));
    tables.push_back(what_if_table(plan));
    tables.push_back(rates_table(plan));
    tables.push_back(sensitivity_table(plan));
    tables.push_back(doubts_table(*kind));
  }
  tables.push_back(counts_table(plan));
  tables.push_back(inputs_table(plan));
  tables.push_back(hardware_table(plan));
  std::erase_if(tables, [](const PlanTable& table) { return table.rows.empty(); });
  return tables;
}

}  // namespace commfuse::reports
