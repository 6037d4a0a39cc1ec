// SPDX-License-Identifier: Apache-2.0
// Tests commfuse-sim results, best and diff as a person uses them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

using nlohmann::json;

class ResultsTest : public testing::Test {
 protected:
  ResultsTest() {
    std::ofstream("a.yaml") << "schema: commfuse.sweep/1\nset: {model: llama-3.1-8b, strategy: {name: [serial, "
                               "commfuse]}}\naxes:\n  - ranks: [2, 4, 16]\n  - seq: [1K, 8K]\noutputs: [csv]\n";
  }
  static Outcome sweep(const std::string& out, const std::string& more = "") {
    return run_program("commfuse-sim sweep a.yaml --out " + out + " " + more);
  }
  static json rows_of(const std::string& command) {
    const Outcome outcome = run_program("commfuse-sim " + command + " -o json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out);
  }
  const OwnFolder folder_;
};

TEST_F(ResultsTest, RowsAreChosenSortedAndCut) {
  ASSERT_EQ(sweep("out").code, 3);
  const json rows = rows_of(
      "results out --where \"ranks = 4 AND strategy = 'commfuse'\" --columns seq,makespan_us "
      "--sort-by -makespan_us");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].at("seq"), 8192);
  EXPECT_EQ(rows[1].at("seq"), 1024);
  EXPECT_GT(rows[0].at("makespan_us"), rows[1].at("makespan_us"));
  EXPECT_EQ(rows[0].size(), 2U);
  EXPECT_EQ(rows_of("results out --limit 3").size(), 3U);
  EXPECT_EQ(rows_of("results out").size(), 12U);
}

TEST_F(ResultsTest, AllColumnsMatchTheExportAfterPointAndPlace) {
  ASSERT_EQ(sweep("out").code, 3);
  const std::string printed = run_program("commfuse-sim results out/results.sqlite -o csv").out;
  const std::string exported = contents_of("out/results.csv");
  EXPECT_EQ(printed.substr(0, printed.find('\n')), "point,place," + exported.substr(0, exported.find('\n')));
  EXPECT_NE(printed.find("0,1," + exported.substr(exported.find("\r\n") + 2, 40)), std::string::npos) << printed;
}

TEST_F(ResultsTest, JsonLinesHasOneObjectOfTheJsonPerLine) {
  ASSERT_EQ(sweep("out").code, 3);
  const Outcome lines = run_program("commfuse-sim results out -o jsonl --out rows.jsonl");
  EXPECT_EQ(lines.code, 0) << lines.err;
  json objects = json::array();
  std::ifstream in("rows.jsonl");
  for (std::string line; std::getline(in, line);) {
    objects.push_back(json::parse(line));
  }
  EXPECT_EQ(objects.size(), 12U);
  EXPECT_EQ(objects, rows_of("results out"));
}

TEST_F(ResultsTest, ATableFitsATerminal) {
  ASSERT_EQ(sweep("out").code, 3);
  const Outcome outcome =
      run_program("commfuse-sim results out --where \"point = 4\" --columns ranks,strategy,status,mfu");
  EXPECT_EQ(outcome.out,
            "ranks  strategy  status      mfu\n"
            "   16  serial    infeasible    -\n"
            "   16  commfuse  infeasible    -\n");
}

TEST_F(ResultsTest, BestIsOneRowPerPointOrGroup) {
  ASSERT_EQ(sweep("out").code, 3);
  const json per_point = rows_of("best out");
  ASSERT_EQ(per_point.size(), 4U);
  for (const json& row : per_point) {
    const json rows = rows_of("results out --where \"point = " + row.at("point").dump() + "\"");
    for (const json& other : rows) {
      EXPECT_LE(row.at("makespan_us"), other.at("makespan_us"));
    }
  }
  const json per_model = rows_of("best out --per model --by -mfu");
  ASSERT_EQ(per_model.size(), 1U);
  EXPECT_EQ(per_model[0].at("mfu"),
            rows_of("results out --where \"status = 'ok'\" --sort-by -mfu --limit 1")[0].at("mfu"));
}

