// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/rows_of_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "model/config_error.h"
#include "model/record/columns.h"
#include "reports/step_rows.h"
#include "sim/point/grid.h"
#include "sim/step/predict_steps.h"
#include "sim/sweep/store_query.h"
#include "tests/own_folder.h"
#include "tests/sim/grid_of.h"
#include "tests/sim/message_of.h"

namespace commfuse::test {
namespace {

struct ReadRows {
  std::vector<ResultRow> layers;
  std::vector<StepRow> models;
};

ReadRows read(const std::string& text) {
  ReadRows rows;
  std::istringstream in(text);
  rows_of_json(in, "rows.jsonl",
               {[&](std::span<const Value>, const ResultRow& row) { rows.layers.push_back(row); },
                [&](const StepRow& row) { rows.models.push_back(row); }});
  return rows;
}

/// Returns the JSON row of a layer that takes 100 us, with the keys in `more` appended.
std::string layer(std::string_view schema, std::string_view more = "") {
  return fmt::format(R"({{"schema":"{}","model":"m","hardware":"h","scope":"mlp","ranks":2,"batch":1,"seq":1024,)"
                     R"("dtype":"bf16","strategy":"serial","status":"ok","makespan_us":100.0,"compute_us":60.0,)"
                     R"("exposed_us":40.0{}}})",
                     schema, more);
}

/// Returns the JSON row of a prefill that takes 5 ms, with the keys in `more` appended.
std::string model(std::string_view schema, std::string_view more = "") {
  return fmt::format(
      R"({{"schema":"{}","model":"m","hardware":"h","link_bandwidth":"x1","network_bandwidth":"x1","scope":"prefill",)"
      R"("gpus":2,"tensor":2,"sequence_parallel":true,"pipeline":1,"interleave":1,"pipeline_schedule":"1f1b","data":1,)"
      R"("context":1,"ulysses":1,"experts":1,"zero":0,"batch":1,"micro_batch":1,"seq":1024,"dtype":"bf16",)"
      R"("recompute":"none","optimizer":"adam","strategy":"serial","time_ms":5.0,"tokens_per_second":204800.0,)"
      R"("tokens_per_second_gpu":102400.0,"mfu":0.5{}}})",
      schema, more);
}

TEST(RowsOfJson, ATimeOfAnHourIsReadToThePicosecond) {
  for (const std::int64_t count : {4'432'926'873'393'315, 4'374'966'272'107'821, 8'589'000'000'000'001}) {
    std::string row = layer("commfuse.result/2");
    const std::string time = fmt::format("{}", to_microseconds(Duration{count}));
    row.replace(row.find("100.0"), 5, time);
    row.replace(row.find("60.0"), 4, time);
    row.replace(row.find("40.0"), 4, "0.0");
    const ReadRows rows = read(row + "\n");
    ASSERT_EQ(rows.layers.size(), 1U);
    EXPECT_EQ(rows.layers[0].analysis.critical.makespan, Duration{count}) << time;
  }
}

TEST(RowsOfJson, TheCurrentFormHasBothKindsAndEarlierFormsOneEach) {
  const ReadRows rows = read(layer("commfuse.result/2") + "\n" + model("commfuse.result/2") + "\n" +
                             layer("commfuse.result/1") + "\n" + model("commfuse.step/1") + "\n");
  ASSERT_EQ(rows.layers.size(), 2U);
  ASSERT_EQ(rows.models.size(), 2U);
  EXPECT_EQ(rows.layers[1].analysis.critical.makespan, std::chrono::microseconds(100));
  EXPECT_EQ(rows.models[1].number("time_ms"), 5.0);
  const ReadRows list = read("[\n" + model("commfuse.result/2") + ",\n" + layer("commfuse.result/2") + "\n]\n");
  EXPECT_EQ(list.layers.size(), 1U);
  EXPECT_EQ(list.models.size(), 1U);
}

TEST(RowsOfJson, UnknownColumnsAreIgnoredAndMissingOnesAbsent) {
  const ReadRows rows = read(layer("commfuse.result/2", R"(,"later":[1],"time_ms":7)") + "\n" +
                             model("commfuse.result/2", R"(,"later":[1],"makespan_us":7,"verdict":"wins","hfu":null)"));
  EXPECT_EQ(rows.layers[0].warnings, "");
  EXPECT_EQ(rows.layers[0].tails, std::nullopt);
  for (const char* name : {"later", "makespan_us", "verdict", "hfu", "fits"}) {
    EXPECT_FALSE(rows.models[0].has(name)) << name;
  }
}

TEST(RowsOfJson, AFlagMayBeANumberAsInSql) {
  const std::string flag = R"(,"fits":1,"cache_gb":1.0,"weights_gb":1.0,"capacity_gb":80.0)";
  EXPECT_TRUE(read(model("commfuse.result/2", flag)).models[0].flag("fits"));
}

TEST(RowsOfJson, AnInvalidModelIsRefusedWithItsPlace) {
  const auto refusal_with = [](std::string_view more) {
    return message_of([&] { read(model("commfuse.result/2") + "\n" + model("commfuse.result/2", more)); });
  };
  EXPECT_EQ(refusal_with(R"(,"hfu":"high")"),
            "rows.jsonl:2: hfu is \"high\", which is not a number; write the results again");
  EXPECT_EQ(refusal_with(R"(,"framework":2)"),
            "rows.jsonl:2: framework is 2, which is not text; write the results again");
  EXPECT_EQ(refusal_with(R"(,"fits":2)"),
            "rows.jsonl:2: fits is 2, which is not true or false; write the results again");
  EXPECT_EQ(refusal_with(R"(,"hfu":0.5)"), "rows.jsonl:2: the row has no compute_ms; write the results again");
  EXPECT_EQ(refusal_with(R"(,"attention_ms":0.5)"), "rows.jsonl:2: the row has no mlp_ms; write the results again");
  EXPECT_EQ(refusal_with(R"(,"seq":0)"), "rows.jsonl:2: seq is 0, which is out of range; write the results again");
  EXPECT_EQ(refusal_with(R"(,"model":"\u001b[2J")"),
            "rows.jsonl:2: model has control characters; write the results again");
  EXPECT_EQ(message_of([] { read(model("commfuse.step/9")); }),
            "rows.jsonl:1: this is not a row of commfuse.result/2 but 'commfuse.step/9'; create one by commfuse-sim "
            "run -o jsonl, or by a sweep");
}

TEST(RowsOfJson, ARefusalQuotesTheBeginningOfALongValue) {
  std::string letters;
  for (int i = 0; i < 19; ++i) {
    letters += "\u00e9";  // two bytes
  }
  EXPECT_EQ(message_of([&] { read(model("commfuse.result/2", fmt::format(R"(,"hfu":"{}{}")", letters, letters))); }),
            fmt::format("rows.jsonl:1: hfu is \"{}..., which is not a number; write the results again", letters));
}

TEST(RowsOfJson, ARowOfAListIsRefusedWithTheLineOnWhichItEnds) {
  const auto refusal_of = [](const std::string& text) { return message_of([&] { read(text); }); };
  const std::string good = layer("commfuse.result/2");
  const std::string bad = model("commfuse.result/2", R"(,"seq":0)");
  constexpr auto sentence = "seq is 0, which is out of range; write the results again";
  EXPECT_EQ(refusal_of("[\n" + good + ",\n" + bad + "\n]\n"), fmt::format("rows.jsonl:3: {}", sentence));
  EXPECT_EQ(refusal_of("[" + good + ", " + bad + "]"), fmt::format("rows.jsonl:1: {}", sentence));
  EXPECT_EQ(refusal_of("[\n{\n" + good.substr(1) + ",\n{\n" + bad.substr(1) + "]"),
            fmt::format("rows.jsonl:5: {}", sentence));
  EXPECT_EQ(refusal_of("[\n5\n]"), "rows.jsonl:2: this is not a row; write the results again");
  EXPECT_EQ(refusal_of("[\n\n{\"a\": 1e999}]"), "rows.jsonl:3: a number is out of range; write the results again");
}

TEST(RowsOfJson, AreQueriedAsStoresAre) {
  const OwnFolder folder;
  std::ofstream("both.jsonl") << layer("commfuse.result/1") << "\n" << model("commfuse.result/2") << "\n";
  const StoreQuery query("both.jsonl");
  EXPECT_TRUE(query.has_layers() && query.has_models());
  EXPECT_EQ(query.time_column(), "time_us");
  std::vector<std::vector<Value>> rows;
  query.run(Query{.columns = {"schema", "ranks", "tensor", "time_us"}},
            [&](std::span<const Value> row) { rows.emplace_back(row.begin(), row.end()); });
  EXPECT_EQ(rows,
            (std::vector<std::vector<Value>>{{std::string("commfuse.result/1"), std::int64_t{2}, Value{}, 100.0},
                                             {std::string("commfuse.result/2"), Value{}, std::int64_t{2}, 5000.0}}));
}

TEST(Columns, HaveDistinctNamesInOneTable) {
  std::set<std::string_view> names;
  for (const Column& column : all_columns()) {
    EXPECT_TRUE(names.insert(column.name).second) << column.name;
    EXPECT_EQ(find_column(column.name), &column);
    EXPECT_FALSE(column.doc.empty()) << column.name;
    EXPECT_TRUE(column.of_layers || column.of_models) << column.name;
  }
  EXPECT_EQ(find_column("later"), nullptr);
  std::size_t layer_columns = 0;
  for (const ResultColumn& column : result_columns()) {
    EXPECT_TRUE(find_column(column.name) != nullptr && find_column(column.name)->of_layers) << column.name;
    ++layer_columns;
  }
  EXPECT_EQ(std::ranges::count(all_columns(), true, &Column::of_layers), static_cast<std::ptrdiff_t>(layer_columns));
}

// A new setting without plan words would be missing from the names of plans.
TEST(Columns, EverySettingOfAPlanHasWordsExceptThoseOfTheSchedule) {
  const Grid grid = grid_of({"model=llama-3.1-405b", "scope=step", "ranks=8", "batch=1", "hardware=dgx-h100-x2",
                             "framework=fsdp", "launch=graph", "jitter=default"});
  Library library;
  library.load(grid.settings);
  StepPoints steps(library);
  const StepRow row = steps.rows(grid.settings).front();
  const std::set<std::string_view> without{"schema", "model_version", "sequence_parallel"};
  bool is_setting = true;
  for (const auto& [name, value] : row.cells) {
    is_setting = is_setting && name != "strategy";
    EXPECT_EQ(find_column(name)->plan_words != PlanWords::nothing, is_setting && !without.contains(name)) << name;
  }
  EXPECT_EQ(find_column("hardware")->plan_words, PlanWords::machine);
  EXPECT_EQ(find_column("pipeline")->plan_words, PlanWords::layout);
  EXPECT_EQ(find_column("recompute")->plan_words, PlanWords::setting);
}

// A cell without its column would be lost wherever rows are read.
TEST(Columns, EveryCellOfAWholeModelHasAColumnAndReadsBack) {
  std::set<std::string_view> seen;
  for (const char* scope : {"step", "prefill", "decode"}) {
    const bool is_step = scope == std::string("step");
    const Grid grid = grid_of({"model=llama-3.1-405b", fmt::format("scope={}", scope), "ranks=8", "batch=1",
                               "hardware=dgx-h100-x2", "jitter=default", "launch=graph",
                               scope == std::string("decode") ? "parallel.context=1" : "parallel.context=2",
                               is_step ? "framework=fsdp" : "price=2.80", is_step ? "as=te,two_streams" : "seed=1"});
    Library library;
    library.load(grid.settings);
    StepPoints steps(library);
    if (scope == std::string("step")) {
      steps.correct_by(steps.evidence_of({grid.settings, std::chrono::seconds(1)}));
    }
    const std::vector<StepRow> rows = steps.rows(grid.settings);
    for (const StepRow& row : rows) {
      for (const auto& [name, value] : row.cells) {
        const Column* const column = find_column(name);
        EXPECT_TRUE(column != nullptr && column->of_models) << name;
        seen.insert(name);
      }
    }
    const ReadRows back = read(reports::to_json_lines(rows));
    ASSERT_EQ(back.models.size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(back.models[i].cells, rows[i].cells);
    }
  }
  for (const Column& column : all_columns()) {
    EXPECT_TRUE(!column.of_models || seen.contains(column.name)) << column.name << " is in no row";
  }
}

}  // namespace
}  // namespace commfuse::test
