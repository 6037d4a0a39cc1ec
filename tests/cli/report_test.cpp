// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "tests/cli/program.h"
#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

class Report : public testing::Test {
 protected:
  /// Writes three rows of one point, as JSON Lines and as JSON.
  void SetUp() override {
    for (const char* format : {"jsonl", "json"}) {
      const Outcome rows =
          run_program(std::string{"commfuse-sim run --seq 4K --strategy serial,sliced,commfuse -o "} + format);
      ASSERT_EQ(rows.code, 0) << rows.err;
      write(std::string{"rows."} + format, rows.out);
    }
  }
  static void write(const std::string& name, const std::string& text) { std::ofstream(name) << text; }
  /// Returns the first row as a line, with `key` set to `value`.
  static std::string row_with(const std::string& key, const nlohmann::ordered_json& value) {
    std::string text = contents_of("rows.jsonl");
    nlohmann::ordered_json row = nlohmann::ordered_json::parse(text.substr(0, text.find('\n')));
    row[key] = value;
    return row.dump() + "\n";
  }

 private:
  OwnFolder folder_;
};

TEST_F(Report, JsonLinesJsonAndStdinMakeTheSamePage) {
  EXPECT_EQ(run_program("commfuse-sim report rows.jsonl --title T --out a.html").out, "a.html\n");
  EXPECT_EQ(run_program("commfuse-sim report rows.json --title T --out b.html").code, 0);
  EXPECT_EQ(run_program("sh -c 'cat rows.jsonl | commfuse-sim report - --title T --out c.html'").code, 0);
  const std::string page = contents_of("a.html");
  const auto without_command = [](std::string html) {
    const std::size_t at = html.find("<h2 id=\"again\">");
    return html.erase(at, html.find("</pre>", at) - at);
  };
  EXPECT_EQ(without_command(page), without_command(contents_of("b.html")));
  EXPECT_EQ(without_command(page), without_command(contents_of("c.html")));
  EXPECT_NE(page.find("commfuse-sim report rows.jsonl --out report.html"), std::string::npos);
  EXPECT_NE(page.find("<figure data-timeline=\"gantt-1\">"), std::string::npos);
  EXPECT_NE(page.find("<figure data-figure=\"breakdown\">"), std::string::npos);
  EXPECT_NE(page.find("90% interval"), std::string::npos);
}

TEST_F(Report, ThePageShowsTheWholeCommandAsTheShellNeedsIt) {
  write("my rows.jsonl", contents_of("rows.jsonl"));
  EXPECT_EQ(run_program("commfuse-sim report 'my rows.jsonl' --verdict-difference 5% --out a.html").code, 0);
  EXPECT_NE(contents_of("a.html").find(
                "commfuse-sim report &#39;my rows.jsonl&#39; --out report.html --verdict-difference 5%</code>"),
            std::string::npos);
}

TEST_F(Report, AStoreGivesTheSameReportAsItsSweep) {
  write("two.yaml",
        "schema: commfuse.sweep/1\ntitle: \"Two: points\"\nset: {strategy: {name: [serial, commfuse]}}\n"
        "axes: [{seq: [2K, 8K]}]\n");
  const Outcome sweep = run_program("commfuse-sim sweep two.yaml --out out --progress none");
  ASSERT_EQ(sweep.code, 0) << sweep.err;
  ASSERT_EQ(run_program("commfuse-sim report out --out page.html").code, 0);
  const std::string page = contents_of("page.html");
  EXPECT_NE(page.find("<h1>Two: points</h1>"), std::string::npos);
  const std::string report_of_sweep = contents_of("out/report.html");
  const auto figures = [](const std::string& html) {
    return html.substr(html.find("id=\"time\""), html.find("id=\"inputs\"") - html.find("id=\"time\""));
  };
  EXPECT_EQ(figures(page), figures(report_of_sweep));
}