TEST_F(ResultsTest, BestSaysIfItTakesTheSmallestOfAColumnWhoseLargestIsBest) {
  ASSERT_EQ(sweep("out").code, 3);
  EXPECT_EQ(run_program("commfuse-sim best out --by mfu -o csv").err,
            "note: --by mfu shows the rows with the smallest mfu; --by -mfu shows those with the largest\n");
  EXPECT_EQ(run_program("commfuse-sim best out --by -mfu -o csv").err, "");
  EXPECT_EQ(run_program("commfuse-sim best out --by p99_us -o csv").err.find("note"), std::string::npos);
}

TEST_F(ResultsTest, ABoundWinsOnlyOnRequest) {
  std::ofstream("b.yaml")
      << "schema: commfuse.sweep/1\nset: {model: llama-3.1-8b, ranks: 2, strategy: {name: [commfuse, "
         "fused_kernel]}}\naxes:\n  - seq: [8K, 16K]\n";
  ASSERT_EQ(run_program("commfuse-sim sweep b.yaml --out out").code, 0);
  const std::string at_one_point = " --where \"seq = 8192\" --columns strategy";
  EXPECT_EQ(rows_of("best out" + at_one_point), json::parse(R"([{"strategy": "commfuse"}])"));
  EXPECT_EQ(rows_of("best out --bounds" + at_one_point), json::parse(R"([{"strategy": "fused_kernel"}])"));
  EXPECT_EQ(rows_of("best out --per strategy" + at_one_point).size(), 2U);
}

TEST_F(ResultsTest, AnIdealScheduleDoesNotWinAgainstImplementations) {
  std::ofstream("b.yaml") << "schema: commfuse.sweep/1\nset: {model: llama-3.1-8b, scope: down, as: flux, strategy: "
                             "{name: [serial, commfuse]}}\naxes:\n  - seq: [8K]\n";
  ASSERT_EQ(run_program("commfuse-sim sweep b.yaml --out out").code, 0);
  EXPECT_NE(rows_of("best out --columns strategy"), json::parse(R"([{"strategy": "commfuse"}])"));
  EXPECT_EQ(rows_of("best out --bounds --columns strategy"), json::parse(R"([{"strategy": "commfuse"}])"));
}

TEST_F(ResultsTest, DiffShowsTheLargestChangesFirst) {
  ASSERT_EQ(sweep("a").code, 3);
  ASSERT_EQ(sweep("b", "--axis seq=1K,8K,16K --interference none").code, 3);
  const Outcome same = run_program("commfuse-sim diff a a");
  EXPECT_EQ(same.code, 0);
  EXPECT_EQ(same.out, "");
  EXPECT_EQ(same.err, "no differences in makespan_us\n");
  const Outcome outcome = run_program("commfuse-sim diff a b -o json");
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  const json rows = json::parse(outcome.out);
  std::size_t only_in_b = 0;
  double last = 1e300;
  for (const json& row : rows) {
    if (row.at("before").is_null()) {
      EXPECT_EQ(row.at("seq"), 16384);
      ++only_in_b;
      continue;
    }
    EXPECT_EQ(row.at("strategy"), "commfuse");  // Serial has nothing that overlaps.
    const double change = std::abs(row.at("ratio").get<double>() - 1);
    EXPECT_DOUBLE_EQ(row.at("ratio"), row.at("after").get<double>() / row.at("before").get<double>());
    EXPECT_LE(change, last);
    last = change;
  }
  EXPECT_EQ(only_in_b, 6U);
  EXPECT_GT(rows.size(), 6U);
}

