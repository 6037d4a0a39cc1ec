// SPDX-License-Identifier: Apache-2.0
// Tests outputs of an invented plan: every format has the same cells, and text of users never becomes markup.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "model/text/plain_text.h"
#include "reports/plan/plan_figures.h"
#include "reports/plan/plan_page.h"
#include "reports/plan/plan_rows.h"
#include "reports/plan/plan_tables.h"
#include "reports/plan/plan_text.h"
#include "reports/plan/plan_words.h"

namespace commfuse::reports {
namespace {

CapacityRun run(const std::string& kind, std::int64_t gpus, double days, double cost) {
  CapacityRun run{.kind = kind, .gpus = gpus, .nodes = gpus / 8};
  run.layout = {.tensor = 8, .sequence_parallel = true, .pipeline = 2, .data = gpus / 16, .zero = Zero::optimizer};
  run.step_s = {7.25, 6.0, 9.0};
  run.tokens_per_second = {2.31e6, 1.9e6, 2.8e6};
  run.mfu = {0.512, 0.41, 0.63};
  run.goodput = {0.957, 0.94, 0.97};
  run.days = {days, 0.8 * days, 1.25 * days};
  run.gpu_hours = {days * 24.0 * static_cast<double>(gpus), 1.0, 2.0};
  run.cost = {cost, 0.8 * cost, 1.25 * cost};
  run.cost_per_mtok = {cost / 1e7, cost / 2e7, cost / 5e6};
  run.confidence = 0.85;
  return run;
}

/// Returns a plan in which one kind meets the limits and the other does not.
CapacityPlan example_plan(const std::string& text = "h100") {
  CapacityPlan plan{.title = "A plan of " + text, .model = "llama-3.1-70b", .tokens = 1e13};
  plan.dtype = "bf16";
  plan.currency = "$";
  plan.deadline_text = "90 days";
  plan.deadline_days = 90.0;
  plan.change = 0.2;
  plan.draws = 2000;
  CapacityKind feasible{.name = text, .hardware = "dgx-h100-x2", .machine = "dgx-h100-x2", .price = 2.5};
  feasible.price_date = "2026-05-04";
  feasible.price_source = text;
  feasible.runs = {run(text, 1024, 152.2, 9.35e6), run(text, 2048, 78.6, 9.66e6), run(text, 4096, 41.5, 10.2e6)};
  feasible.runs[0].misses = "deadline";
  feasible.answer = 1;
  feasible.sites = {{"qkv", "commfuse", "commfuse (ring)", 433.2, 268.1, 249.8, 0.78},
                    {"down", "sliced", "sliced (k=4)", 876.7, 730.7, 693.3, std::nullopt}};
  feasible.doubts = {{"accelerator.memory_bound_efficiency", "prior", -0.0022}};
  CapacityKind infeasible{.name = "a100", .reason = "the deadline binds: the shortest run takes 99.0 days"};
  plan.kinds = {feasible, infeasible};
  plan.answer = 0;
  plan.pareto = {{0, 2}, {0, 1}, {0, 0}};
  plan.knee = 1;
  plan.what_ifs = {
      {"serial collectives", feasible.runs[1].layout, 8.2, {89.2, 80, 99}, {10.97e6, 9e6, 13e6}, 0.135, 0.135},
      {"data slicing (CoC)", feasible.runs[1].layout, 7.5, {81.9, 80, 99}, {10.06e6, 9e6, 13e6}, 0.042, 0.042},
      {"network x2", feasible.runs[1].layout, 6.5, {70.2, 60, 80}, {8.63e6, 8e6, 9e6}, -0.107, -0.107, 0.2984, 502.9}};
  plan.curves = {{"network", {{0.5, 2.2e6}, {1.0, 2.31e6}, {2.0, 2.5e6}}, 1.0, 1.4, 0.74, 37.0}};
  plan.sensitivities = {{"price of a GPU", 78.6, 78.6, 7.73e6, 11.59e6}, {"failures", 78.2, 79.0, 9.61e6, 9.71e6}};
  return plan;
}

TEST(CapacityReport, ExplainsWhyItsErrorDiffersFromThatOfRun) {
  CapacityPlan plan{.model_error = 0.13, .model_error_source = ModelErrorSource::steps_before_settings};
  plan.model_error_of_run = 0.0721;
  EXPECT_EQ(
      model_error_sentence(plan),
      "For the same step, commfuse-sim run uses 7.2%: the model's error on measured steps in known frameworks. No "
      "measured step ran the plan's schedules, so the plan uses 1.48 times the median error of nine "
      "Megatron-Core steps that were predicted without the settings of their framework.");
  plan.model_error_source = ModelErrorSource::file;
  EXPECT_EQ(model_error_sentence(plan),
            "The plan states the model's own error. For the same step, commfuse-sim run uses 7.2%: the model's error "
            "on measured steps in known frameworks.");
  plan.model_error_source = ModelErrorSource::measured_steps;
  EXPECT_EQ(model_error_sentence(plan),
            "The model's own error is that on measured steps in known frameworks, as in commfuse-sim run.");
  plan.has_measured_step = true;
  EXPECT_EQ(model_error_sentence(plan), "The model's own error is what remains of it after the measured step.");
}

TEST(CapacityReport, TheVerdictIsTwoSentencesWithIntervals) {
  EXPECT_EQ(
      plan_verdict(example_plan()),
      "Train on 2048 h100 (TP 8, PP 2, DP 128) with commfuse at 1 of 2 sites, sliced at 1: 78.6 days (90% interval "
      "62.9 to 98.2), $9.66M ($7.73M to $12.07M), $0.9660 per million tokens. The chance of meeting the deadline is "
      "85%; "
      "serial collectives would take 13.5% longer, data slicing (CoC) 4.2%.");
  CapacityPlan without_answer = example_plan();
  without_answer.kinds.erase(without_answer.kinds.begin());
  without_answer.answer.reset();
  EXPECT_EQ(plan_verdict(without_answer),
            "No option meets the limits. For a100, the deadline binds: the shortest run takes 99.0 days.");
}

TEST(CapacityReport, ACountBeyondTheUsefulOneIsSaidInOneSentence) {
  CapacityPlan plan = example_plan();
  const std::string sentence = " Fewer GPUs are no slower: 1024 h100 would take 70.1 days and $4.30M.";
  EXPECT_EQ(plan_verdict(plan).find(sentence), std::string::npos);
  CapacityKind& kind = plan.kinds[*plan.answer];
  kind.smaller = SmallerCount{.gpus = 1024, .days = 70.1, .cost = 4.3e6};
  EXPECT_TRUE(plan_verdict(plan).ends_with(sentence)) << plan_verdict(plan);
  EXPECT_TRUE(plan_reasons(plan).ends_with(sentence));
  const auto json = nlohmann::json::parse(plan_json(plan));
  EXPECT_EQ(json.at("kinds").at(*plan.answer).at("smaller_count").at("gpus"), 1024);
  kind.reason = "the budget binds";
  plan.answer.reset();
  EXPECT_NE(plan_verdict(plan).find("For h100, the budget binds." + sentence), std::string::npos) << plan_verdict(plan);
}

TEST(CapacityReport, TheHeadlineStatesTheChanceAndReasonsStateTheRest) {
  CapacityPlan plan = example_plan();
  EXPECT_EQ(plan_headline(plan), "2048 h100 take 78.6 days and $9.66M. The chance of meeting the deadline is 85%.");
  EXPECT_EQ(
      plan_reasons(plan),
      "Layout: TP 8, PP 2, DP 128, with commfuse at 1 of 2 sites, sliced at 1. Serial collectives would take 13.5% "
      "longer, data slicing (CoC) 4.2%.");
  plan.budget = 1e7;
  EXPECT_TRUE(plan_headline(plan).ends_with("The chance of meeting deadline and budget is 85%."));
  const std::string page = plan_page({plan, "c", "v"});
  EXPECT_NE(page.find("<dt>Chance of meeting deadline and budget</dt><dd><div class=\"value\">85%</div><div "
                      "class=\"about\">at most 90.0 days and $10.00M</div>"),
            std::string::npos);
  EXPECT_NE(page.find("<p class=\"quiet\">llama-3.1-70b, 10.00T tokens, deadline 90.0 days, budget $10.00M; h100 at "
                      "$2.50 per GPU-hour, 0 available; a100 at $0.00 per GPU-hour, 0 available.</p>"),
            std::string::npos);
  plan.deadline_text = "2027-03-01";
  EXPECT_EQ(deadline_in_words(plan), "2027-03-01 (90.0 days)");
}

TEST(CapacityReport, AnExactCountWithoutLimitsHasNoChance) {
  CapacityPlan plan = example_plan();
  plan.deadline_days.reset();
  plan.deadline_text.clear();
  plan.kinds[0].available = 8192;
  plan.kinds[0].count = 2048;
  EXPECT_EQ(plan_headline(plan), "2048 h100 take 78.6 days and $9.66M.");
  EXPECT_TRUE(plan_verdict(plan).ends_with(
      ", $0.9660 per million tokens. Serial collectives would take 13.5% longer, data slicing (CoC) 4.2%."))
      << plan_verdict(plan);
  const std::string text = plan_text(plan);
  EXPECT_EQ(text.find("chance of meeting"), std::string::npos) << text;
  EXPECT_NE(text.find("exactly 2048 of 8192"), std::string::npos) << text;
  EXPECT_EQ(plan_page({plan, "c", "v"}).find("Chance of meeting"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(plan_json(plan)).at("kinds").at(0).at("count"), 2048);
}

TEST(CapacityReport, ASingleGpuIsSingular) {
  CapacityPlan plan = example_plan();
  plan.deadline_days.reset();
  plan.deadline_text.clear();
  plan.what_ifs.clear();
  plan.pareto = {{0, 0}};
  plan.knee.reset();
  CapacityKind& kind = plan.kinds[0];
  kind.runs = {run("h100", 1, 78.6, 4716.0)};
  kind.answer = 0;
  kind.available = 1;
  kind.count = 1;
  EXPECT_EQ(plan_headline(plan), "1 h100 takes 78.6 days and $4.72k.");
  EXPECT_EQ(available_in_words(kind), "exactly 1 GPU");
  const std::vector<PlanTable> tables = plan_tables(plan);
  EXPECT_EQ(std::ranges::find(tables, "layout", &PlanTable::id)->title, "Layout: the fastest on 1 GPU");
  kind.answer.reset();
  kind.gpus_for_deadline = 8;
  plan.answer.reset();
  plan.curves.clear();
  plan.sensitivities.clear();
  plan.deadline_days = 30.0;
  EXPECT_NE(plan_page({plan, "c", "v"}).find("smallest number that meets the deadline; 1 is available</div>"),
            std::string::npos);
}

TEST(CapacityReport, ATileWithoutABudgetStatesNoAllowedCost) {
  CapacityPlan plan = example_plan();
  plan.deadline_days.reset();
  plan.deadline_text.clear();
  plan.answer.reset();
  plan.what_ifs.clear();
  plan.curves.clear();
  plan.sensitivities.clear();
  plan.kinds[0].answer.reset();
  plan.kinds[0].reason = "limits.p99_step binds";
  EXPECT_NE(plan_page({plan, "c", "v"})
                .find("<dt>Cheapest run</dt><dd><div class=\"value\">$9.35M</div><div class=\"about\">1024 h100, takes "
                      "152.2 days</div>"),
            std::string::npos);
}

TEST(CapacityReport, TheLayoutSaysHowFarItIsFromTheFastest) {
  CapacityPlan plan = example_plan();
  const auto title = [&] {
    const std::vector<PlanTable> tables = plan_tables(plan);
    return std::ranges::find(tables, "layout", &PlanTable::id)->title;
  };
  EXPECT_EQ(title(), "Layout: the fastest on 2048 GPUs");
  plan.kinds[0].runs[1].excess_over_fastest = 0.009;
  plan.kinds[0].runs[1].layout_rule = "less memory";
  EXPECT_EQ(title(), "Layout: within 0.9% of the fastest on 2048 GPUs, chosen for less memory");
}

TEST(CapacityReport, ASingleKindHasNoTableOfKinds) {
  CapacityPlan plan = example_plan();
  const auto has = [&](const char* id) {
    const std::vector<PlanTable> tables = plan_tables(plan);
    return std::ranges::find(tables, id, &PlanTable::id) != tables.end();
  };
  EXPECT_TRUE(has("kinds"));
  plan.kinds.pop_back();
  EXPECT_FALSE(has("kinds"));
  EXPECT_NE(plan_page({plan, "c", "v"}).find("<h2 id=\"verdict\">"), std::string::npos);
  const std::vector<PlanTable> tables = plan_tables(plan);
  const auto counts = std::ranges::find(tables, "counts", &PlanTable::id);
  ASSERT_NE(counts, tables.end());
  EXPECT_EQ(counts->columns.front().name, "GPUs");
  EXPECT_EQ(counts->rows.front().front(), "1024");
}

TEST(CapacityReport, AFixedNumberOfGpusIsNotOneOfMany) {
  CapacityPlan plan = example_plan();
  const auto counts = [&] {
    const std::vector<PlanTable> tables = plan_tables(plan);
    const auto table = std::ranges::find(tables, "counts", &PlanTable::id);
    EXPECT_NE(table, tables.end());
    return *table;
  };
  EXPECT_EQ(counts().title, "Every number of GPUs with its layout");
  EXPECT_TRUE(counts().note.ends_with(" Only numbers that some layout divides evenly."));
  plan.kinds.pop_back();
  plan.kinds[0].count = 2048;
  EXPECT_EQ(counts().title, "The number of GPUs with its layout");
  EXPECT_EQ(counts().note.find("Only numbers"), std::string::npos) << counts().note;
}

TEST(CapacityReport, TheAnswerIsMarkedAndMuchLongerRunsAreCounted) {
  CapacityPlan plan = example_plan();
  plan.kinds[0].runs.insert(plan.kinds[0].runs.begin(),
                            run("h100", 64, 2000.0, 9e6));  // more than five times 78.6 days
  plan.kinds[0].answer = 2;
  plan.pareto = {{0, 3}, {0, 2}, {0, 1}, {0, 0}};
  EXPECT_EQ(longest_shown_days(plan), 5.0 * 78.6);  // Only three runs take at most three times the answer's time.
  const std::vector<PlanTable> tables = plan_tables(plan);
  const auto counts = std::ranges::find(tables, "counts", &PlanTable::id);
  ASSERT_NE(counts, tables.end());
  ASSERT_EQ(counts->rows.size(), 3U);
  EXPECT_EQ(counts->answer_row, 1U);
  EXPECT_EQ(counts->rows[1].back(), "answer; knee");
  EXPECT_TRUE(counts->note.starts_with("Not shown: 1 run that takes more than 393.0 days; JSON and CSV list them. "));
  const std::string page = plan_page({plan, "c", "v"});
  EXPECT_NE(page.find("<th scope=\"row\" class=\"part long\">share lost to the slowest GPU</th>"), std::string::npos);
  EXPECT_NE(page.find("<tr class=\"fastest\"><th scope=\"row\">h100</th><td>2048</td>"), std::string::npos);
  EXPECT_NE(page.find("<th scope=\"row\" class=\"part\">waiting, s</th>"), std::string::npos);
  EXPECT_NE(plan_csv(plan).find(",2000,"), std::string::npos);
}

/// Returns the second cell of the row of the input table that begins with `name`.
std::string input_cell(const CapacityPlan& plan, std::string_view name) {
  const std::vector<PlanTable> tables = plan_tables(plan);
  const auto inputs = std::ranges::find(tables, "inputs", &PlanTable::id);
  const auto row = std::ranges::find_if(inputs->rows, [&](const auto& cells) { return cells[0] == name; });
  return row == inputs->rows.end() ? "" : (*row)[1];
}

TEST(CapacityReport, CountsInWordsFitTheirNumbers) {
  CapacityPlan plan = example_plan();
  plan.batch = 1;
  plan.seq = 8192;
  EXPECT_EQ(input_cell(plan, "step"), "1 sequence of 8192 tokens: 8.19k tokens, bf16");
  plan.batch = 2;
  EXPECT_EQ(input_cell(plan, "step"), "2 sequences of 8192 tokens: 16.38k tokens, bf16");
  for (const auto& [rate, words] :
       {std::pair(0.0, "none;"), std::pair(1.0, "one per 1 GPU-hour;"), std::pair(0.4, "one per 2.5 GPU-hours;"),
        std::pair(2e-5, "one per 50,000 GPU-hours;"), std::pair(1e-30, "one per 1e+30 GPU-hours;")}) {
    plan.failures_per_gpu_hour = rate;
    EXPECT_TRUE(input_cell(plan, "failures").starts_with(words)) << input_cell(plan, "failures");
  }
  plan.kinds[0].layouts = 1;
  plan.kinds[0].fitting = 1;
  EXPECT_NE(plan_markdown(plan).find("\n1 layout considered over all numbers of GPUs; 1 fits in memory.\n"),
            std::string::npos);
  plan.kinds[0].count = 2048;
  EXPECT_NE(plan_markdown(plan).find("\n1 layout considered; 1 fits in memory.\n"), std::string::npos);
}

TEST(CapacityReport, ABetterRunNamesItsMissedLimitsInWords) {
  CapacityPlan plan = example_plan();
  plan.kinds[0].runs[2] = run("h100", 4096, 41.5, 9.1e6);
  plan.kinds[0].runs[2].misses = "p99_step";
  EXPECT_NE(plan_markdown(plan).find("but miss a limit: p99 step. "), std::string::npos) << plan_markdown(plan);
}

TEST(CapacityReport, CsvHasTheNamesOfItsColumnsWithoutRuns) {
  const CapacityPlan plan = example_plan();
  CapacityPlan without_runs = example_plan();
  for (CapacityKind& kind : without_runs.kinds) {
    kind.runs.clear();
  }
  const std::string names = plan_csv(without_runs);
  EXPECT_EQ(names, plan_csv(plan).substr(0, names.size()));
  EXPECT_TRUE(names.starts_with("kind,hardware,price,") && names.ends_with(",misses,answer\r\n")) << names;
  const nlohmann::json json = nlohmann::json::parse(plan_json(plan));
  for (const auto& [name, value] : json.at("kinds").at(0).at("runs").at(0).at("layout").items()) {
    EXPECT_NE(names.find("," + name + ","), std::string::npos) << name;
  }
}

TEST(CapacityReport, TablesOmitRatesBetweenDoublings) {
  CapacityPlan plan = example_plan();
  for (const char* change : {"network x1.5", "links x3", "price -20 %"}) {
    plan.what_ifs.push_back(plan.what_ifs.back());
    plan.what_ifs.back().change = change;
  }
  const std::string shown = plan_markdown(plan);
  EXPECT_EQ(shown.find("| network x1.5 |"), std::string::npos);
  EXPECT_EQ(shown.find("| links x3 |"), std::string::npos);
  EXPECT_NE(shown.find("| price -20% |"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(plan_json(plan)).at("what_if").size(), 6U);
}

TEST(CapacityReport, PlansThatTieAreNamedWithTheRuleThatBrokeTheTie) {
  CapacityPlan plan = example_plan();
  plan.kinds[0].runs[2].cost.value = 9.70e6;
  plan.ties = {{0, 2}};
  plan.tie_rule = "fewer GPUs";
  EXPECT_TRUE(plan_verdict(plan).ends_with(
      " This plan ties in cost with 4096 h100 (all within 0.4%); the tie is broken by fewer GPUs."))
      << plan_verdict(plan);
  const nlohmann::json json = nlohmann::json::parse(plan_json(plan));
  EXPECT_EQ(json.at("ties").at(0).at("run"), 2);
  EXPECT_EQ(json.at("tie_rule"), "fewer GPUs");
  EXPECT_NE(plan_text(plan).find("tie; front"), std::string::npos) << plan_text(plan);
  const std::string lowest = "; tie: cost within verdict.difference of the lowest, or not clearly higher.";
  EXPECT_NE(plan_markdown(plan).find(lowest), std::string::npos) << plan_markdown(plan);
  CapacityPlan without_deadline = plan;
  without_deadline.deadline_days.reset();
  const std::string fewest = "; tie: days within verdict.difference of the fewest, or not clearly more.";
  EXPECT_NE(plan_markdown(without_deadline).find(fewest), std::string::npos) << plan_markdown(without_deadline);
  EXPECT_TRUE(nlohmann::json::parse(plan_json(example_plan())).at("tie_rule").is_null());
  plan.kinds[0].runs[1].cost = {};  // Free GPUs: costs of 0 have no relative difference.
  plan.kinds[0].runs[2].cost = {};
  EXPECT_TRUE(plan_verdict(plan).ends_with(" This plan ties in cost with 4096 h100; the tie is broken by fewer GPUs."))
      << plan_verdict(plan);
}

TEST(CapacityReport, ABetterRunThatMissesALimitIsNamedWithTheLimit) {
  CapacityPlan plan = example_plan();
  EXPECT_EQ(plan_text(plan).find("shorter and cheaper ("), std::string::npos);
  plan.kinds[0].runs[2].cost.value = 9e6;
  plan.kinds[0].runs[2].misses = "p99_step";
  const std::string text = plan_markdown(plan);
  EXPECT_NE(text.find("4096 h100 would be both shorter and cheaper (41.5 days, $9.00M) but miss a limit: p99 step."),
            std::string::npos)
      << text;
}

TEST(CapacityReport, TextMarkdownAndPageShowTheSameCells) {
  const CapacityPlan plan = example_plan();
  const std::string text = plan_text(plan);
  const std::string markdown = plan_markdown(plan);
  const std::string page = plan_page({plan, "commfuse-sim plan a.yaml", "commfuse 1"});
  std::size_t cells = 0;
  for (const PlanTable& table : plan_tables(plan)) {
    for (const std::vector<std::string>& row : table.rows) {
      ASSERT_EQ(row.size(), table.columns.size()) << table.id;
      for (std::size_t column = 0; column < row.size(); ++column) {
        const std::string& cell = row[column];
        const bool is_number = !cell.empty() && cell.find_first_not_of("+-$.0123456789xMkB%") == std::string::npos;
        if (is_number) {
          EXPECT_TRUE(table.columns[column].is_wide || text.find(cell) != std::string::npos)
              << table.id << ": " << cell;
          EXPECT_NE(markdown.find("| " + cell + " |"), std::string::npos) << table.id << ": " << cell;
          EXPECT_NE(page.find(">" + cell + "</td>"), std::string::npos) << table.id << ": " << cell;
          ++cells;
        }
      }
    }
  }
  EXPECT_GT(cells, 80U);
}

TEST(CapacityReport, WideFormatsShowIntervalsOfAlternatives) {
  const CapacityPlan plan = example_plan();
  const std::string shown = plan_markdown(plan);
  EXPECT_NE(shown.find("| network x2 | 70.2 | -10.7% | $8.63M | $0.2984 | $502.90 | 60.0 to 80.0 | $8.00M to $9.00M | "
                       "-412.9k | 8x2x128x1 |"),  // 2048 GPUs x 24 h x (70.2 - 78.6) days = -412,877
            std::string::npos)
      << shown;
  EXPECT_NE(plan_page({plan, "c", "v"}).find("<td>$8.00M to $9.00M</td>"), std::string::npos);
  EXPECT_EQ(plan_text(plan).find("60.0 to 80.0"), std::string::npos);
}

TEST(CapacityReport, TheAnswerHasItsPercentilesRatesAndInputs) {
  CapacityPlan plan = example_plan();
  plan.flops_per_token = 4.5e11;
  plan.energy_price = 0.1;
  CapacityRun& run = plan.kinds[0].runs[1];
  run.step_equal_gpus_s = 0.98 * 7.25;
  run.step_p99_s = 7.4;
  run.step_p99_9_s = 7.5;
  run.energy_mwh = Interval{6000.0, 5000.0, 7000.0};
  run.power_mw = 3.2;
  plan.kinds[0].inputs = {{"dense peak, bf16", "989 TFLOP/s", 0.0, "published", "a data sheet"},
                          {"NVLink, one pair", "361 GB/s", 0.002, "fitted", "a.csv"}};
  const std::string shown = plan_markdown(plan);
  for (const char* row : {"|   p99 over machines, s | 7.400 |  |  |", "|   p99.9 over machines, s | 7.500 |  |  |",
                          "|   share lost to the slowest GPU | 2.0% |  |  |",
                          "| model TFLOP/s per GPU | 507.6 |  |  |",  // 2.31e6 / 2048 x 4.5e11
                          "| cost of that energy | $600.0k |  |  |",  // 6000 MWh at $0.10 a kWh
                          "| h100 | dense peak, bf16 | 989 TFLOP/s | - | published | a data sheet |",
                          "| h100 | NVLink, one pair | 361 GB/s | 0.2% | fitted | a.csv |"}) {
    EXPECT_NE(shown.find(row), std::string::npos) << row << "\n" << shown;
  }
}

TEST(CapacityReport, TheTextStaysWithinEightyColumns) {
  std::istringstream lines(plan_text(example_plan()));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(characters(line), 80U) << line;
  }
}

TEST(CapacityReport, JsonAndCsvHaveEveryDigit) {
  const CapacityPlan plan = example_plan();
  const nlohmann::json json = nlohmann::json::parse(plan_json(plan));
  EXPECT_EQ(json.at("schema"), "commfuse.capacity/1");
  EXPECT_EQ(json.at("verdict"), plan_verdict(plan));
  const nlohmann::json& second = json.at("kinds").at(0).at("runs").at(1);
  EXPECT_EQ(second.at("days").at("high"), 1.25 * 78.6);
  const std::string text = plan_text(plan);
  for (const char* end : {"value", "low", "high"}) {  // the cells are the rounded values of JSON and CSV
    EXPECT_NE(text.find(money(plan, second.at("cost").at(end))), std::string::npos) << end;
    EXPECT_NE(text.find(days(second.at("days").at(end))), std::string::npos) << end;
    EXPECT_NE(plan_csv(plan).find("," + fmt::format("{}", second.at("days").at(end).get<double>()) + ","),
              std::string::npos)
        << end;
  }
  EXPECT_EQ(json.at("what_if").at(2).at("break_even_gpu"), 502.9);
  EXPECT_TRUE(json.at("kinds").at(1).at("answer").is_null());
  std::istringstream lines(plan_csv(plan));
  std::string line;
  std::size_t count = 0;
  while (std::getline(lines, line)) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 53) << line;
    ++count;
  }
  EXPECT_EQ(count, 4U);  // names, and a line for each run
}

TEST(CapacityReport, TextFromUsersIsEscaped) {
  const std::string hostile = "<script>alert(1)</script>\"'><img src=x onerror=y>|[a](b)`\xe2\x82\xac\xff";
  const CapacityPlan plan = example_plan(hostile);
  const std::string page = plan_page({plan, "commfuse-sim plan '" + hostile + "'", "commfuse 1"});
  for (const char* tag : {"<script", "<img", "</script"}) {
    EXPECT_EQ(page.find(tag), std::string::npos) << tag;
    EXPECT_EQ(plan_markdown(plan).find(tag), std::string::npos) << tag;
  }
  EXPECT_NE(page.find("&lt;script&gt;alert(1)"), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(plan_markdown(plan).find("\\|\\[a\\](b)\\`"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(plan_json(plan)).at("title").get<std::string>().rfind("A plan of <script>", 0), 0U);
  for (const Figure& figure : plan_figures(plan)) {
    EXPECT_EQ(figure.id.find('<'), std::string::npos);
  }
}

TEST(CapacityReport, EveryFigureOfAnAnswerIsDrawn) {
  const CapacityPlan plan = example_plan();
  const std::string page = plan_page({plan, "c", "v"});
  for (const char* id : {"plan-days", "plan-pareto", "plan-rates", "plan-tornado"}) {
    EXPECT_NE(page.find(std::string("aria-labelledby=\"") + id + "-title"), std::string::npos) << id;
  }
  CapacityPlan without_answer = example_plan();
  without_answer.answer.reset();
  without_answer.what_ifs.clear();
  without_answer.curves.clear();
  without_answer.sensitivities.clear();
  EXPECT_EQ(plan_page({without_answer, "c", "v"}).find("plan-tornado"), std::string::npos);
}

TEST(CapacityReport, FiguresHaveNoLabelsAndAVariantForPhones) {
  const CapacityPlan plan = example_plan();
  const std::vector<Figure> wide = plan_figures(plan);
  const std::vector<Figure> narrow = plan_figures(plan, FigureWidth::narrow);
  ASSERT_EQ(wide.size(), narrow.size());
  for (std::size_t i = 0; i < wide.size(); ++i) {
    EXPECT_EQ(narrow[i].id, wide[i].id + "-narrow");
    EXPECT_LE(narrow[i].width, 366.0);  // a phone of 390 pixels less its margins
    EXPECT_TRUE(
        std::ranges::none_of(wide[i].marks, [](const Mark& mark) { return std::holds_alternative<TextMark>(mark); }));
  }
  const auto is_answer = [](const LegendEntry& entry) {
    return entry.text == "the answer: 2048 h100, 78.6 days, $9.66M";
  };
  EXPECT_EQ(std::ranges::count_if(wide[0].legend, is_answer), 1);
  EXPECT_EQ(wide[0].title, "2048 h100 are enough: 78.6 days of 90.0");
  EXPECT_EQ(wide[1].title, "A shorter run: 4096 h100 take 41.5 days for $10.20M (5.6% more)");  // 10.2 / 9.66
  const auto answer = std::ranges::find_if(wide[0].legend, is_answer);
  EXPECT_EQ(answer->symbol, Symbol::diamond);                             // the symbol in the drawing
  EXPECT_TRUE(std::holds_alternative<PointsMark>(wide[0].marks.back()));  // The answer lies on top of its dot.
  EXPECT_EQ(std::ranges::count(wide[0].y.ticks, std::string("90"), &Tick::label), 1);  // the deadline, on the axis
  EXPECT_EQ(std::ranges::count(wide[0].y.ticks, std::string("100"), &Tick::label),
            0);  // The label would touch the deadline.
  const std::string page = plan_page({plan, "c", "v"});
  EXPECT_NE(page.find("aria-labelledby=\"plan-days-narrow-title"), std::string::npos);
}

TEST(CapacityReport, GpusBetweenPowersOfTwoHaveLabels) {
  CapacityPlan plan = example_plan();
  plan.kinds[0].runs = {run("h100", 96, 80.0, 9e6)};
  plan.kinds[0].answer = 0;
  plan.kinds[1].runs = {run("a100", 96, 160.0, 10e6)};
  plan.pareto = {{0, 0}};
  const FigureAxis gpus = plan_figures(plan)[0].x;  // from 76.8 to 120
  std::vector<std::string> labels;
  std::ranges::transform(gpus.ticks, std::back_inserter(labels), &Tick::label);
  EXPECT_EQ(labels, (std::vector<std::string>{"80", "90", "100", "110", "120"}));
}

TEST(CapacityReport, AMissedDeadlineStatesTheGpusItNeeds) {
  CapacityPlan plan = example_plan();
  plan.answer.reset();
  plan.what_ifs.clear();
  plan.curves.clear();
  plan.sensitivities.clear();
  plan.kinds[0].answer.reset();
  plan.kinds[0].reason = "the deadline binds";
  plan.deadline_days = 41.5 / 4.0;
  EXPECT_EQ(plan_headline(plan), "No option meets the limits.");
  EXPECT_EQ(plan_figures(plan).front().title, "No number of GPUs meets the limits");
  plan.kinds[0].gpus_for_deadline = 18432;
  EXPECT_EQ(plan_figures(plan).front().title, "The deadline needs about 18,432 h100");
  EXPECT_NE(plan_page({plan, "c", "v"}).find("<dt>Needs</dt><dd><div class=\"value\">about 18,432 h100</div>"),
            std::string::npos);
  EXPECT_EQ(plan_headline(plan), "No option meets the limits: the deadline needs about 18,432 h100.");
  plan.kinds[1].gpus_for_deadline = 30720;
  EXPECT_EQ(plan_headline(plan), "No option meets the limits: the deadline needs about 18,432 h100 or 30,720 a100.");
  plan.kinds[1].gpus_for_deadline.reset();
  plan.kinds[0].available = 4096;
  EXPECT_NE(plan_page({plan, "c", "v"}).find("smallest number that meets the deadline; 4096 are available</div>"),
            std::string::npos);
  EXPECT_NE(plan_page({plan, "c", "v"})
                .find("<dt>Shortest run</dt><dd><div class=\"value\">41.5 days</div><div class=\"about\">4096 h100, "
                      "$10.20M; 10.4 days are allowed</div>"),
            std::string::npos);
  plan.kinds[0].gpus_for_deadline.reset();
  plan.budget = 1e6;
  plan.deadline_days = 90.0;  // The budget binds now, and even the cheapest run is too late.
  const std::string page = plan_page({plan, "c", "v"});
  EXPECT_NE(page.find("<dt>Cheapest in time</dt><dd><div class=\"value\">$9.66M</div><div class=\"about\">2048 h100, "
                      "takes 78.6 days; $1.00M is allowed</div>"),
            std::string::npos);
  EXPECT_NE(page.find("<dt>Cheapest run</dt><dd><div class=\"value\">$9.35M</div><div class=\"about\">1024 h100, takes "
                      "152.2 days and misses the deadline; $1.00M is allowed</div>"),
            std::string::npos);
  plan.deadline_days = 200.0;
  EXPECT_EQ(plan_page({plan, "c", "v"}).find("Cheapest in time"), std::string::npos);
}

TEST(CapacityReport, NumbersHaveOneFormat) {
  const CapacityPlan plan = example_plan();
  EXPECT_EQ(money(plan, 9.664e6), "$9.66M");
  EXPECT_EQ(money(plan, 2.5), "$2.50");
  EXPECT_EQ(tick_money(plan, 14e6), "$14M");
  EXPECT_EQ(tick_money(plan, 9.5e6), "$9.5M");
  EXPECT_EQ(tick_money(plan, 300e3), "$300k");
  EXPECT_EQ(tick_money(plan, 100.0), "$100");
  EXPECT_EQ(input_in_words("rate of network"), "rate of the network");
  EXPECT_EQ(input_in_words("speed of kernels"), "speed of kernels");
  EXPECT_EQ(money(plan, 0.64389), "$0.6439");
  EXPECT_EQ(money(plan, 0.0), "$0.00");
  EXPECT_EQ(money(plan, -159.476), "-$159.48");
  EXPECT_EQ(large(3.8626e6), "3.86M");
  EXPECT_EQ(large(123.4e9), "123.4B");
  EXPECT_EQ(large(418.73), "418.7");
  EXPECT_EQ(plain(18264.4), "18264");
  EXPECT_EQ(likelihood(0.999), "over 99%");
  EXPECT_EQ(likelihood(1990.0 / 2000.0), "over 99%");
  EXPECT_EQ(likelihood(1989.0 / 2000.0), "99%");
  EXPECT_EQ(likelihood(11.0 / 2000.0), "1%");
  EXPECT_EQ(likelihood(10.0 / 2000.0), "below 1%");
  EXPECT_EQ(layout_in_short({.tensor = 8, .pipeline = 2, .data = 4, .context = 2}), "8x2x4x2");
}

}  // namespace
}  // namespace commfuse::reports
