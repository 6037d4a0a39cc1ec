// SPDX-License-Identifier: Apache-2.0
// Tests that commands that read rows accept rows of layers and of whole models, in separate files and in one file, and
// rows in the forms of earlier versions.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tuple>

#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

using nlohmann::json;

/// Returns the row of a layer with 60 us of compute; the rest of the time is exposed communication.
std::string layer(std::string_view strategy, double makespan_us) {
  return fmt::format(R"({{"schema":"commfuse.result/2","model":"m","hardware":"h100-sxm",)"
                     R"("link_bandwidth":"x1","network_bandwidth":"x1","scope":"mlp","ranks":4,"batch":1,"seq":4096,)"
                     R"("dtype":"bf16","strategy":"{}","status":"ok","makespan_us":{},)"
                     R"("compute_us":60.0,"exposed_us":{},"mfu":0.5,"later":[1]}})"
                     "\n",
                     strategy, makespan_us, makespan_us - 60.0);
}

/// Returns the row of a training step: the optimizer takes 20 ms, and compute takes the rest.
std::string step(std::string_view strategy, double time_ms, int zero = 0) {
  return fmt::format(
      R"({{"schema":"commfuse.result/2","model":"m","hardware":"h100-sxm",)"
      R"("link_bandwidth":"x1","network_bandwidth":"x1","scope":"step","gpus":4,"tensor":4,)"
      R"("sequence_parallel":true,"pipeline":1,"interleave":1,)"
      R"("pipeline_schedule":"1f1b","data":1,"context":1,"ulysses":1,"experts":1,"zero":{},"batch":8,"micro_batch":1,)"
      R"("seq":4096,"dtype":"bf16","recompute":"none","optimizer":"adam","strategy":"{}","time_ms":{},)"
      R"("tokens_per_second":1000.0,"tokens_per_second_gpu":250.0,"mfu":0.25,"hfu":0.25,"compute_ms":{},)"
      R"("waiting_ms":0.0,"gradients_ms":0.0,"optimizer_ms":20.0,"later":[1]}})"
      "\n",
      zero, strategy, time_ms, time_ms - 20.0);
}

class OneRow : public testing::Test {
 protected:
  OneRow() {
    write("layers.jsonl", layer("serial", 100.0) + layer("commfuse", 75.0));
    write("models.jsonl", step("serial", 200.0) + step("commfuse", 150.0));
    write("both.jsonl", contents_of("models.jsonl") + contents_of("layers.jsonl"));
    std::filesystem::copy(COMMFUSE_SOURCE_DIR "/tests/upgrade/0ccc384/rows", "before");
    write("before/both.jsonl", contents_of("before/step.jsonl") + contents_of("before/layers.jsonl"));
  }
  static void write(const std::string& name, const std::string& text) { std::ofstream(name) << text; }
  static std::string output_of(const std::string& command, int code = 0) {
    const Outcome outcome = run_program("commfuse-sim " + command);
    EXPECT_EQ(outcome.code, code) << command << "\n" << outcome.err;
    return outcome.out;
  }
  /// Returns the page of a report.
  static std::string page_of(const std::string& file) {
    output_of("report " + file + " --out page.html");
    return contents_of("page.html");
  }
  static bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }
  const OwnFolder folder_;
};

TEST_F(OneRow, ResultsShowsTheUsualColumnsOfTheStoredRows) {
  EXPECT_EQ(output_of("results layers.jsonl --where \"makespan_us < 80\""),
            "model m, hardware h100-sxm, scope mlp, ranks 4, batch 1, seq 4096, dtype bf16\n"
            "\n"
            "strategy  makespan_us  mfu\n"
            "commfuse           75  0.5\n");
  EXPECT_EQ(output_of("results models.jsonl"),
            "model m, hardware h100-sxm, scope step, batch 8, seq 4096, dtype bf16, gpus 4,\n"
            "tensor 4, pipeline 1, data 1\n"
            "\n"
            "strategy  time_ms  tokens_per_second   mfu\n"
            "serial        200               1000  0.25\n"
            "commfuse      150               1000  0.25\n");
  EXPECT_EQ(output_of("results both.jsonl --sort-by time_us"),
            "model m, hardware h100-sxm, seq 4096, dtype bf16\n"
            "\n"
            "scope  ranks  batch  gpus  strategy  time_us  tokens_per_second   mfu\n"
            "mlp        4      1     -  commfuse       75                  -   0.5\n"
            "mlp        4      1     -  serial        100                  -   0.5\n"
            "step       -      8     4  commfuse   150000               1000  0.25\n"
            "step       -      8     4  serial     200000               1000  0.25\n");
}