TEST_F(ResultsTest, DiffShowsRowsWithoutAResultInEitherOrder) {
  ASSERT_EQ(sweep("out").code, 3);
  std::ofstream("all.jsonl") << run_program("commfuse-sim results out -o jsonl").out;
  std::ofstream("ok.jsonl") << run_program("commfuse-sim results out --where \"status = 'ok'\" -o jsonl").out;
  for (const char* files : {"all.jsonl ok.jsonl", "ok.jsonl all.jsonl"}) {
    const Outcome outcome = run_program(std::string("commfuse-sim diff ") + files + " -o json");
    EXPECT_EQ(outcome.code, 4) << outcome.err;
    EXPECT_EQ(json::parse(outcome.out).size(), 4U) << "16 ranks, two sequence lengths, two strategies";
  }
}

TEST_F(ResultsTest, MistakesNameTheFlagAndChangeNothing) {
  ASSERT_EQ(sweep("out").code, 3);
  const std::string before = contents_of("out/results.sqlite");
  const std::string remedy =
      "; write an expression of SQL over columns, as in \"ranks = 8 AND strategy = 'commfuse'\"\n";
  EXPECT_EQ(run_program("commfuse-sim results out --columns modle").err,
            "--columns: unknown column 'modle'; did you mean 'model'?\n");
  EXPECT_EQ(run_program("commfuse-sim results out --columns mfu,seq,mfu -o csv").err,
            "--columns: 'mfu' is given twice; keep one of them\n");
  EXPECT_EQ(run_program("commfuse-sim results out --sort-by -mfuu").err,
            "--sort-by: unknown column 'mfuu'; did you mean 'mfu'?\n");
  EXPECT_EQ(run_program("commfuse-sim results out --where \"rank = 8\"").err, "--where: no such column: rank" + remedy);
  EXPECT_EQ(run_program("commfuse-sim results out --where \"1); DROP TABLE rows; --\"").err,
            "--where: there is more than one statement" + remedy);
  EXPECT_EQ(contents_of("out/results.sqlite"), before);
}

TEST_F(ResultsTest, AnExpressionStaysWithinItsParentheses) {
  ASSERT_EQ(sweep("out").code, 3);
  for (const std::string where : {"1) /*", "1) OR (1", "0) UNION ALL SELECT 1,2 FROM meta /*", "1) LIMIT (1", "1, 2",
                                  "1 FROM meta", "1 /*", "ranks = 8;", "count(*)"}) {
    for (const std::string command : {"results", "best", "best --bounds"}) {
      const Outcome outcome =
          run_program(fmt::format(R"(commfuse-sim {} out --columns point,seq --where "{}")", command, where));
      EXPECT_EQ(outcome.code, 2) << command << ": " << where;
      EXPECT_EQ(outcome.out, "") << command << ": " << where;
      EXPECT_EQ(outcome.err.rfind("--where: ", 0), 0U) << outcome.err;
    }
  }
  EXPECT_EQ(rows_of("results out --where \"(ranks = 2) OR (ranks = 4) -- small ones\"").size(), 8U);
}

TEST_F(ResultsTest, DoubleQuotesNameAColumn) {
  ASSERT_EQ(sweep("out").code, 3);
  EXPECT_EQ(rows_of("results out --where '\"ranks\" = 4'").size(), 4U);
  const Outcome outcome = run_program("commfuse-sim results out --where '\"modle\" = 4'");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err.rfind("--where: no such column: ", 0), 0U) << outcome.err;
}

TEST_F(ResultsTest, ALimitBelow0IsAMistake) {
  ASSERT_EQ(sweep("out").code, 3);
  const Outcome outcome = run_program("commfuse-sim results out --limit -1");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "--limit: Value -1 not in range 0 to 1000000000000; see commfuse-sim results --help\n");
}

