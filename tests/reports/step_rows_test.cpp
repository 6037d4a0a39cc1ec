// SPDX-License-Identifier: Apache-2.0
// Tests tables of training steps with a baseline framework: widths of columns, and the baseline of comparisons.
#include "reports/step_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/html/models_section.h"
#include "reports/plan_names.h"
#include "reports/plan_verdicts.h"

namespace commfuse::reports {
namespace {

/// A training step on one GPU; a step without a time has a reason.
StepRow step(const std::string& framework, const std::string& strategy, double time_ms,
             const std::string& reason = "") {
  StepRow row;
  for (const auto& [name, text] :
       {std::pair{"model", "m"}, std::pair{"hardware", "h"}, std::pair{"dtype", "bf16"},
        std::pair{"link_bandwidth", "x1"}, std::pair{"network_bandwidth", "x1"}, std::pair{"scope", "step"},
        std::pair{"pipeline_schedule", "1f1b"}, std::pair{"recompute", "none"}, std::pair{"optimizer", "adam"}}) {
    row.add(name, std::string(text));
  }
  for (const char* name :
       {"gpus", "tensor", "pipeline", "interleave", "data", "context", "ulysses", "experts", "batch", "micro_batch"}) {
    row.add(name, std::int64_t{1});
  }
  row.add("zero", std::int64_t{0});
  row.add("seq", std::int64_t{1024});
  if (!framework.empty()) {
    row.add("framework", framework);
  }
  row.add("strategy", strategy);
  if (!reason.empty()) {
    row.add("reason", reason);
    return row;
  }
  row.add("time_ms", time_ms);
  row.add("tokens_per_second", 1e5);
  row.add("tokens_per_second_gpu", 1e5);
  row.add("mfu", 0.25);
  row.add("hfu", 0.5);
  row.add("compute_ms", time_ms - 1.0);
  row.add("waiting_ms", 0.0);
  row.add("gradients_ms", 0.0);
  row.add("optimizer_ms", 1.0);
  return row;
}

/// Returns the row with another value in a column.
StepRow with(StepRow row, std::string_view name, StepRow::Value value) {
  std::ranges::find(row.cells, name, &std::pair<std::string_view, StepRow::Value>::first)->second = std::move(value);
  return row;
}

StepRow with_rate(const StepRow& row, double tokens_per_second) {
  return with(row, "tokens_per_second_gpu", tokens_per_second);
}

/// Returns the lines below the heading.
std::string block_of(const std::vector<StepRow>& rows) {
  const std::string table = step_table(rows);
  return table.substr(table.find("\n\n") + 2);
}

TEST(StepTable, ShortNamesFitThirteenColumns) {
  EXPECT_EQ(block_of({step("", "serial", 100.0), step("", "commfuse", 80.0)}),
            "                  time/ms     \u00b1 vs serial  tokens/s    MFU    HFU\n"
            "  serial            100.0     -         -    100000  25.0%  50.0%\n"
            "> commfuse           80.0     -    -20.0%    100000  25.0%  50.0%\n"
            "  commfuse wins, probability unknown (--uncertainty off): 20.0% less time than\n"
            "  serial.\n"
            "\n"
            "                compute/ms   waiting gradients optimizer\n"
            "  serial              99.0       0.0       0.0       1.0\n"
            "  commfuse            79.0       0.0       0.0       1.0\n");
}

TEST(StepTable, TheColumnIsAsWideAsTheLongestName) {
  const std::string name = "megatron-core-2024";
  EXPECT_EQ(block_of({step(name, name, 110.0), step(name, "serial", 132.0), step(name, "sliced", 0.0, "too small"),
                      step(name, "commfuse", 99.0)}),
            "                       time/ms     \u00b1    change  tokens/s    MFU    HFU\n"
            "  megatron-core-2024     110.0     -         -    100000  25.0%  50.0%\n"
            "  serial                 132.0     -    +20.0%    100000  25.0%  50.0%\n"
            "  sliced               too small\n"
            "> commfuse                99.0     -    -10.0%    100000  25.0%  50.0%\n"
            "  commfuse wins, probability unknown (--uncertainty off): 10.0% less time than\n"
            "  megatron-core-2024.\n"
            "\n"
            "                     compute/ms   waiting gradients optimizer\n"
            "  megatron-core-2024      109.0       0.0       0.0       1.0\n"
            "  serial                  131.0       0.0       0.0       1.0\n"
            "  commfuse                 98.0       0.0       0.0       1.0\n");
}

TEST(StepTable, ATooLongNameHasItsOwnLine) {
  const std::string name = "our-fork-of-megatron-with-half-of-its-names";
  const std::string block = block_of({step(name, name, 90.0), step(name, "serial", 100.0)});
  const std::string indent(28, ' ');
  EXPECT_NE(block.find("> " + name + "\n  " + indent + "      90.0     -         -    100000  25.0%  50.0%\n"),
            std::string::npos)
      << block;
  EXPECT_NE(block.find("  " + name + "\n  " + indent + "       89.0       0.0       0.0       1.0\n"),
            std::string::npos)
      << block;
  std::istringstream lines(block);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 81U) << line;  // the plus-minus sign has two bytes
  }
}