TEST_F(Report, AnUnknownJitterIsRefusedAsByRun) {
  write("settings.yaml", "schema: commfuse.run/1\n");
  for (const std::string name : {"nope", "''", "absent.yaml", "./settings.yaml"}) {
    const Outcome outcome = run_program("commfuse-sim report rows.jsonl --out page.html --jitter " + name);
    EXPECT_EQ(outcome.code, 2) << name;
    EXPECT_EQ(outcome.err, run_program("commfuse-sim run --seq 4K --jitter " + name).err);
    EXPECT_FALSE(std::filesystem::exists("page.html"));
  }
  EXPECT_EQ(run_program("commfuse-sim report rows.jsonl --out page.html --jitter none").code, 0);
}

TEST_F(Report, ATitleIsUtf8) {
  const Outcome outcome = run_program("commfuse-sim report rows.jsonl --title \"$(printf 'Jos\\351')\"");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "--title: the text is not UTF-8; encode it in UTF-8\n");
}

TEST_F(Report, InvalidRowsAreRefusedWithTheirPlaceAndNothingIsWritten) {
  const auto refusal = [&](const std::string& text) {
    write("bad.jsonl", text);
    const Outcome outcome = run_program("commfuse-sim report bad.jsonl --out bad.html");
    EXPECT_EQ(outcome.code, 2) << text;
    EXPECT_FALSE(std::filesystem::exists("bad.html"));
    return outcome.err;
  };
  EXPECT_EQ(refusal("\n{\"a\": 1,\n"),
            "bad.jsonl:2:9: the row does not end on its line; give the store of a sweep, or output of -o json or "
            "jsonl\n");
  EXPECT_EQ(refusal("{\n  \"schema\": \"commfuse.map/1\"\n}\n"),
            "bad.jsonl:1:2: the row does not end on its line; give the store of a sweep, or output of -o json or "
            "jsonl\n");
  EXPECT_EQ(refusal("model,ranks\n"),
            "bad.jsonl:1:1: this is not JSON; give the store of a sweep, or output of -o json or jsonl\n");
  EXPECT_EQ(refusal("{\"schema\": \"commfuse.step/1\"}\n"),
            "bad.jsonl:1: the row has no model; write the results again\n");
  EXPECT_EQ(
      refusal("{\"schema\": \"commfuse.step/2\"}\n"),
      "bad.jsonl:1: this is not a row of commfuse.result/2 but 'commfuse.step/2'; create one by commfuse-sim run -o "
      "jsonl, or by a sweep\n");
  EXPECT_EQ(refusal("{\"schema\": 1}\n"),
            "bad.jsonl:1: this is not a row of commfuse.result/2 but something else; create one by commfuse-sim run -o "
            "jsonl, or by a sweep\n");
  EXPECT_EQ(refusal(row_with("seq", "8K")),
            "bad.jsonl:1: seq is \"8K\", which is not a whole number; write the results again\n");
  EXPECT_EQ(refusal(row_with("strategy", nullptr)), "bad.jsonl:1: the row has no strategy; write the results again\n");
  EXPECT_EQ(refusal(row_with("compute_us", 1.0)),
            "bad.jsonl:1: makespan_us is not the sum of compute, slicing, stretch, local and exposed; write the "
            "results again\n");
  EXPECT_EQ(refusal(row_with("form", "zigzag")),
            "bad.jsonl:1: form is 'zigzag', an unknown value; write the results again\n");
  EXPECT_EQ(refusal(row_with("ranks", -1)),
            "bad.jsonl:1: ranks is -1, which is out of range; write the results again\n");
  EXPECT_EQ(refusal(""), "bad.jsonl contains no rows; write some with commfuse-sim run -o jsonl\n");
  EXPECT_EQ(run_program("commfuse-sim report nothing.jsonl --out x.html").err,
            "nothing.jsonl cannot be read; give the folder of a sweep, its store, JSON or JSON Lines\n");
}

TEST_F(Report, ARowOfManyMegabytesIsRefusedBeforeTheRestIsRead) {
  for (const char* begin : {"", "[{\"a\":\""}) {
    write("long.jsonl", begin + std::string(std::size_t{17} << 20U, 'a'));
    EXPECT_EQ(run_program("commfuse-sim report long.jsonl --out long.html").err,
              "long.jsonl:1: a row takes more than 16 MiB; write the results again\n");
  }
}