TEST_F(ResultsTest, TheBestOfEachPointMayTieAndTheTableSaysSo) {
  ASSERT_EQ(sweep("out").code, 3);
  const std::string sentence = "\n\nCompared by makespan_us alone; commfuse-sim report says which leads are ties.\n";
  EXPECT_TRUE(run_program("commfuse-sim best out").out.ends_with(sentence));
  EXPECT_EQ(run_program("commfuse-sim best out --per ranks").out.find("Compared by"), std::string::npos);
  EXPECT_EQ(run_program("commfuse-sim best out --by -mfu").out.find("Compared by"), std::string::npos);
  EXPECT_EQ(run_program("commfuse-sim best out -o csv").out.find("Compared by"), std::string::npos);
  EXPECT_EQ(run_program("commfuse-sim results out").out.find("Compared by"), std::string::npos);
}

TEST_F(ResultsTest, AnExpressionWithTooLongAValueIsAMistake) {
  ASSERT_EQ(sweep("out").code, 3);
  for (const char* command : {"results", "best"}) {
    const Outcome outcome =
        run_program(std::string("commfuse-sim ") + command + " out --where \"zeroblob(2000000000)\"");
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err.rfind("--where: it produces a value of more than 64 MiB", 0), 0U) << outcome.err;
  }
}

TEST_F(ResultsTest, AFileThatIsNotAStoreIsAUserError) {
  const Outcome absent = run_program("commfuse-sim results absent");
  EXPECT_EQ(absent.code, 2);
  EXPECT_EQ(absent.err, "absent cannot be opened (No such file or directory); check the path\n");
  const Outcome folder = run_program("commfuse-sim best .");
  EXPECT_EQ(folder.code, 2);
  EXPECT_EQ(folder.err, "./results.sqlite cannot be opened (No such file or directory); check the path\n");
  const Outcome text = run_program("commfuse-sim diff a.yaml a.yaml");
  EXPECT_EQ(text.code, 2);
  EXPECT_EQ(text.err, "a.yaml is not a commfuse result store; choose another file or folder\n");
}

TEST_F(ResultsTest, AnEmptyFileContainsNoRowsForEveryCommand) {
  std::ofstream("empty.jsonl") << "";
  std::ofstream("blank.json") << " \n";
  std::ofstream("empty.sqlite") << "";
  for (const std::string command : {"best ", "results ", "diff empty.jsonl ", "report --out a.html ", "plot "}) {
    for (const std::string file : {"empty.jsonl", "blank.json"}) {
      const Outcome outcome = run_program("commfuse-sim " + command + file);
      EXPECT_EQ(outcome.code, 2) << command << file;
      EXPECT_EQ(outcome.err, (command.starts_with("diff") ? "empty.jsonl" : file) +
                                 " contains no rows; write some with commfuse-sim run -o jsonl\n");
    }
  }
  EXPECT_EQ(run_program("commfuse-sim best empty.sqlite").err,
            "empty.sqlite contains no rows; run the sweep that fills it\n");
}

TEST_F(ResultsTest, WholeModelsAreQueriedByTheirOwnColumns) {
  std::ofstream("b.yaml") << "schema: commfuse.sweep/1\nset: {model: llama-3.1-8b, scope: step, ranks: 2, strategy: "
                             "{name: [serial, commfuse]}}\naxes:\n  - batch: [8, 16]\noutputs: [csv]\n";
  ASSERT_NE(run_program("commfuse-sim sweep b.yaml --out out").code, 2);
  const json rows = rows_of("results out --where \"batch = 16\" --columns strategy,time_ms");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_TRUE(rows[0].at("time_ms").is_number());
  EXPECT_EQ(rows_of("best out").size(), 2U);
}