TEST(StepTable, SerialIsTheBaselineIfTheFrameworkHasNoResult) {
  const std::string block =
      block_of({step("fsdp", "fsdp", 0.0, "too large"), step("fsdp", "serial", 100.0), step("fsdp", "commfuse", 50.0)});
  EXPECT_NE(block.find("time/ms     \u00b1 vs serial"), std::string::npos) << block;
  EXPECT_NE(block.find("> commfuse           50.0     -    -50.0%"), std::string::npos) << block;
}

/// A prefill whose GPU needs 20 GB of weights and `cache_gb` of keys and values, and has 80 GB.
StepRow prefill_with_cache(std::int64_t batch, double cache_gb) {
  StepRow row;
  for (const auto& [name, value] : step("", "serial", 10.0).cells) {
    if (name == "scope") {
      row.add(name, std::string("prefill"));
    } else if (name == "batch") {
      row.add(name, batch);
    } else if (name != "hfu" && !(name.ends_with("_ms") && name != "time_ms")) {
      row.cells.emplace_back(name, value);
    }
  }
  row.add("weights_gb", 20.0);
  row.add("cache_gb", cache_gb);
  row.add("capacity_gb", 80.0);
  row.add("fits", 20.0 + cache_gb <= 80.0);
  return row;
}

constexpr const char* largest_prefill =
    "Out of memory in 2 of 3 rows: a GPU needs up to 120.00 GB, but h has 80.00 GB per GPU, so use more tensor ranks "
    "or "
    "fewer tokens.";

TEST(StepTable, TheLargestNeedOfAPrefillDoesNotDependOnTheOrderOfRows) {
  const StepRow small = prefill_with_cache(1, 10.0);
  const StepRow large = prefill_with_cache(2, 70.0);
  const StepRow largest = prefill_with_cache(3, 100.0);
  EXPECT_EQ(memory_sentence(std::vector{small, large, largest}), largest_prefill);
  EXPECT_EQ(memory_sentence(std::vector{largest, large, small}), largest_prefill);
}

TEST(StepTable, ReadsTheNeedOfAPrefillWithoutMemoryColumnsFromItsWarning) {
  const auto row = [](const std::string& needed) {
    StepRow without_columns;
    without_columns.add("warnings",
                        "out of memory: a GPU needs " + needed +
                            " GB, but h has 80.00 GB per GPU, so use more tensor ranks or fewer tokens; late");
    return without_columns;
  };
  StepRow small;
  EXPECT_EQ(memory_sentence(std::vector{row("90.00"), row("120.00"), small}), largest_prefill);
  EXPECT_EQ(memory_sentence(std::vector{row("120.00"), row("90.00"), small}), largest_prefill);
}

/// Returns the sentence on a step that needs more memory than a GPU has, with these values in columns.
std::string sentence_on_large_step(const std::vector<std::pair<const char*, StepRow::Value>>& columns) {
  StepRow row = step("", "serial", 10.0);
  for (const auto& [name, value] : columns) {
    row = with(std::move(row), name, value);
  }
  row.add("memory_gb", 120.0);
  row.add("capacity_gb", 80.0);
  row.add("fits", false);
  return memory_sentence(std::vector{row});
}