TEST_F(Report, ATruncatedListIsReportedWithItsPlace) {
  const auto refusal = [&](const std::string& text) {
    write("bad.json", text);
    return run_program("commfuse-sim report bad.json --out bad.html").err;
  };
  constexpr auto not_json = ": this is not JSON; give the store of a sweep, or output of -o json or jsonl\n";
  EXPECT_EQ(refusal("\n [\n"), std::string("bad.json:3:1") + not_json);
  EXPECT_EQ(refusal("[ x"), std::string("bad.json:1:3") + not_json);
  EXPECT_EQ(refusal("[{\"a\":\n1 2"), std::string("bad.json:2:3") + not_json);
}

TEST_F(Report, AByteOrderMarkBeforeAListOrLinesIsIgnored) {
  const std::string mark = "\xef\xbb\xbf";
  for (const std::string name : {"rows.json", "rows.jsonl"}) {
    ASSERT_EQ(run_program("commfuse-sim report " + name + " --title T --out plain.html").code, 0);
    write(name, mark + contents_of(name));
    const Outcome marked = run_program("commfuse-sim report " + name + " --title T --out marked.html");
    EXPECT_EQ(marked.code, 0) << marked.err;
    EXPECT_EQ(contents_of("marked.html"), contents_of("plain.html"));
  }
  write("bad.json", mark + "[ x");
  EXPECT_EQ(run_program("commfuse-sim report bad.json --out bad.html").err.rfind("bad.json:1:3: ", 0), 0U);
  write("bad.jsonl", mark + "{ x");
  EXPECT_EQ(run_program("commfuse-sim report bad.jsonl --out bad.html").err.rfind("bad.jsonl:1:3: ", 0), 0U);
  write("empty.json", mark);
  EXPECT_EQ(run_program("commfuse-sim report empty.json --out bad.html").err,
            "empty.json contains no rows; write some with commfuse-sim run -o jsonl\n");
}

TEST_F(Report, ReportsRowsThatCannotBeSimulatedAgain) {
  write("gone.jsonl", row_with("hardware", "gone"));
  EXPECT_EQ(run_program("commfuse-sim report gone.jsonl --out gone.html").code, 0);
  const std::string page = contents_of("gone.html");
  EXPECT_NE(page.find("No timeline of ranks 8, seq 4K: "), std::string::npos);
  EXPECT_EQ(page.find("<figure data-timeline"), std::string::npos);
  // Two points with one reason have one note.
  nlohmann::ordered_json longer = nlohmann::ordered_json::parse(row_with("hardware", "gone"));
  longer["seq"] = 8192;
  write("two.jsonl", row_with("hardware", "gone") + longer.dump() + "\n");
  EXPECT_EQ(run_program("commfuse-sim report two.jsonl --out two.html").code, 0);
  const std::string both = contents_of("two.html");
  const std::size_t note = both.find("No timeline of ranks 8, seq 8K and ranks 8, seq 4K: ");
  ASSERT_NE(note, std::string::npos);
  EXPECT_EQ(both.find("No timeline", note + 1), std::string::npos);
}

TEST_F(Report, AMeasuredRecordAppearsOnlyAtItsPoint) {
  ASSERT_EQ(
      run_program("commfuse-validate run --executor cpu --compute emulated --model llama-3.1-8b --hardware h100-sxm "
                  "--ranks 2 --seq 1K --strategy serial,commfuse --iterations 3 --out record.json")
          .code,
      0);
  const Outcome other = run_program("commfuse-sim report rows.jsonl --measured record.json --out x.html");
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(other.err,
            "--measured: record.json has no measurement of these results; give results of the same model, hardware, "
            "bandwidths, ranks, batch and seq\n");
  ASSERT_EQ(run_program("sh -c 'commfuse-sim run --model llama-3.1-8b --ranks 2 --seq 1K --strategy serial,commfuse -o "
                        "jsonl > same.jsonl'")
                .code,
            0);
  EXPECT_EQ(run_program("commfuse-sim report same.jsonl --measured record.json --out same.html").code, 0);
  const std::string page = contents_of("same.html");
  EXPECT_NE(page.find("<h2 id=\"measured\">Predicted against measured</h2>"), std::string::npos);
  EXPECT_NE(page.find(" measured within 10% of the prediction; the median error is "), std::string::npos);
}