TEST_F(OneRow, AColumnThatDoesNotApplyIsAbsentAndAnUnknownOneIsIgnored) {
  EXPECT_EQ(output_of("results both.jsonl --columns strategy,makespan_us,time_ms,sequence_parallel -o csv"),
            "strategy,makespan_us,time_ms,sequence_parallel\r\nserial,,200,true\r\ncommfuse,,150,true\r\n"
            "serial,100,,\r\ncommfuse,75,,\r\n");
  EXPECT_FALSE(has(output_of("results both.jsonl -o jsonl"), "later"));
  const Outcome unknown = run_program("commfuse-sim results models.jsonl --columns makespan_us");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.err.rfind("--columns: unknown column 'makespan_us'; ", 0), 0U) << unknown.err;
}

TEST_F(OneRow, JsonHasNoPointColumn) {
  const Outcome outcome = run_program("commfuse-sim results layers.jsonl --where \"point = 0\"");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err.rfind("--where: no such column: point; ", 0), 0U) << outcome.err;
}

TEST_F(OneRow, BestTakesTheFastestOfEachPointOfEitherKind) {
  write("two.jsonl", contents_of("both.jsonl") + step("serial", 180.0, 1));
  EXPECT_EQ(output_of("best two.jsonl --columns scope,zero,strategy,time_us -o csv"),
            "scope,zero,strategy,time_us\r\nstep,0,commfuse,150000\r\nmlp,,commfuse,75\r\nstep,1,serial,180000\r\n");
  EXPECT_EQ(output_of("best models.jsonl --columns strategy -o csv"), "strategy\r\ncommfuse\r\n");
  EXPECT_EQ(output_of("best layers.jsonl --per ranks --by -makespan_us --columns strategy -o csv"),
            "strategy\r\nserial\r\n");
}

TEST_F(OneRow, ModelsThatCannotBeRunHaveNoTimesToCompare) {
  json row = json::parse(step("serial", 200.0));
  row.erase("time_ms");
  row["reason"] = "too few GPUs";
  write("none.jsonl", row.dump() + "\n");
  EXPECT_EQ(output_of("best none.jsonl -o jsonl"), "");
  EXPECT_EQ(output_of("diff none.jsonl none.jsonl -o jsonl"), "");
  const json rows = json::parse(output_of("diff none.jsonl models.jsonl -o json", 4));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].at("strategy"), "serial");
  EXPECT_EQ(rows[0].at("after"), 200000.0);
  EXPECT_TRUE(has(page_of("none.jsonl"), "no result: too few GPUs"));
}

/// Returns a row with one more setting, whose value is in JSON.
std::string with(std::string row, std::string_view name, std::string_view value) {
  return row.insert(row.find("\"strategy\""), fmt::format("\"{}\":{},", name, value));
}

TEST_F(OneRow, DiffNamesSettingsOfTheSimulationThatDiffer) {
  const std::string stream = with(layer("serial", 100.0), "launch", "\"stream\"");
  const std::string graph = with(layer("serial", 90.0), "launch", "\"graph\"");
  write("stream.jsonl", stream);
  write("graph.jsonl", graph);
  const std::string settings = "settings that differ: launch (stream before, graph after)";
  EXPECT_TRUE(output_of("diff stream.jsonl graph.jsonl", 4)
                  .starts_with("makespan_us before and after; ratio = after / before; settings that differ:\n"
                               "launch (stream before, graph after)\n"));
  const Outcome csv = run_program("commfuse-sim diff stream.jsonl graph.jsonl -o csv");
  EXPECT_EQ(csv.out.substr(csv.out.find("\r\n")), "\r\nm,h100-sxm,x1,x1,,mlp,4,1,4096,bf16,serial,100,90,0.9\r\n");
  EXPECT_EQ(csv.err, settings + "\n");
  // Times without jitter are equal, so only the settings differ.
  write("jitter.jsonl", with(with(layer("serial", 100.0), "jitter", "\"default\""), "seed", "7"));
  write("still.jsonl", with(layer("serial", 100.0), "jitter", "\"none\""));
  const Outcome jitter = run_program("commfuse-sim diff still.jsonl jitter.jsonl");
  EXPECT_EQ(jitter.code, 0);
  EXPECT_EQ(jitter.err,
            "no differences in makespan_us; settings that differ: jitter (none before, default after), "
            "seed (1 before, 7 after)\n");
  // A row without the setting has its default.
  write("plain.jsonl", layer("serial", 100.0));
  EXPECT_EQ(run_program("commfuse-sim diff plain.jsonl stream.jsonl").err, "no differences in makespan_us\n");
  EXPECT_EQ(run_program("commfuse-sim diff graph.jsonl plain.jsonl -o csv").err,
            "settings that differ: launch (graph before, stream after)\n");
}