TEST_F(ResultsTest, ATableShowsTheColumnsOfItsConditions) {
  ASSERT_EQ(sweep("out").code, 3);
  const std::string table =
      run_program("commfuse-sim results out --where \"interference = 'static' AND head_us >= 0\" --sort-by -exposed_us")
          .out;
  EXPECT_NE(table.find("interference static"), std::string::npos) << table;
  EXPECT_NE(table.find(" exposed_us "), std::string::npos) << table;
  EXPECT_NE(table.find(" head_us"), std::string::npos) << table;
  const std::string text = run_program("commfuse-sim results out --where \"strategy <> 'exposed_us'\"").out;
  EXPECT_EQ(text.find("exposed_us"), std::string::npos) << "a string names no column";
}

TEST_F(ResultsTest, AKnownColumnThatNoRowHasIsEmpty) {
  const std::string run = "run --scope step --model llama-3.1-8b --ranks 4 --batch 8 --seq 1K --strategy serial";
  std::ofstream("a.jsonl") << run_program("commfuse-sim " + run + " -o jsonl").out;
  std::ofstream("b.yaml") << "schema: commfuse.sweep/1\nset: {model: llama-3.1-8b, scope: step, ranks: 4, strategy: "
                             "{name: [serial]}}\naxes:\n  - batch: [8]\n";
  ASSERT_EQ(run_program("commfuse-sim sweep b.yaml --out out").code, 0);
  for (const std::string file : {"a.jsonl", "out"}) {
    EXPECT_EQ(rows_of("results " + file + " --columns strategy,unmeasured_on --where 'launch IS NULL'"),
              json::parse(R"([{"strategy": "serial", "unmeasured_on": null}])"));
    const Outcome unknown = run_program("commfuse-sim results " + file + " --columns makespan_us");
    EXPECT_EQ(unknown.code, 2) << "a column of layers only";
  }
}

TEST_F(ResultsTest, HintsAndMessagesFitTheQueriedRows) {
  ASSERT_EQ(sweep("out").code, 3);
  EXPECT_EQ(run_program("commfuse-sim best out --where \"ranks = 3\"").err, "no rows; --where matches none\n");
  EXPECT_EQ(run_program("commfuse-sim results out --where \"ranks = 3\"").err, "no rows; --where matches none\n");
  EXPECT_EQ(run_program("commfuse-sim results out --where \"ranks = 2\" --limit 0").err, "");
  EXPECT_EQ(run_program("commfuse-sim best out --where \"ranks = 16\"").err,
            "no row wins: none has a value of makespan_us\n");
  std::ofstream("b.yaml") << "schema: commfuse.sweep/1\nset: {model: llama-3.1-8b, scope: step, ranks: 4, strategy: "
                             "{name: [serial]}}\naxes:\n  - batch: [8]\n";
  ASSERT_EQ(run_program("commfuse-sim sweep b.yaml --out models").code, 0);
  EXPECT_EQ(
      run_program("commfuse-sim results models --where \"ranks = 4\"").err,
      "--where: no such column: ranks; write an expression of SQL over columns, as in \"tensor = 8 AND strategy = "
      "'commfuse'\"\n");
}

TEST_F(ResultsTest, WritesFlagsLikeTheOtherOutputs) {
  std::ofstream("b.yaml") << "schema: commfuse.sweep/1\nset: {model: llama-3.1-8b, scope: step, ranks: 2, strategy: "
                             "{name: [serial]}}\naxes:\n  - batch: [8]\n  - step.dropout: [off, on]\n";
  ASSERT_NE(run_program("commfuse-sim sweep b.yaml --out out").code, 2);
  const std::string show = "commfuse-sim results out --columns strategy,dropout,fits ";
  EXPECT_EQ(run_program(show + "-o json").out,
            "[\n{\"strategy\":\"serial\",\"dropout\":false,\"fits\":false},\n"
            "{\"strategy\":\"serial\",\"dropout\":true,\"fits\":false}\n]\n");
  EXPECT_EQ(run_program(show + "-o jsonl --where dropout").out,
            "{\"strategy\":\"serial\",\"dropout\":true,\"fits\":false}\n");
  EXPECT_EQ(run_program(show + "-o csv").out, "strategy,dropout,fits\r\nserial,false,false\r\nserial,true,false\r\n");
  const std::string whole = contents_of("out/results.json");
  EXPECT_NE(whole.find("\"dropout\":true"), std::string::npos) << whole;
}