TEST_F(Report, AMeasuredRecordIsComparedAtItsOwnBandwidth) {
  ASSERT_EQ(
      run_program("commfuse-validate run --executor cpu --compute emulated --model llama-3.1-8b --hardware h100-sxm "
                  "--ranks 2 --seq 1K --strategy serial --set link_bandwidth=x0.5 --iterations 3 --out record.json")
          .code,
      0);
  const auto is_accepted = [](const std::string& bandwidths) {
    std::ofstream("rows.jsonl") << run_program(
                                       "commfuse-sim run --model llama-3.1-8b --ranks 2 --seq 1K --strategy "
                                       "serial -o jsonl --axis link_bandwidth=" +
                                       bandwidths)
                                       .out;
    return run_program("commfuse-sim report rows.jsonl --measured record.json --out x.html").code == 0;
  };
  EXPECT_TRUE(is_accepted("x1,x0.5"));
  EXPECT_FALSE(is_accepted("x1,x2"));
}

TEST_F(Report, AWrongMeasuredRecordIsNamed) {
  ASSERT_EQ(run_program("commfuse-validate run --executor cpu --compute emulated --model llama-3.1-8b --ranks 2 --seq "
                        "1K --strategy serial --iterations 1 --spans --out record.json")
                .code,
            0);
  ASSERT_EQ(run_program("sh -c 'commfuse-sim run --model llama-3.1-8b --ranks 2 --seq 1K --strategy serial -o jsonl > "
                        "same.jsonl'")
                .code,
            0);
  const auto refusal = [](const std::string& record) {
    write("wrong.json", record);
    const Outcome outcome = run_program("commfuse-sim report same.jsonl --measured wrong.json --out x.html");
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  const auto record = nlohmann::ordered_json::parse(contents_of("record.json"));
  auto wrong = record;
  wrong["settings"]["seq"] = "long";
  EXPECT_EQ(refusal(wrong.dump()),
            "--measured: wrong.json has a setting that cannot be read: --seq: 'long' is not a whole number; write one, "
            "such as 4K\n");
  const std::string other_ops =
      "--measured: wrong.json: serial lacks the spans of some ops; measure again with --spans\n";
  for (const auto& [part, value] : {std::pair(0, 2), std::pair(1, 2'147'483'647)}) {  // a rank, an op
    wrong = record;
    wrong["runs"][0]["spans_ps"][0][part] = value;
    EXPECT_EQ(refusal(wrong.dump()), other_ops);
  }
  wrong = record;
  wrong["runs"][0]["spans_ps"].erase(0);
  EXPECT_EQ(refusal(wrong.dump()), other_ops);
}

TEST_F(Report, ATracedIterationAppearsOnlyAtItsPoint) {
  ASSERT_EQ(run_program("commfuse-validate run --model llama-3.1-8b --ranks 2 --seq 1K --strategy serial,commfuse "
                        "--iterations 1 --spans --out record.json")
                .code,
            0);
  ASSERT_EQ(run_program("sh -c 'commfuse-sim run --model llama-3.1-8b --ranks 2 --axis seq=1K,2K "
                        "--strategy serial,commfuse -o jsonl > two.jsonl'")
                .code,
            0);
  ASSERT_EQ(run_program("commfuse-sim report two.jsonl --measured record.json --out two.html").code, 0);
  // The page has two timelines. The timeline of seq 1K also shows both schedules as measured, and its static drawing
  // labels them.
  const std::string page = contents_of("two.html");
  const auto occurrences = [&](const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = page.find(text); at != std::string::npos; at = page.find(text, at + 1)) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(occurrences("<figure data-timeline"), 2U);
  EXPECT_EQ(occurrences(" as measured, rank "), 2U);
}

TEST_F(Report, ReportsMeasurementsThatNoFitRead) {
  std::string table = "op,ngpus,bytes,time_us\nall_gather,2,1024,-1\n";
  for (const int ranks : {2, 4, 8}) {
    for (std::int64_t bytes = 1024; bytes <= std::int64_t{1} << 30; bytes *= 2) {
      table += fmt::format("all_gather,{},{},{}\n", ranks, bytes, 4.0 * ranks + static_cast<double>(bytes) / 330e3);
    }
  }
  write("many.csv", table);
  write("few.csv", "device,op,ngpus,devices_per_node,bytes,median_us\nbox,send_recv,2,2,1024,9\n");
  ASSERT_EQ(run_program("commfuse-sim report rows.jsonl --fit many.csv few.csv --out fits.html").code, 0);
  const std::string page = contents_of("fits.html");
  EXPECT_NE(page.find("collectives: median error of the fit over "), std::string::npos);
  EXPECT_NE(page.find("Not fitted: many.csv:2: "), std::string::npos);
  EXPECT_NE(page.find("Not fitted: exchanges (few.csv): 1 row, but a fit needs "), std::string::npos);
}

TEST_F(Report, ThePlotListsDrawsAndSavesTheFiguresOfThePage) {
  const Outcome list = run_program("commfuse-sim plot rows.jsonl");
  EXPECT_EQ(list.out.rfind("gantt-1          ", 0), 0U) << list.out;
  EXPECT_NE(list.out.find("\nbreakdown        "), std::string::npos);
  const Outcome drawn = run_program("LC_ALL=C commfuse-sim plot rows.jsonl breakdown");
  EXPECT_NE(drawn.out.find("serial|####"), std::string::npos) << drawn.out;
  EXPECT_NE(run_program("LC_ALL=C.UTF-8 commfuse-sim plot rows.jsonl breakdown").out.find("serial\u2502\u2588"),
            std::string::npos);
  EXPECT_EQ(run_program("commfuse-sim plot rows.jsonl breakdown --out b.svg").code, 0);
  EXPECT_EQ(contents_of("b.svg").rfind("<svg ", 0), 0U);
  EXPECT_EQ(run_program("commfuse-sim plot rows.jsonl breakdown --out b.csv").code, 0);
  EXPECT_EQ(contents_of("b.csv").rfind("schedule,part,time_us\r\nserial,compute,", 0), 0U);
  const Outcome ending = run_program("commfuse-sim plot rows.jsonl breakdown --out b.gif");
  EXPECT_EQ(ending.code, 2);
  EXPECT_EQ(ending.err, "--out: 'b.gif' must end in .svg, .png, .csv or .json; choose one\n");
  const Outcome unknown = run_program("commfuse-sim plot rows.jsonl pie");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.err.rfind("FIGURE: unknown figure 'pie'; known figures: gantt-1, breakdown, ", 0), 0U)
      << unknown.err;
}

TEST_F(Report, ThePlotNamesTheLinkRateOfEveryFigureAndWhatItLeavesOut) {
  const Outcome rows = run_program(
      "commfuse-sim run --axis link_bandwidth=x0.25,x0.5,x1,x2,x4 --axis seq=1K,2K --strategy serial,commfuse -o "
      "jsonl");
  ASSERT_EQ(rows.code, 0) << rows.err;
  write("links.jsonl", rows.out);
  const Outcome list = run_program("commfuse-sim plot links.jsonl");
  EXPECT_EQ(list.out.rfind("saving-1         llama-3.1-70b mlp on h100-sxm, links x0.25, batch 1, bf16:\n", 0), 0U)
      << list.out;
  EXPECT_NE(list.out.find("\n\nMaps of 4 settings of 5, evenly spaced from the largest saving to the smallest.\n"
                          "To draw others, select their rows:\n"
                          "  commfuse-sim results RESULTS --where EXPRESSION -o jsonl | commfuse-sim plot -\n"),
            std::string::npos)
      << list.out;
  const Outcome selected = run_program("commfuse-sim results links.jsonl --where \"link_bandwidth = 'x2'\" -o jsonl");
  write("selected.jsonl", selected.out);
  const Outcome other = run_program("commfuse-sim plot selected.jsonl");
  EXPECT_EQ(other.out.rfind("saving-1         Overlap ", 0), 0U) << other.out;
  EXPECT_EQ(other.out.find("To draw others"), std::string::npos);
}

TEST_F(Report, PngIsMadeByRsvgConvertOrItsAbsenceIsReported) {
  std::filesystem::create_directory("empty");
  const Outcome absent =
      run_program("env PATH=$PWD/empty " COMMFUSE_BIN_DIR "/commfuse-sim plot rows.jsonl breakdown --out b.png");
  EXPECT_EQ(absent.code, 69);
  EXPECT_EQ(
      absent.err,
      "--out: PNG needs rsvg-convert, which is not installed; install it (Debian: librsvg2-bin), or write .svg\n");
  EXPECT_EQ(run_program("TMPDIR=$PWD/absent commfuse-sim plot rows.jsonl breakdown --out b.png").err,
            "--out: PNG needs a folder for temporary files; set TMPDIR to one, or write .svg\n");
  EXPECT_FALSE(std::filesystem::exists("b.png"));
  if (run_program("sh -c 'command -v rsvg-convert'").code != 0) {
    GTEST_SKIP() << "rsvg-convert is not installed";
  }
  EXPECT_EQ(run_program("commfuse-sim plot rows.jsonl breakdown --out b.png").code, 0);
  EXPECT_EQ(contents_of("b.png").substr(1, 3), "PNG");
}

TEST_F(Report, ThePartsOfTheBreakdownAddUpToTheMakespanOfTheRows) {
  ASSERT_EQ(run_program("commfuse-sim plot rows.jsonl breakdown --out b.json").code, 0);
  const auto figure = nlohmann::json::parse(contents_of("b.json"));
  std::istringstream lines(contents_of("rows.jsonl"));
  std::size_t rows = 0;
  for (std::string line; std::getline(lines, line); ++rows) {
    const auto row = nlohmann::json::parse(line);
    long double sum = 0.0L;  // In picoseconds.
    for (const auto& part : figure["data"]["rows"]) {
      const std::string schedule = part[0];
      if (schedule.substr(0, schedule.find(' ')) == row["strategy"].get<std::string>()) {
        sum += std::llround(std::stod(part[2].get<std::string>()) * 1e6);
      }
    }
    EXPECT_EQ(static_cast<long long>(sum), std::llround(row["makespan_us"].get<double>() * 1e6)) << line.substr(0, 300);
  }
  EXPECT_EQ(rows, 3U);
}

TEST_F(Report, RunDrawsInTheTerminalWithPlot) {
  const Outcome plot = run_program("LC_ALL=C commfuse-sim run --seq 4K --strategy serial,commfuse --plot");
  EXPECT_EQ(plot.code, 0);
  EXPECT_NE(plot.out.find("time (us)"), std::string::npos);
  EXPECT_NE(plot.out.find("/ exposed: head,"), std::string::npos);
  const Outcome map = run_program("LC_ALL=C commfuse-sim run --axis seq=1K,8K --strategy serial,commfuse --plot");
  EXPECT_NE(map.out.find("time of the next best strategy / own time"), std::string::npos);
  const Outcome links = run_program(
      "LC_ALL=C commfuse-sim run --axis link_bandwidth=x0.25,x1 --axis seq=1K,8K --strategy serial,commfuse --plot");
  EXPECT_NE(links.out.find("\nlinks x0.25 (the lowest of 2 rates): "), std::string::npos) << links.out;
  for (const char* rate : {", links x0.25", ""}) {
    EXPECT_NE(links.out.find(fmt::format("\nllama-3.1-70b mlp on h100-sxm{}, batch 1, bf16: commfuse is ", rate)),
              std::string::npos)
        << links.out;
  }
  EXPECT_EQ(run_program("commfuse-sim run --scope step --model llama-3.1-8b --batch 8 --seq 8K --plot").err,
            "--plot: not available for scopes step, prefill and decode; remove it\n");
}

}  // namespace
}  // namespace commfuse::test
