// SPDX-License-Identifier: Apache-2.0
#include "reports/plan/plan_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/math/functions.h"
#include "model/text/quantity.h"
#include "reports/plan/plan_words.h"

namespace commfuse::reports {

namespace {

using Row = std::vector<std::string>;

constexpr const char* layout_name = "TPxPPxDPxCP";

/// The cheapest run of the front that is shorter and cheaper than the answer, and which limits it misses. Empty where
/// there is none; one that keeps all limits would be the answer.
std::string better_without_limits(const CapacityPlan& plan) {
  const CapacityKind* kind = plan.best_kind();
  std::string text;
  for (const RunPlace& place : plan.pareto) {  // the cheapest last
    const CapacityRun& run = plan.kinds[place.kind].runs[place.run];
    if (kind != nullptr && !run.misses.empty() && run.days.value < kind->best()->days.value &&
        run.cost.value < kind->best()->cost.value) {
      text = fmt::format("{} {} would be both shorter and cheaper ({} days, {}) but miss a limit: {}. ", run.gpus,
                         run.kind, days(run.days.value), money(plan, run.cost.value), run.misses);
    }
  }
  return text;
}

PlanTable kinds_table(const CapacityPlan& plan) {
  PlanTable table{
      .id = "kinds",
      .title = "What each kind of GPUs takes",
      .columns = {{"kind", true}, {"GPUs"}, {layout_name}, {"days"}, {"cost"}, {"a Mtoken"}, {"kept"}, {"ties at"}}};
  for (const CapacityKind& kind : plan.kinds) {
    const CapacityRun* run = kind.best();
    if (run == nullptr) {
      table.rows.push_back({kind.name, "none", "", "", "", "", "", ""});
      table.note += fmt::format("{}{}: {}.", table.note.empty() ? "" : " ", kind.name, kind.reason);
      continue;
    }
    table.rows.push_back({kind.name, fmt::format("{}", run->gpus), layout_in_short(run->layout), days(run->days.value),
                          money(plan, run->cost.value), money(plan, run->cost_per_mtok.value),
                          likelihood(run->confidence),
                          kind.break_even_price ? money(plan, *kind.break_even_price) : "-"});
  }
  table.note += (table.note.empty() ? "" : " ") + better_without_limits(plan);
  table.note += fmt::format(
      "kept: how likely {}. ties at: the price of a GPU-hour at which it costs as much as the cheapest other kind.",
      plan.deadline_days ? (plan.budget ? "deadline and budget are kept" : "the deadline is kept")
                         : "the budget is kept");
  return table;
}

Row with_interval(std::string name, const Interval& interval, const auto& digits) {
  return {std::move(name), digits(interval.value), digits(interval.low), digits(interval.high)};
}

Row alone(std::string name, std::string value) { return {std::move(name), std::move(value), "", ""}; }

void add_run_rows(const CapacityPlan& plan, const CapacityRun& run, std::vector<Row>& rows) {
  const auto in_money = [&](double amount) { return money(plan, amount); };
  rows.push_back(with_interval("days", run.days, days));
  rows.push_back(with_interval("GPU-hours", run.gpu_hours, large));
  rows.push_back(with_interval("cost", run.cost, in_money));
  rows.push_back(with_interval("cost of a million tokens", run.cost_per_mtok, in_money));
  if (run.energy_mwh) {
    rows.push_back(with_interval("energy, MWh", *run.energy_mwh, large));
    rows.push_back(alone("power, MW", plain(*run.power_mw)));
    if (plan.energy_price > 0.0) {
      rows.push_back(alone("cost of that energy", money(plan, 1e3 * run.energy_mwh->value * plan.energy_price)));
    }
  }
  rows.push_back(with_interval("goodput", run.goodput, share_percent));
  rows.push_back(alone("failures in the run", plain(run.failures)));
  rows.push_back(alone("work between checkpoints, min", plain(run.checkpoint_every_s / 60.0)));
}

void add_step_rows(const CapacityPlan& plan, const CapacityKind& kind, const CapacityRun& run, std::vector<Row>& rows) {
  rows.push_back(with_interval("step, s", run.step_s, step_seconds));
  rows.push_back(alone("  of it the wait for the slowest GPU",
                       share_percent(1.0 - run.step_alike_s / std::max(run.step_s.value, 1e-12))));
  rows.push_back(alone("  p50, p95 over machines, s",
                       fmt::format("{} {}", step_seconds(run.step_p50_s), step_seconds(run.step_p95_s))));
  rows.push_back(alone("  p99, p99.9 over machines, s",
                       fmt::format("{} {}", step_seconds(run.step_p99_s), step_seconds(run.step_p99_9_s))));
  rows.push_back(
      alone("  compute, waiting, s", fmt::format("{} {}", step_seconds(run.compute_s), step_seconds(run.waiting_s))));
  rows.push_back(alone("  gradients, optimizer, s",
                       fmt::format("{} {}", step_seconds(run.gradients_s), step_seconds(run.optimizer_s))));
  rows.push_back(with_interval("tokens a second", run.tokens_per_second, large));
  const double gpus = static_cast<double>(run.gpus);
  rows.push_back(alone("tokens a second and GPU", plain(run.tokens_per_second.value / gpus)));
  rows.push_back(alone("model TFLOP/s a GPU", plain(run.tokens_per_second.value / gpus * plan.flops_per_token / 1e12)));
  rows.push_back(with_interval("MFU", run.mfu, share_percent));
  rows.push_back(alone("HFU", share_percent(run.hfu)));
  rows.push_back(
      alone("memory of the fullest GPU, GB", fmt::format("{:.1f} of {:.1f}", run.memory_gb, kind.memory_limit_gb)));
}

PlanTable answer_table(const CapacityPlan& plan, const CapacityKind& kind, const CapacityRun& run) {
  PlanTable table{.id = "answer",
                  .title = fmt::format("The answer: {} {} on {} nodes", run.gpus, kind.name, run.nodes),
                  .columns = {{"", true}, {"value"}, {"5%"}, {"95%"}}};
  add_run_rows(plan, run, table.rows);
  add_step_rows(plan, kind, run, table.rows);
  table.note = fmt::format(
      "90% of {} draws lie between 5% and 95%. A step varies by {} (one standard error, "
      "of which the model's own is {}), prices and failures by what the plan says.",
      plan.draws, share_percent(kind.step_error), share_percent(plan.model_error));
  return table;
}

PlanTable layout_table(const CapacityKind& kind, const CapacityRun& run) {
  const TrainingPlan& layout = run.layout;
  const auto number = [](std::int64_t value) { return fmt::format("{}", value); };
  return {
      .id = "layout",
      .title =
          fmt::format("Its layout, the best of {} considered, of which {} fit in memory", kind.layouts, kind.fitting),
      .note = "Layouts are counted over all GPU counts of the plan.",
      .columns = {{"", true}, {""}, {"", true}, {""}},
      .rows = {{"tensor ranks", number(layout.tensor), "micro-batch, sequences", number(layout.micro_batch)},
               {"stages", number(layout.pipeline), "recompute", std::string(name_of(layout.recompute))},
               {"pieces a stage", number(layout.interleave), "ZeRO", number(static_cast<int>(layout.zero))},
               {"context ranks", number(layout.context), "sequence parallel", layout.sequence_parallel ? "yes" : "no"},
               {"Ulysses ranks", number(layout.ulysses), "expert ranks", number(layout.expert)},
               {"replicas", number(layout.data), "pipeline schedule", std::string(name_of(layout.schedule))}}};
}

PlanTable sites_table(const CapacityKind& kind) {
  PlanTable table{
      .id = "schedules",
      .title = "The schedule of every GEMM that meets a collective, one micro-batch",
      .columns = {{"site", true}, {"serial us"}, {"best us"}, {"compute us"}, {"hidden at"}, {"schedule", true}}};
  for (const CapacitySite& site : kind.sites) {
    const auto us = [](double time) { return fmt::format("{:.1f}", time); };
    table.rows.push_back({site.name, us(site.serial_us), us(site.best_us), us(site.compute_us),
                          site.rate_to_hide ? fmt::format("x{:.2f}", *site.rate_to_hide) : "never", site.schedule});
  }
  table.note =
      "hidden at: the factor on the rate of the node's links at which the schedule comes within "
      "1% of its time with free communication; never: above 16.";
  return table;
}

/// "answer", "knee", "front"; the limits that are missed.
std::string place_of(const CapacityPlan& plan, std::size_t kind, std::size_t run) {
  const auto on_front =
      std::ranges::find_if(plan.pareto, [&](const RunPlace& place) { return place.kind == kind && place.run == run; });
  std::string text = plan.kinds[kind].runs[run].misses;
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

PlanTable counts_table(const CapacityPlan& plan) {
  PlanTable table{
      .id = "counts",
      .title = "Every number of GPUs with its best layout",
      .columns = {{"kind", true}, {"GPUs"}, {layout_name}, {"step s"}, {"MFU"}, {"days"}, {"cost"}, {"", true}}};
  for (std::size_t kind = 0; kind < plan.kinds.size(); ++kind) {
    for (std::size_t i = 0; i < plan.kinds[kind].runs.size(); ++i) {
      const CapacityRun& run = plan.kinds[kind].runs[i];
      table.rows.push_back({run.kind, fmt::format("{}", run.gpus), layout_in_short(run.layout),
                            step_seconds(run.step_s.value), share_percent(run.mfu.value), days(run.days.value),
                            money(plan, run.cost.value), place_of(plan, kind, i)});
    }
  }
  table.note =
      "tie: as good as the answer within its rule; front: no other run is both shorter and cheaper; knee: of those the "
      "farthest from the line between the ends. Only GPU counts that some layout divides evenly are listed.";
  return table;
}

PlanTable what_if_table(const CapacityPlan& plan) {
  PlanTable table{.id = "what-if",
                  .title = "What if: the same GPUs, each row with its own best layout",
                  .columns = {{"what", true},
                              {layout_name},
                              {"days"},
                              {"5 to 95%", false, true},
                              {""},
                              {"GPU-hours more", false, true},
                              {"cost"},
                              {"5 to 95%", false, true},
                              {"a GPU-hour"},
                              {"a GPU"}}};
  const CapacityRun& answer = *plan.best_kind()->best();
  for (const WhatIf& one : plan.what_ifs) {
    const double hours_more = 24.0 * static_cast<double>(answer.gpus) * (one.days.value - answer.days.value);
    table.rows.push_back({one.change, layout_in_short(one.layout), days(one.days.value),
                          fmt::format("{} to {}", days(one.days.low), days(one.days.high)),
                          signed_percent(one.days_share), large(hours_more), money(plan, one.cost.value),
                          fmt::format("{} to {}", money(plan, one.cost.low), money(plan, one.cost.high)),
                          one.break_even_gpu_hour ? money(plan, *one.break_even_gpu_hour) : "",
                          one.break_even_gpu ? money(plan, *one.break_even_gpu) : ""});
  }
  table.note =
      "a GPU-hour, a GPU: break-even premium for such links, for an hour of one GPU and for one GPU over the whole "
      "run.";
  return table;
}

std::string rate_or(const std::optional<double>& times, const char* other) {
  return times ? fmt::format("x{:.2f}", *times) : other;
}

PlanTable rates_table(const CapacityPlan& plan) {
  PlanTable table{.id = "rates",
                  .title = "Which links it takes",
                  .columns = {{"", true}, {"now GB/s"}, {"knee"}, {"95% at"}, {"hidden at"}, {"GB/s"}}};
  for (const RateCurve& curve : plan.curves) {
    const CapacityKind& kind = *plan.best_kind();
    const double now = curve.links == "network" ? kind.network_gb_s.value_or(0.0) : kind.link_gb_s;
    table.rows.push_back({curve.links == "network" ? "between nodes" : "inside a node", plain(now),
                          rate_or(curve.knee, "none"), rate_or(curve.plateau, "none"), rate_or(curve.to_hide, "never"),
                          curve.to_hide_gb_s ? plain(*curve.to_hide_gb_s) : "-"});
  }
  table.note =
      "knee: the rate farthest from the chord of tokens a second over the rate, x0.5 to x4; 95% at: where they "
      "reach 95% of those at x4; hidden at: the least rate with which this "
      "layout comes within 1% of any rate's.";
  return table;
}

PlanTable sensitivity_table(const CapacityPlan& plan) {
  const std::string less = fmt::format("-{:.0f}%", 100.0 * plan.change);
  const std::string more = fmt::format("+{:.0f}%", 100.0 * plan.change);
  PlanTable table{.id = "sensitivity",
                  .title = "Sensitivity: one input changed at a time",
                  .columns = {{"input", true}, {"days " + less}, {"days " + more}, {"cost " + less}, {"cost " + more}}};
  for (const Sensitivity& one : plan.sensitivities) {
    table.rows.push_back(
        {one.input, days(one.days_low), days(one.days_high), money(plan, one.cost_low), money(plan, one.cost_high)});
  }
  return table;
}

PlanTable doubts_table(const CapacityKind& kind) {
  PlanTable table{.id = "doubts",
                  .title = "Parameters whose errors change the time of a step most",
                  .note = "Longer (+) or shorter (-) with the parameter one standard error higher.",
                  .columns = {{"kind", true}, {"step"}, {"parameter", true}}};
  for (const CapacityDoubt& doubt : kind.doubts) {
    table.rows.push_back(
        {doubt.provenance, fmt::format("{:+.2f}%", 100.0 * math::expm1(doubt.effect)), doubt.parameter});
  }
  return table;
}

void add_asked(const CapacityPlan& plan, std::vector<Row>& rows) {
  rows.push_back({"model", fmt::format("{}, {} parameters, {} active", plan.model, large(plan.parameters),
                                       large(plan.active_parameters))});
  rows.push_back({"its shape", plan.shape});
  rows.push_back({"tokens", large(plan.tokens)});
  rows.push_back({"a step", fmt::format("{} sequences of {} tokens, {} together, {}", format_count(plan.batch),
                                        format_count(plan.seq), format_count(plan.batch * plan.seq), plan.dtype)});
  if (!plan.framework.empty()) {
    rows.push_back({"run by", plan.framework});
  }
  rows.push_back({"FLOPs a token", fmt::format("{}, attention counted causally, half of the scores; 6 N would be {}",
                                               large(plan.flops_per_token), large(plan.six_n))});
  if (plan.deadline_days) {
    rows.push_back({"deadline", fmt::format("{}: {} days", plan.deadline_text, days(*plan.deadline_days))});
  }
  if (plan.budget) {
    rows.push_back({"budget", money(plan, *plan.budget)});
  }
  rows.push_back({"wanted", fmt::format("{:.0f}% chance of meeting it", 100.0 * plan.asked_confidence)});
  if (plan.p99_limit_s) {
    rows.push_back({"p99 of a step", fmt::format("at most {} s", step_seconds(*plan.p99_limit_s))});
  }
  if (plan.power_limit_mw) {
    rows.push_back({"power", fmt::format("at most {} MW", plain(*plan.power_limit_mw))});
  }
  rows.push_back({"memory", fmt::format("at most {} of a GPU", share_percent(plan.memory_share))});
  rows.push_back(
      {"failures", fmt::format("{} a GPU-hour; a checkpoint takes {} s, a restart {} s", plan.failures_per_gpu_hour,
                               plain(plan.checkpoint_s), plain(plan.restart_s))});
  rows.push_back({"energy", fmt::format("PUE {}, {} a kWh", plain(plan.pue), money(plan, plan.energy_price))});
  rows.push_back({"jitter", fmt::format("{}, seed {}", plan.jitter, plan.seed)});
}

PlanTable inputs_table(const CapacityPlan& plan) {
  PlanTable table{.id = "inputs",
                  .title = "What was asked: inputs, not facts of this program",
                  .columns = {{"", true}, {"", true}}};
  add_asked(plan, table.rows);
  for (const CapacityKind& kind : plan.kinds) {
    std::string links = fmt::format("{} GB/s in a node", plain(kind.link_gb_s));
    links += kind.network_gb_s ? fmt::format(", {} between nodes", plain(*kind.network_gb_s)) : "";
    table.rows.push_back(
        {kind.name,
         fmt::format("{}, {}; {} a GPU-hour on {}{}; {} available{}", kind.machine, links, money(plan, kind.price),
                     kind.price_date, kind.price_source.empty() ? "" : fmt::format(" ({})", kind.price_source),
                     kind.available, kind.power_w > 0.0 ? fmt::format(", {} W each", plain(kind.power_w)) : "")});
  }
  return table;
}

PlanTable hardware_table(const CapacityPlan& plan) {
  PlanTable table{
      .id = "hardware",
      .title = "What the machines are taken to be",
      .note = "error: one standard error, where it is known.",
      .columns = {{"kind", true}, {"what", true}, {"value"}, {"error"}, {"from", true}, {"source", true, true}}};
  for (const CapacityKind& kind : plan.kinds) {
    for (const CapacityInput& input : kind.inputs) {
      table.rows.push_back({kind.name, input.what, input.value,
                            input.standard_error > 0.0 ? share_percent(input.standard_error) : "-", input.provenance,
                            input.source});
    }
  }
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