TEST(StepTable, NamesOnlyRemediesThatAreLeft) {
  const std::string start = "Out of memory: a GPU needs 120.00 GB, but h has 80.00 GB per GPU, so use ";
  EXPECT_EQ(sentence_on_large_step({{"data", std::int64_t{2}}, {"micro_batch", std::int64_t{2}}}),
            start + "more GPUs, ZeRO, recomputation or a smaller micro-batch.");
  EXPECT_EQ(sentence_on_large_step({{"data", std::int64_t{2}}, {"zero", std::int64_t{3}}}),
            start + "more GPUs or recomputation.");
  EXPECT_EQ(sentence_on_large_step({{"recompute", std::string("full")}}), start + "more GPUs.");
}

TEST(StepTable, APrefillThatDoesNotFitSaysSo) {
  const std::string table = step_table(std::vector{prefill_with_cache(1, 70.0)});
  EXPECT_TRUE(
      table.ends_with("                  time/ms     \u00b1 vs serial  tokens/s    MFU\n"
                      "  serial             10.0     -         -    100000  25.0%\n"
                      "\n"
                      "  memory of a GPU: weights 20.0 GB, keys and values 70.0, of 80.0 GB, out of\n"
                      "    memory\n"))
      << table;
}

TEST(StepTable, PartsOfAPassAreInALineOfTheirOwn) {
  StepRow row = prefill_with_cache(1, 10.0);
  for (const auto& [part, ms] :
       {std::pair{"attention_ms", 3.0}, {"mlp_ms", 6.0}, {"other_ms", 0.5}, {"waiting_ms", 0.5}}) {
    row.add(part, ms);
  }
  EXPECT_TRUE(step_table(std::vector{row})
                  .ends_with("  serial             10.0     -         -    100000  25.0%\n"
                             "\n"
                             "                attention/ms       MLP     other   waiting\n"
                             "  serial                 3.0       6.0       0.5       0.5\n"
                             "\n"
                             "  memory of a GPU: weights 20.0 GB, keys and values 10.0, of 80.0 GB\n"))
      << step_table(std::vector{row});
}

/// Returns a step with an implementation that runs these sites. Without sites, it saves time nowhere.
StepRow implemented_step(const std::string& name, double time_ms, const std::string& sites, double beats_serial) {
  StepRow row = step("", name, time_ms);
  row.add("implements", std::string("ring_exchange"));
  if (!sites.empty()) {
    row.add("implemented_sites", sites);
  }
  row.add("beats_serial", beats_serial);
  row.add("saving_error", 0.02);
  return row;
}

StepRow ideal_step(const std::string& strategy, double time_ms) {
  StepRow row = step("", strategy, time_ms);
  row.add("bound", std::string("yes"));
  return row;
}

/// Returns steps of serial, an ideal schedule and two implementations. The faster implementation is less certain to
/// beat serial.
std::vector<StepRow> implemented_steps() {
  return {step("", "serial", 100.0), ideal_step("commfuse", 80.0), implemented_step("flux", 90.0, "qkv, gate_up", 0.75),
          implemented_step("te", 95.0, "down", 0.9)};
}

TEST(StepTable, StatesWhetherOverlapWithImplementationsPays) {
  std::vector<StepRow> rows = implemented_steps();
  rows[2].add("warnings", std::string("flux was not measured on GPUs such as H"));
  EXPECT_EQ(block_of(rows),
            "                     time/ms     \u00b1 vs serial  tokens/s    MFU    HFU\n"
            "  serial               100.0     -         -    100000  25.0%  50.0%\n"
            "  commfuse (ideal)      80.0     -    -20.0%    100000  25.0%  50.0%\n"
            "> flux                  90.0     -    -10.0%    100000  25.0%  50.0%\n"
            "  te                    95.0     -     -5.0%    100000  25.0%  50.0%\n"
            "  Overlap pays: 5.0% less time than serial (90% interval 1 to 8%; 90% sure) with\n"
            "  te, the fastest implementation with a clear win (flux may take less). Ideal\n"
            "  kernels (commfuse) would take 15.8% less time than te.\n"
            "  Forward GEMMs that take less time with an implementation: flux qkv, gate_up;\n"
            "  te down.\n"
            "  Beyond the fit: flux was not measured on GPUs such as H.\n"
            "\n"
            "                   compute/ms   waiting gradients optimizer\n"
            "  serial                 99.0       0.0       0.0       1.0\n"
            "  commfuse (ideal)       79.0       0.0       0.0       1.0\n"
            "  flux                   89.0       0.0       0.0       1.0\n"
            "  te                     94.0       0.0       0.0       1.0\n");
}