TEST_F(OneRow, DiffNamesSettingsOfWholeModelsThatDiffer) {
  for (const auto& [name, value, words] :
       {std::tuple("launch", "\"graph\"", "launch (stream before, graph after)"),
        std::tuple("jitter", "\"default\"", "jitter (none before, default after)"),
        std::tuple("framework", "\"torchtitan\"", "framework (none before, torchtitan after)")}) {
    write("other.jsonl", with(step("serial", 180.0), name, value));
    write("plain.jsonl", step("serial", 200.0));
    const Outcome outcome = run_program("commfuse-sim diff plain.jsonl other.jsonl -o json");
    EXPECT_EQ(outcome.code, 4);
    EXPECT_EQ(outcome.err, fmt::format("settings that differ: {}\n", words));
    EXPECT_EQ(json::parse(outcome.out).at(0).at("ratio"), 0.9);
  }
}

TEST_F(OneRow, DiffMatchesSettingsThatVaryWithinAStore) {
  const auto launched = [](std::string_view launch, double time) {
    return with(layer("serial", time), "launch", fmt::format("\"{}\"", launch));
  };
  write("both_launches.jsonl", launched("stream", 100.0) + launched("graph", 90.0));
  write("other_order.jsonl", launched("graph", 90.0) + launched("stream", 100.0));
  EXPECT_EQ(output_of("diff both_launches.jsonl other_order.jsonl -o jsonl"), "");
  write("graph.jsonl", launched("graph", 80.0));
  const json rows = json::parse(output_of("diff both_launches.jsonl graph.jsonl -o json", 4));
  ASSERT_EQ(rows.size(), 2U);
  for (const json& row : rows) {
    const bool is_graph = row.at("launch") == "graph";
    EXPECT_EQ(row.at("before"), is_graph ? 90.0 : 100.0);
    EXPECT_EQ(row.at("after"), is_graph ? json(80.0) : json());
  }
}

TEST_F(OneRow, DiffMatchesRowsOfBothKinds) {
  EXPECT_EQ(output_of("diff both.jsonl both.jsonl -o jsonl"), "");
  write("after.jsonl", layer("commfuse", 90.0) + layer("serial", 100.0) + contents_of("models.jsonl"));
  const json rows = json::parse(output_of("diff both.jsonl after.jsonl -o json", 4));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].at("scope"), "mlp");
  EXPECT_EQ(rows[0].at("before"), 75.0);
  EXPECT_EQ(rows[0].at("after"), 90.0);
  EXPECT_EQ(rows[0].at("ratio"), 1.2);
  EXPECT_EQ(json::parse(output_of("diff layers.jsonl both.jsonl -o json", 4)).size(), 2U);
  write("faster.jsonl", step("serial", 100.0) + step("commfuse", 150.0));
  const json models = json::parse(output_of("diff models.jsonl faster.jsonl -o json", 4));
  ASSERT_EQ(models.size(), 1U);
  EXPECT_EQ(models[0].at("ratio"), 0.5);
  const Outcome mixed = run_program("commfuse-sim diff layers.jsonl models.jsonl");
  EXPECT_EQ(mixed.code, 2);
  EXPECT_EQ(mixed.err,
            "one of layers.jsonl and models.jsonl holds layers, the other whole models; compare stores of one kind\n");
}

TEST_F(OneRow, DiffComparesAStoreWithItsExport) {
  write("a.yaml",
        "schema: commfuse.sweep/1\nset: {model: llama-3.1-8b, scope: step, ranks: 2, strategy: {name: [serial, "
        "commfuse]}}\naxes:\n  - parallel.zero: [0, 1]\noutputs: [json]\n");
  ASSERT_NE(run_program("commfuse-sim sweep a.yaml --out out").code, 2);
  EXPECT_EQ(output_of("diff out out/results.json -o jsonl"), "");
  EXPECT_EQ(output_of("diff out/results.json out -o jsonl"), "");
  const std::string columns = " --columns zero,strategy,time_ms,schema -o csv";
  EXPECT_EQ(output_of("best out" + columns), output_of("best out/results.json" + columns));
}