TEST_F(ResultsTest, BestSaysWhichPlansDoNotFitInMemory) {
  std::ofstream("b.yaml") << "schema: commfuse.sweep/1\nset: {model: llama-3.1-8b, scope: step, ranks: 2, strategy: "
                             "{name: [serial, commfuse]}}\naxes:\n  - batch: [8, 16]\noutputs: [csv]\n";
  ASSERT_NE(run_program("commfuse-sim sweep b.yaml --out out").code, 2);
  ASSERT_EQ(rows_of("results out --where 'NOT fits'").size(), 4U) << "the state of the optimizer exceeds two GPUs";
  const std::string full = run_program("commfuse-sim best out").out;
  EXPECT_NE(full.find(", fits 0\n"), std::string::npos) << full;
  EXPECT_NE(full.find("\n2 of 2 rows do not fit in memory; --where fits excludes such rows."), std::string::npos)
      << full;
  const std::string roomy = "run --scope step --model llama-3.1-8b --ranks 8 --batch 8 --seq 1K -o jsonl";
  ASSERT_EQ(run_program("commfuse-sim " + roomy + " > roomy.jsonl").code, 0);
  const std::string fitting = run_program("commfuse-sim best roomy.jsonl").out;
  EXPECT_EQ(fitting.find("fit"), std::string::npos) << fitting;
}

/// Returns the command that runs the statements in $SQL with DuckDB's program, its Python module or its Node package,
/// and prints the single value of the last statement. Returns an empty string if none of them is installed.
std::string duckdb() {
  const std::string commands[] = {
      "duckdb -csv -noheader -c \"$SQL\"",
      R"(python3 -c 'import duckdb, os; print(duckdb.connect().execute(os.environ["SQL"]).fetchone()[0])')",
      "NODE_PATH=\"${NODE_PATH:-$(npm root -g)}\" node -e '"
      "const { DuckDBInstance } = require(\"@duckdb/node-api\");"
      "DuckDBInstance.create().then((base) => base.connect()).then((duck) => duck.runAndReadAll(process.env.SQL))"
      ".then((rows) => console.log(rows.getRows()[0][0]), (error) => { console.error(error); process.exit(1); })'"};
  for (const std::string& command : commands) {
    if (run_program("export SQL='SELECT 1'; " + command).out == "1\n") {
      return command;
    }
  }
  return "";
}

/// Returns the SQL that docs/sweeps.md tells people to write after `duckdb -c`.
std::string recipe() {
  const std::string page = contents_of(COMMFUSE_SOURCE_DIR "/docs/sweeps.md");
  const std::string begins = "duckdb -c \"";
  const std::size_t begin = page.find(begins) + begins.size();
  return page.substr(begin, page.find('"', begin) - begin);
}

TEST_F(ResultsTest, DuckDbConvertsTheExportToParquetAsDocumented) {
  const std::string duckdb_command = duckdb();
  if (duckdb_command.empty()) {
    GTEST_SKIP() << "DuckDB is not installed: duckdb, its Python module or Node's @duckdb/node-api";
  }
  ASSERT_EQ(sweep("out/mine").code, 3);
  const std::string query =
      "SELECT concat_ws(chr(44), count(*), max(seq), typeof(max(seq)), typeof(max(mfu)), count(makespan_us), "
      "bool_and(makespan_us > 0)) FROM read_parquet($$mine.parquet$$)";
  std::ofstream("ask.sql") << recipe() << "; " << query;
  const Outcome outcome = run_program("export SQL=\"$(cat ask.sql)\"; " + duckdb_command);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "12,8192,BIGINT,DOUBLE,8,true\n");
}

}  // namespace
}  // namespace commfuse::test