TEST(StepTable, ASentenceOnImplementationsStatesTheSavingOnce) {
  const std::string sentence = models_sentence(implemented_steps());
  EXPECT_NE(sentence.find(": Overlap pays: 5.0% less time than serial (90% interval 1 to 8%"), std::string::npos)
      << sentence;
  EXPECT_EQ(sentence.find("overlap saves"), std::string::npos) << sentence;
}

TEST(StepTable, AnImplementationThatRunsNowhereDoesNotPay) {
  const std::vector<StepRow> rows{step("", "serial", 100.0), ideal_step("commfuse", 80.0),
                                  implemented_step("flux", 100.0, "", 0.5), implemented_step("te", 100.0, "", 0.5)};
  EXPECT_EQ(step_verdict(rows), "Overlap does not pay: no GEMM of the step takes less time with flux or te.");
  EXPECT_NE(step_table(rows).find("take less time with an implementation: flux none; te none.\n"), std::string::npos)
      << step_table(rows);
  std::vector<const StepRow*> plan;
  for (const StepRow& row : rows) {
    plan.push_back(&row);
  }
  ASSERT_TRUE(plan_saving(plan));
  EXPECT_EQ(plan_saving(plan)->pays, Pays::no);
}

TEST(StepTable, AnImplementationThatOverlapsNothingDoesNotCountAsOverlap) {
  StepRow in_switch = step("", "torch_multimem", 80.0);
  in_switch.add("implements", std::string("serial"));
  in_switch.add("implemented_sites", std::string("all_reduce"));
  in_switch.add("beats_serial", 0.97);
  const std::vector<StepRow> rows{step("", "serial", 100.0), in_switch, implemented_step("te", 110.0, "down", 0.1)};
  EXPECT_EQ(step_verdict(rows),
            "Overlap does not pay: 10.0% more time than serial (90% interval 6 to 14%; 90% sure) with te, the fastest "
            "implementation that overlaps. torch_multimem, which overlaps nothing, takes 20.0% less time than serial "
            "(97% sure).");
  const std::optional<PlanSaving> saving = plan_saving(std::vector<const StepRow*>{&rows[0], &rows[1], &rows[2]});
  ASSERT_TRUE(saving);
  EXPECT_EQ(saving->overlap, &rows[2]);
  EXPECT_FALSE(plan_saving(std::vector<const StepRow*>{&rows[0], &rows[1]}));
}

TEST(StepTable, ComparesImplementationsWithTheFramework) {
  std::vector<StepRow> rows{step("megatron-lm", "megatron-lm", 90.0), step("megatron-lm", "serial", 100.0)};
  rows.push_back(step("megatron-lm", "te", 80.0));
  rows.back().add("implements", std::string("ring_exchange"));
  rows.back().add("implemented_sites", std::string("down"));
  rows.back().add("beats_serial", 0.97);
  EXPECT_EQ(step_verdict(rows), "Overlap pays: 11.1% less time than megatron-lm (97% sure) with te.");
}

TEST(StepTable, TheVerdictOnASingleDecodingStepHasThreeDecimals) {
  EXPECT_EQ(step_verdicts(std::vector{with(step("", "all_reduce", 0.0423), "scope", std::string("decode"))}),
            "all_reduce takes 0.042 ms.\n");
  EXPECT_EQ(step_verdicts(std::vector{step("", "serial", 100.0)}), "serial takes 100.0 ms.\n");
}