TEST_F(OneRow, ReportShowsLayersAndWholeModels) {
  const std::string models = page_of("models.jsonl");
  EXPECT_TRUE(
      has(models,
          "<p class=\"lead\">m step on h100-sxm, 4 GPUs (4 tensor), batch 8, seq 4K, bf16: overlap saves 25.0% of "
          "serial&#39;s time. commfuse wins, probability unknown (--uncertainty off): 25.0% less time"));
  EXPECT_TRUE(has(models, "m step on h100-sxm, 4 GPUs (4 tensor), batch 8, seq 4K, bf16"));
  EXPECT_TRUE(has(models,
                  "<td>\u221225.0</td><td>150.0</td><td>1000</td><td>250</td><td>25.0</td><td>25.0</td>"
                  "<td>130.0</td><td>0.0</td><td>0.0</td><td>20.0</td></tr>"));
  EXPECT_FALSE(has(models, "id=\"results\""));
  EXPECT_FALSE(has(models, "id=\"block-rows\""));
  const std::string both = page_of("both.jsonl");
  for (const char* part : {"<h2 id=\"results\">All results</h2>", "<h2 id=\"models\">Whole models</h2>",
                           "id=\"block-rows\"", "<figure data-figure=\"model-time-1\">"}) {
    EXPECT_TRUE(has(both, part)) << part;
  }
  EXPECT_FALSE(has(page_of("layers.jsonl"), "Whole models"));
}

TEST_F(OneRow, ReportRefusesViewsThatWholeModelsLack) {
  const Outcome outcome = run_program("commfuse-sim report models.jsonl --jitter default --out page.html");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "--jitter: these results are of whole models, which have no detailed point; remove --jitter\n");
  EXPECT_FALSE(std::filesystem::exists("page.html"));
}

TEST_F(OneRow, PlotDrawsWhereTheTimeOfAWholeModelGoes) {
  const std::string expected =
      "strategy,part,time_ms\r\nserial,compute,180\r\nserial,waiting,0\r\nserial,gradients,0\r\nserial,optimizer,20\r\n"
      "commfuse,compute,130\r\ncommfuse,waiting,0\r\ncommfuse,gradients,0\r\ncommfuse,optimizer,20\r\n";
  for (const std::string file : {"models.jsonl", "both.jsonl"}) {
    output_of("plot " + file + " model-time-1 --out figure.csv");
    EXPECT_EQ(contents_of("figure.csv"), expected) << file;
  }
  EXPECT_EQ(output_of("plot models.jsonl"), "model-time-1     commfuse takes 25.0% less time than serial\n");
}

TEST_F(OneRow, EveryCommandReadsEarlierForms) {
  for (const std::string file : {"layers.jsonl", "step.jsonl", "decode.json", "both.jsonl"}) {
    const json rows = json::parse(output_of("results before/" + file + " -o json"));
    const bool is_both = file == "both.jsonl";
    EXPECT_EQ(rows.size(), is_both ? 4U : file == "decode.json" ? 3U : 2U) << file;
    EXPECT_EQ(json::parse(output_of("best before/" + file + " -o json")).size(), is_both ? 2U : 1U) << file;
    EXPECT_EQ(output_of("diff before/" + file + " before/" + file + " -o jsonl"), "") << file;
    EXPECT_TRUE(has(page_of("before/" + file), "llama-3.1-8b")) << file;
    // The file has one point, and this model version predicts a different time for it, so there is no timeline.
    if (file == "layers.jsonl") {
      EXPECT_TRUE(has(run_program("commfuse-sim plot before/" + file).err, "have no figure; run more points")) << file;
    } else {
      EXPECT_FALSE(output_of("plot before/" + file).empty()) << file;
    }
  }
}

TEST_F(OneRow, RowsOfALaterFormAreRefusedWithTheirPlace) {
  std::string later = contents_of("both.jsonl");
  later.replace(later.rfind("commfuse.result/2"), 17, "commfuse.result/3");
  write("later.jsonl", later);
  for (const std::string command : {"results", "best", "report", "plot"}) {
    const Outcome outcome = run_program("commfuse-sim " + command + " later.jsonl");
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_EQ(outcome.err,
              "later.jsonl:4: this is not a row of commfuse.result/2 but 'commfuse.result/3'; create one by "
              "commfuse-sim run -o jsonl, or by a sweep\n");
  }
}

}  // namespace
}  // namespace commfuse::test