TEST(PlanSaving, RecommendsAnImplementationAndNotAnIdealSchedule) {
  const std::vector<StepRow> rows = implemented_steps();
  const std::vector<const StepRow*> plan{&rows[0], &rows[1], &rows[2], &rows[3]};
  const std::optional<PlanSaving> saving = plan_saving(plan);
  ASSERT_TRUE(saving);
  EXPECT_EQ(saving->overlap, &rows[3]);
  EXPECT_EQ(saving->baseline, &rows[0]);
  EXPECT_NEAR(saving->saved, 0.05, 1e-12);
  EXPECT_EQ(saving->pays, Pays::yes);
}

TEST(PlanHeading, NamesARingOfContextRanks) {
  StepRow row = with(step("", "serial", 100.0), "context", std::int64_t{4});
  EXPECT_NE(plan_heading(row).find("(1 tensor x 4 context)"), std::string::npos) << plan_heading(row);
  row.add("context_exchange", std::string("ring"));
  EXPECT_NE(plan_heading(row).find("(1 tensor x 4 context in a ring)"), std::string::npos) << plan_heading(row);
}

TEST(BestPlan, AnIdealScheduleNextToImplementationsIsNotTheBest) {
  StepRow small = ideal_step("commfuse", 80.0);
  const std::vector<StepRow> rows{with_rate(small, 3e5), with_rate(step("", "serial", 100.0), 1e5),
                                  with_rate(with(step("", "serial", 100.0), "batch", std::int64_t{2}), 2e5)};
  EXPECT_NE(best_plan(rows).find(" 200000, by serial "), std::string::npos) << best_plan(rows);
}

TEST(StepTable, InferenceHasPercentilesAndCosts) {
  StepRow row = prefill_with_cache(1, 10.0);
  for (const char* name : {"time_p50_ms", "time_p95_ms", "time_p99_ms", "time_p99_9_ms"}) {
    row.add(name, 11.0);
  }
  row.add("cost_per_mtok", 2.8 / 3600.0 / 1e5 * 1e6);  // one GPU, 100,000 tokens a second
  EXPECT_EQ(step_table(std::vector{row}).find("cost"), std::string::npos) << "no price, no line";
  row.add("price", 2.8);
  EXPECT_TRUE(step_table(std::vector{row})
                  .ends_with("\n"
                             "  p50, p95, p99 and p99.9 over machines whose GPUs differ in speed: serial 11.0,\n"
                             "    11.0, 11.0 and 11.0\n"
                             "\n"
                             "  cost of a million prompt tokens at 2.80 per GPU-hour: serial 0.0078\n"
                             "\n"
                             "  memory of a GPU: weights 20.0 GB, keys and values 10.0, of 80.0 GB\n"))
      << step_table(std::vector{row});
}

TEST(BestPlan, NamesTheMachineIfPlansHaveSeveral) {
  const StepRow plan = step("", "commfuse", 100.0);
  EXPECT_EQ(best_plan(std::vector{with_rate(plan, 1e5), with_rate(with(plan, "hardware", std::string("b200")), 2e5)}),
            "Most tokens per second per GPU among plans that fit: 200000, by commfuse on b200, 1 GPU (1 tensor), batch "
            "1, seq 1K");
  EXPECT_EQ(best_plan(std::vector{with_rate(plan, 1e5), with_rate(with(plan, "seq", std::int64_t{2048}), 2e5)}),
            "Most tokens per second per GPU among plans that fit: 200000, by commfuse on 1 GPU (1 tensor), batch 1, "
            "seq 2K");
}

TEST(BestPlan, NamesThePriceOfPlansThatDifferInIt) {
  StepRow cheap = with_rate(step("", "commfuse", 100.0), 1e5);
  cheap.cells.insert(std::ranges::find(cheap.cells, "strategy", &std::pair<std::string_view, StepRow::Value>::first),
                     {"price", 2.8});
  const StepRow dear = with(with_rate(cheap, 2e5), "price", 3.5);
  const StepRow other = with(cheap, "batch", std::int64_t{2});
  EXPECT_EQ(best_plan(std::vector{cheap, dear, other}),
            "Most tokens per second per GPU among plans that fit: 200000, by commfuse on 1 GPU (1 tensor), batch 1, "
            "seq 1K, GPU-hour at 3.50");
}

// Only the rows with a chosen launch have the column.
TEST(BestPlan, NamesTheLaunchOfPlansThatDifferInIt) {
  const StepRow stream = with_rate(step("", "commfuse", 100.0), 1e5);
  StepRow graph = with_rate(stream, 2e5);
  graph.cells.insert(std::ranges::find(graph.cells, "strategy", &std::pair<std::string_view, StepRow::Value>::first),
                     {"launch", std::string("graph")});
  EXPECT_NE(plan_heading(graph).find(", launch graph"), std::string::npos) << plan_heading(graph);
  EXPECT_EQ(plans_of(std::vector{stream, graph}).size(), 2U);
  const std::string best =
      "Most tokens per second per GPU among plans that fit: 200000, by commfuse on 1 GPU (1 tensor), batch 1, seq 1K, "
      "launch graph";
  EXPECT_EQ(best_plan(std::vector{stream, graph}), best);
  EXPECT_EQ(best_plan(std::vector{graph, stream}), best);
  EXPECT_EQ(best_plan(std::vector{graph, with_rate(stream, 2e5)}),
            best + "; within 2%: commfuse on 1 GPU (1 tensor), launch stream");
}

// Tokens of a prompt and generated tokens are different things.
TEST(BestPlan, EachScopeHasItsOwn) {
  std::vector<StepRow> rows;
  for (const auto& [scope, rate] : {std::pair{"prefill", 9e4}, std::pair{"decode", 1e3}}) {
    const StepRow plan = with_rate(with(step("", "serial", 100.0), "scope", std::string(scope)), rate);
    rows.push_back(plan);
    rows.push_back(with_rate(with(plan, "batch", std::int64_t{2}), 2.0 * rate));
  }
  EXPECT_EQ(best_plan(rows),
            "Most tokens per second per GPU among prefill plans that fit: 180000, by serial on 1 GPU (1 tensor), batch "
            "2, seq 1K. Most tokens per second per GPU among decode plans that fit: 2000, by serial on 1 GPU (1 "
            "tensor), batch 2, seq 1K");
  rows.erase(rows.begin());
  EXPECT_TRUE(best_plan(rows).starts_with("Most tokens per second per GPU among decode plans ")) << best_plan(rows);
}

TEST(BestPlan, PlansThatDifferInTheirContextExchangeAreSeveral) {
  StepRow gather = with(with(step("", "serial", 100.0), "context", std::int64_t{2}), "gpus", std::int64_t{2});
  gather.cells.insert(std::ranges::find(gather.cells, "strategy", &std::pair<std::string_view, StepRow::Value>::first),
                      {"context_exchange", std::string("all_gather")});
  const StepRow ring = with_rate(with(gather, "context_exchange", std::string("ring")), 2e5);
  EXPECT_EQ(best_plan(std::vector{gather, ring}),
            "Most tokens per second per GPU among plans that fit: 200000, by serial on 2 GPUs (1 tensor x 2 context "
            "in a ring), batch 1, seq 1K");
}

TEST(BestPlan, NamesWhatDistinguishesPlansThatTie) {
  const StepRow plan = with(step("", "commfuse", 100.0), "recompute", std::string("full"));
  const StepRow other_links = with(plan, "link_bandwidth", std::string("x2"));
  EXPECT_EQ(
      best_plan(std::vector{
          with_rate(plan, 100000.0),
          with_rate(with(plan, "recompute", std::string("none")), 99000.0),
          with_rate(with(with(other_links, "batch", std::int64_t{2}), "zero", std::int64_t{1}), 98500.0),
          with_rate(with(plan, "micro_batch", std::int64_t{4}), 50000.0),
      }),
      "Most tokens per second per GPU among plans that fit: 100000, by commfuse on h, 1 GPU (1 tensor), batch 1, seq "
      "1K, recompute full, micro-batch 1, ZeRO 0; within 2%: commfuse on h, 1 GPU (1 tensor), recompute none; "
      "commfuse on h, links x2, 1 GPU (1 tensor), batch 2, ZeRO 1");
}

}  // namespace
}  // namespace commfuse::reports
