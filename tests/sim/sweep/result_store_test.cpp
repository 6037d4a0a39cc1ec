// SPDX-License-Identifier: Apache-2.0
// Tests that a store returns its content, or reports that it cannot.
#include "sim/sweep/result_store.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "model/config_error.h"
#include "reports/rows.h"
#include "sim/parallel/run_points.h"
#include "sim/point/grid.h"
#include "sim/step/predict_steps.h"
#include "sim/sweep/store_query.h"
#include "sim/sweep/store_schema.h"
#include "tests/own_folder.h"
#include "tests/sim/grid_of.h"
#include "tests/sim/message_of.h"

namespace commfuse {
namespace {

namespace fs = std::filesystem;

StoreIdentity identity(std::size_t points = 3) {
  return {.settings = "a sweep", .digest = "d1", .model_version = 1, .points = points};
}

/// Returns rows of one point, some with samples, and one that cannot run.
std::vector<ResultRow> some_rows() {
  const Grid grid = test::grid_of({"model=llama-3.1-8b", "jitter=default", "samples=64", "strategy.slices=1024",
                                   "strategy.name=serial,sliced,commfuse"});
  const Library library = library_of(grid);
  return run_points(points_of(grid), library, {}).front();
}

std::vector<StoreRow> stored_rows() {
  std::vector<StoreRow> rows;
  for (const ResultRow& row : some_rows()) {
    rows.push_back(stored(row));
  }
  return rows;
}

void fill(const std::string& path, const std::vector<std::size_t>& points) {
  StoreWriter store(path, identity());
  for (const std::size_t point : points) {
    store.add(point, stored_rows());
  }
  store.commit();
}

template <class Error = ConfigError>
std::string refusal_of_writer(const std::string& path, const StoreIdentity& wanted = identity()) {
  return test::message_of<Error>([&] { StoreWriter store(path, wanted); });
}

template <class Error = ConfigError>
std::string refusal_of_reader(const std::string& path) {
  return test::message_of<Error>([&] {
    StoreReader store(path);
    while (store.next()) {
    }
  });
}

TEST(StoreRow, ALayerReadsBackWithAllThatAReportShows) {
  const std::vector<ResultRow> rows = some_rows();
  for (const ResultRow& row : rows) {
    const ResultRow back = layer_row(stored(row), "store");
    EXPECT_EQ(reports::to_json(std::span(&back, 1)), reports::to_json(std::span(&row, 1)));
    EXPECT_EQ(stored(back), stored(row));
    EXPECT_EQ(back.bound, row.feasible() && row.bound);
    EXPECT_EQ(back.parameters, row.feasible() ? row.parameters : "");
    EXPECT_EQ(back.analysis.critical.busy, row.analysis.critical.busy);
    ASSERT_EQ(back.tails.has_value(), row.tails.has_value());
    if (row.tails) {
      EXPECT_EQ(back.tails->causes.rank_on_path, row.tails->causes.rank_on_path);
      EXPECT_EQ(back.tails->causes.time_on_path, row.tails->causes.time_on_path);
    }
  }
  EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [](const ResultRow& row) { return row.feasible(); }));
  EXPECT_FALSE(std::all_of(rows.begin(), rows.end(), [](const ResultRow& row) { return row.feasible(); }));
}

/// Returns a feasible row with samples, with one value changed.
StoreRow row_with(std::string_view column, const Value& value) {
  StoreRow row;
  for (const ResultRow& candidate : some_rows()) {
    if (candidate.feasible() && candidate.tails) {
      row = stored(candidate);
    }
  }
  const std::span<const StoreColumn> columns = store_columns(StoreKind::layers);
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (columns[i].name == column) {
      row[i] = value;
    }
  }
  return row;
}

TEST(StoreRow, ALayerIsTheSameWhateverWasReadBefore) {
  const std::vector<StoreRow> rows = stored_rows();
  LayerRowReader reader;
  // Every kind of row (with and without a result, samples and options) is read after every other kind.
  for (const StoreRow& before : rows) {
    for (const StoreRow& row : rows) {
      reader.read(before, "store");
      const ResultRow& after_other = reader.read(row, "store");
      const ResultRow fresh = layer_row(row, "store");
      EXPECT_EQ(stored(after_other), row);
      EXPECT_EQ(after_other.parameters, fresh.parameters);
      EXPECT_EQ(after_other.bound, fresh.bound);
      EXPECT_EQ(after_other.options, fresh.options);
      EXPECT_EQ(after_other.relevant, fresh.relevant);
      EXPECT_EQ(after_other.analysis.critical.busy, fresh.analysis.critical.busy);
    }
  }
}

/// Returns rows whose neighbours have equal, different and no values in the columns of each type, and -0 after 0.
std::vector<StoreRow> rows_that_repeat_values() {
  const std::vector<Value> texts{std::string("a"), std::string("a"), Value{}, std::string("a"), std::string("b"), {}};
  const std::vector<Value> numbers{0.0, -0.0, -0.0, Value{}, 1.5, 1.5};
  const std::vector<Value> counts{std::int64_t{1}, Value{}, Value{}, std::int64_t{1}, std::int64_t{1}, std::int64_t{2}};
  const std::span<const StoreColumn> columns = store_columns(StoreKind::layers);
  std::vector<StoreRow> rows(texts.size(), StoreRow(columns.size()));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const bool is_text = columns[i].type == StoreType::word || columns[i].type == StoreType::text;
      rows[row][i] = is_text ? texts[row] : columns[i].type == StoreType::count ? counts[row] : numbers[row];
    }
  }
  return rows;
}

TEST(StoreWriter, WritesValuesThatRepeatThoseOfTheRowBefore) {
  const OwnFolder folder;
  const std::vector<StoreRow> rows = rows_that_repeat_values();
  {
    StoreWriter store("store.sqlite", identity());
    store.add(0, rows);
    store.add(2, rows);
    store.commit();
  }
  StoreReader reader("store.sqlite");
  EXPECT_EQ(reader.next()->rows, rows);
  EXPECT_EQ(reader.next()->rows, rows);
}

TEST(StoreRow, RefusesInvalidValuesAfterValidOnesToo) {
  LayerRowReader reader;
  reader.read(stored_rows().front(), "results.db");
  const StoreRow invalid = row_with("ranks", std::int64_t{-1});
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_NE(test::message_of([&] { reader.read(invalid, "results.db"); }).find("ranks is -1, which is out of range"),
              std::string::npos);
  }
  EXPECT_EQ(stored(reader.read(stored_rows().front(), "results.db")), stored_rows().front());
}

TEST(StoreRow, AWholeModelReadsBackWithItsCellsInOrder) {
  for (const char* framework : {"none", "torchtitan"}) {
    const Grid grid =
        test::grid_of({"model=llama-3.1-8b", "scope=step", "ranks=2", std::string("framework=") + framework});
    const Library library = library_of(grid);
    StepPoints steps(library);
    for (const StepRow& row : steps.rows(grid.settings)) {
      const StepRow back = model_row(stored(row), "store");
      EXPECT_EQ(back.cells, row.cells);
    }
  }
}

TEST(StoreRow, RefusesInvalidValuesWhateverTheirChecksum) {
  const auto message_for = [](std::string_view column, const Value& value) {
    return test::message_of([&] { layer_row(row_with(column, value), "results.db"); });
  };
  EXPECT_EQ(message_for("ranks", std::string("8")),
            "results.db: a row was not written by a sweep (ranks is not a whole number); run the sweep again");
  EXPECT_NE(message_for("dtype", std::string("bf17")).find("(dtype is 'bf17', an unknown value)"), std::string::npos);
  EXPECT_NE(message_for("dtype", {}).find("(the row has no dtype)"), std::string::npos);
  EXPECT_NE(message_for("form", std::string("zigzag")).find("(form is 'zigzag', an unknown value)"), std::string::npos);
  EXPECT_NE(message_for("slices", std::int64_t{1} << 40U).find("(slices is 1099511627776, which is out"),
            std::string::npos);
  EXPECT_NE(message_for("ranks", std::int64_t{0}).find("(ranks is 0, which is out"), std::string::npos);
  EXPECT_NE(message_for("seq", std::int64_t{1} << 62U).find("(seq is 4611686018427387904, which is out"),
            std::string::npos);
  EXPECT_NE(message_for("network_bandwidth", std::string("x")).find("(network_bandwidth is 'x', an unknown value)"),
            std::string::npos);
  EXPECT_NE(message_for("makespan_us", 1e300).find("(makespan_us is 1e+300, which is out of range)"),
            std::string::npos);
  EXPECT_NE(message_for("mfu", 1e9).find("(mfu is 1000000000, which is out of range)"), std::string::npos);
  EXPECT_NE(message_for("mfu_p99", -0.5).find("(mfu_p99 is -0.5, which is out of range)"), std::string::npos);
  EXPECT_NE(message_for("win_probability", 1.5).find("(win_probability is 1.5, which is out of range)"),
            std::string::npos);
  EXPECT_NE(message_for("makespan_error", -1.0).find("(makespan_error is -1, which is out of range)"),
            std::string::npos);
  EXPECT_NE(message_for("makespan_us", 1.0).find("(makespan_us is not the sum of"), std::string::npos);
  EXPECT_NE(message_for("p99_causes", std::string("[")).find("(a cell does not contain a row in JSON)"),
            std::string::npos);
  EXPECT_NE(message_for("p99_causes", 1.0).find("(a cell is not text)"), std::string::npos);
  const std::string causes = R"({"samples": 1, "mean_ps": [0,0,0,0,0,0,0,0,0,0], "on_path": [0,0,0,0],
    "time_on_path_ps": [0,0,0,0], "rank_on_path": [], "rank_time_on_path_ps": []})";
  EXPECT_NE(message_for("p99_causes", causes).find("(p99_causes lacks some ranks)"), std::string::npos)
      << message_for("p99_causes", causes);
  std::string huge = causes;
  huge.replace(huge.find(": 1,"), 4, ": 1e80,");
  EXPECT_NE(message_for("p99_causes", huge).find("(a cell must hold a whole number)"), std::string::npos);
  EXPECT_EQ(message_for("warnings", std::string("<b>\n\t")), "");
  EXPECT_NE(message_for("warnings", std::string("\x1b[31m")).find("(warnings has control characters)"),
            std::string::npos);
  for (const char* name : {"\x1b]0;x\x07", "a\nb", "\u009b31m", "\u202eb"}) {
    EXPECT_NE(message_for("model", std::string(name)).find("(model has control characters)"), std::string::npos);
  }
  EXPECT_NE(message_for("model", std::string("Jos\xe9")).find("(model is not UTF-8)"), std::string::npos);
}

TEST(StoreRow, RefusesInvalidCells) {
  const auto message_for = [&](const Value& cells) {
    return test::message_of([&] { model_row({std::string("ok"), {}, cells}, "results.db"); });
  };
  EXPECT_NE(message_for(std::string("{"))
                .find("results.db: a row was not written by a sweep (a cell does not contain a row in JSON"),
            std::string::npos);
  EXPECT_NE(message_for(std::string("[1]")).find("(a cell does not contain a row in JSON)"), std::string::npos);
  EXPECT_NE(message_for(std::string(R"({"mfu": [1]})")).find("(mfu is [1], which is not a number)"), std::string::npos);
  EXPECT_NE(message_for(std::string(R"({"gpus": 18446744073709551615})"))
                .find("(gpus is 18446744073709551615, which is not a whole number)"),
            std::string::npos);
  EXPECT_NE(message_for({}).find("(a cell is not text)"), std::string::npos);
}

/// Returns the message of `model_row` for the row of a training step with one cell replaced.
std::string refusal_of_step(std::string_view cell, std::string_view forged) {
  const Grid grid = test::grid_of({"model=llama-3.1-8b", "scope=step", "ranks=2", "jitter=default"});
  const Library library = library_of(grid);
  StoreRow row = stored(StepPoints(library).rows(grid.settings).front());
  auto cells = std::get<std::string>(row.back());
  const std::string from = fmt::format("\"{}\":", cell);
  const std::size_t begin = cell.empty() ? 1 : cells.find(from);
  const std::size_t end = cell.empty() ? 1 : cells.find_first_of(",}", begin) + 1;
  EXPECT_NE(begin, std::string::npos) << cell;
  row.back() = cells.replace(begin, end - begin, forged);
  return test::message_of([&] { model_row(row, "results.db"); });
}

TEST(StoreRow, AWholeModelWithoutRequiredColumnsIsRefused) {
  for (const char* name : {"model", "strategy", "gpus", "seq", "zero", "sequence_parallel", "time_ms", "mfu",
                           "compute_ms", "time_p50_ms", "capacity_gb", "activations_gb"}) {
    EXPECT_EQ(
        refusal_of_step(name, ""),
        fmt::format("results.db: a row was not written by a sweep (the row has no {}); run the sweep again", name));
  }
  const auto message_for = [](std::string_view cell, std::string_view value) {
    const std::string text = refusal_of_step(cell, fmt::format("\"{}\":{},", cell, value));
    const std::size_t from = text.find('(') + 1;
    return text.substr(from, text.find(')') - from);
  };
  EXPECT_EQ(message_for("dtype", "true"), "dtype is true, which is not text");
  EXPECT_EQ(message_for("link_bandwidth", "\"xfoo\""), "link_bandwidth is 'xfoo', an unknown value");
  EXPECT_EQ(message_for("tensor", "2.0"), "tensor is 2.0, which is not a whole number");
  EXPECT_EQ(message_for("tensor", "0"), "tensor is 0, which is out of range");
  EXPECT_EQ(message_for("batch", "4611686018427387904"), "batch is 4611686018427387904, which is out of range");
  EXPECT_EQ(message_for("time_ms", "\"5\""), "time_ms is \"5\", which is not a number");
  EXPECT_EQ(message_for("time_ms", "1e30"), "time_ms is 1e+30, which is out of range");
  EXPECT_EQ(message_for("mfu", "1e9"), "mfu is 1000000000, which is out of range");
  EXPECT_EQ(message_for("fits", "2"), "fits is 2, which is not true or false");
  EXPECT_NE(refusal_of_step("", R"("warnings":false,)").find("(warnings is false, which is not text)"),
            std::string::npos);
  EXPECT_NE(refusal_of_step("", R"("reason":false,)").find("(reason is false, which is not text)"), std::string::npos);
  EXPECT_EQ(message_for("hardware", R"("\u001b[31m")"), "hardware has control characters");
  EXPECT_EQ(refusal_of_step("", R"("later":1.0,"=a\u001b":[1],)"), "") << "what a later version adds is ignored";
}

TEST(StoreRow, ReadsItsOwnBytesAndRefusesOthers) {
  const std::vector<StoreRow> rows = stored_rows();
  const std::string bytes = packed(rows);
  EXPECT_EQ(unpacked(bytes), rows);
  EXPECT_EQ(unpacked(""), std::vector<StoreRow>{});
  EXPECT_THROW(unpacked(std::string_view(bytes).substr(0, bytes.size() - 1)), std::runtime_error);
  EXPECT_THROW(unpacked("\xff\xff\xff\xff"), std::runtime_error)
      << "no memory is reserved for values that the text cannot hold";
}

TEST(ResultStore, PointsComeBackInTheirOrderWheneverTheyWereAdded) {
  const OwnFolder folder;
  fill("a.sqlite", {2, 0});
  {
    StoreWriter store("a.sqlite", identity());
    EXPECT_EQ(store.held(), (std::vector<bool>{true, false, true}));
    EXPECT_EQ(store.counts().points, 2U);
    EXPECT_EQ(store.counts().rows, 6U);
    store.add(1, stored_rows());
    store.commit();
    EXPECT_EQ(store.counts().points, 3U);
    EXPECT_EQ(store.counts().rows, 9U);
    EXPECT_EQ(store.counts().infeasible_rows, 3U);
  }
  StoreReader store("a.sqlite");
  EXPECT_EQ(store.counts().points, 3U);
  EXPECT_EQ(store.counts().rows, 9U);
  EXPECT_EQ(store.counts().infeasible_rows, 3U);
  for (std::size_t point = 0; point < 3; ++point) {
    const std::optional<StoredPoint> next = store.next();
    ASSERT_TRUE(next);
    EXPECT_EQ(next->point, point);
    EXPECT_EQ(next->rows, stored_rows());
  }
  EXPECT_FALSE(store.next());
}

TEST(ResultStore, PartsHoldEveryPointOnceInItsOrder) {
  const OwnFolder folder;
  constexpr std::size_t points = 3000;
  const StoreRow row = row_with("batch", std::int64_t{1});
  {
    StoreWriter store("a.sqlite", identity(points));
    for (std::size_t point = 7; point < points; point += 1 + point % 3) {
      store.add(point, {row, row});
    }
    store.commit();
  }
  StoreReader store("a.sqlite");
  std::vector<std::size_t> expected;
  while (const std::optional<StoredPoint> point = store.next()) {
    expected.push_back(point->point);
  }
  for (const std::size_t count : {1, 2, 3, 11, 1000}) {
    const std::vector<StorePart> parts = store.parts(count);
    EXPECT_EQ(parts.size(), std::min<std::size_t>(count, 12));  // A part has at least 256 points.
    std::vector<std::size_t> read;
    for (const StorePart& part : parts) {
      store.restrict_to(part);
      while (const std::optional<StoredPoint> point = store.next()) {
        EXPECT_EQ(point->rows.size(), 2U);
        read.push_back(point->point);
      }
    }
    EXPECT_EQ(read, expected) << count;
  }
}

TEST(ResultStore, HasOnePartIfItHasFewOrNoPoints) {
  const OwnFolder folder;
  { const StoreWriter store("a.sqlite", identity()); }
  EXPECT_EQ(StoreReader("a.sqlite").parts(8).size(), 1U);
  fill("a.sqlite", {2, 0});
  EXPECT_EQ(StoreReader("a.sqlite").parts(8).size(), 1U);
}

TEST(ResultStore, TextWithControlCharactersIsNotShown) {
  const OwnFolder folder;
  {
    StoreWriter store("a.sqlite", identity());
    store.add(0, std::vector<StoreRow>{row_with("model", std::string("\x1b[31m"))});
    store.commit();
  }
  EXPECT_EQ(test::message_of([] { StoreQuery("a.sqlite").run(Query{}, [](std::span<const Value>) {}); }),
            "a.sqlite: '\\x1b[31m' has control characters; run the sweep again");
}

TEST(ResultStore, TextThatIsNotUtf8IsNotShown) {
  const OwnFolder folder;
  {
    StoreWriter store("a.sqlite", identity());
    store.add(0, std::vector<StoreRow>{row_with("model", std::string("Jos\xe9"))});
    store.commit();
  }
  EXPECT_EQ(test::message_of([] { StoreQuery("a.sqlite").run(Query{}, [](std::span<const Value>) {}); }),
            "a.sqlite: 'Jos\xe9' is not UTF-8; run the sweep again");
}

TEST(ResultStore, DropsUncommittedRows) {
  const OwnFolder folder;
  fill("a.sqlite", {0});
  {
    StoreWriter store("a.sqlite", identity());
    store.add(1, stored_rows());
  }
  EXPECT_EQ(StoreReader("a.sqlite").counts().points, 1U);
}

TEST(ResultStore, RefusesResultsOfAnotherSweep) {
  const OwnFolder folder;
  fill("a.sqlite", {0});
  const std::string end = "; choose another folder, or add --force to replace them";
  StoreIdentity other = identity();
  other.model_version = 2;
  EXPECT_EQ(refusal_of_writer("a.sqlite", other),
            "a.sqlite holds results of model version 1, and this program has 2" + end);
  other = identity();
  other.settings = "another sweep";
  EXPECT_EQ(refusal_of_writer("a.sqlite", other), "a.sqlite holds the results of another sweep" + end);
  other = identity();
  other.digest = "d2";
  EXPECT_EQ(
      refusal_of_writer("a.sqlite", other),
      "a.sqlite holds results of other input: a model, machine or other file of the sweep has changed, or its 'all' "
      "now selects other names" +
          end);
  other = identity();
  other.shard = {2, 7};
  EXPECT_EQ(refusal_of_writer("a.sqlite", other), "a.sqlite holds shard 1-of-1 of this sweep" + end);
}

TEST(ResultStore, RefusesASecondWriter) {
  const OwnFolder folder;
  StoreWriter first("a.sqlite", identity());
  const std::string sentence = "a.sqlite is in use by another process; wait until it ends, or choose another folder";
  EXPECT_EQ(refusal_of_writer<DatabaseError>("a.sqlite"), sentence);
}

TEST(ResultStore, DoesNotTouchFilesThatAreNotStores) {
  const OwnFolder folder;
  std::ofstream("text.sqlite") << std::string(5000, 'x');
  EXPECT_EQ(refusal_of_writer("text.sqlite"),
            "text.sqlite is not a commfuse result store; choose another file or folder");
  {
    Database foreign("foreign.sqlite", Database::Access::write);
    foreign.run("CREATE TABLE recipes(name TEXT)");
  }
  const std::string sentence =
      "foreign.sqlite is a database, but not a commfuse result store; choose another file or folder";
  EXPECT_EQ(refusal_of_writer("foreign.sqlite"), sentence);
  EXPECT_EQ(refusal_of_reader("foreign.sqlite"), sentence);
  EXPECT_EQ(refusal_of_reader("absent.sqlite"),
            "absent.sqlite cannot be opened (No such file or directory); check the path");
  EXPECT_EQ(refusal_of_reader("/dev/zero"), "/dev/zero is not a regular file; choose another file or folder");
  EXPECT_FALSE(fs::exists("absent.sqlite"));
}

TEST(ResultStore, RefusesAStoreOfANewerProgram) {
  const OwnFolder folder;
  fill("a.sqlite", {0});
  {
    Database database("a.sqlite", Database::Access::write);
    database.run("PRAGMA user_version = 99");
  }
  EXPECT_EQ(refusal_of_reader("a.sqlite"),
            "a.sqlite is a store of version 99, written by a newer commfuse; this version reads up to 2");
}

TEST(ResultStore, UpgradesAStoreOfVersion1AndKeepsItsRows) {
  const OwnFolder folder;
  fill("a.sqlite", {0});
  {
    Database database("a.sqlite", Database::Access::write);  // A store of version 1 looks like this.
    database.run("DROP TABLE sessions; PRAGMA user_version = 1");
  }
  EXPECT_EQ(StoreReader("a.sqlite").counts().points, 1U);
  fill("a.sqlite", {1});
  StoreReader store("a.sqlite");
  EXPECT_EQ(store.counts().points, 2U);
  EXPECT_EQ(store.next()->rows, stored_rows());
  Database database("a.sqlite", Database::Access::read);
  Statement version(database, "PRAGMA user_version");
  ASSERT_TRUE(version.step());
  EXPECT_EQ(version.whole(0), store_version);
}

TEST(ResultStore, DetectsAChangedValueByItsChecksum) {
  const OwnFolder folder;
  const char* changes[] = {"UPDATE rows SET makespan_us = makespan_us + 1 WHERE reason IS NULL",
                           "UPDATE texts SET text = 'llama' WHERE text = 'llama-3.1-8b'",
                           "UPDATE rows SET id = 4096 + id"};
  for (const char* change : changes) {
    fs::remove("a.sqlite");
    fill("a.sqlite", {0});
    {
      Database database("a.sqlite", Database::Access::write);
      database.run(change);
    }
    const std::string sentence = refusal_of_reader<DamagedDatabase>("a.sqlite");
    EXPECT_NE(sentence.find("a.sqlite is damaged (the row of point "), std::string::npos) << change << sentence;
    EXPECT_EQ(test::message_of<DamagedDatabase>([] { StoreQuery("a.sqlite", Verify::rows); }), sentence);
    EXPECT_EQ(test::message_of<std::exception>([] { StoreQuery("a.sqlite"); }), "");
  }
}

TEST(ResultStore, ReportsAMissingTextWhenItIsRead) {
  const OwnFolder folder;
  fill("a.sqlite", {0});
  Database("a.sqlite", Database::Access::write).run("DELETE FROM texts WHERE text = 'llama-3.1-8b'");
  const auto refusal_of_column = [](const char* column) {
    return test::message_of<DamagedDatabase>(
        [&] { StoreQuery("a.sqlite").run(Query{.columns = {column}}, [](std::span<const Value>) {}); });
  };
  EXPECT_NE(refusal_of_column("model").find("a.sqlite is damaged (it lacks text "), std::string::npos)
      << refusal_of_column("model");
  EXPECT_EQ(refusal_of_column("strategy"), "");
}

/// Writes a store whose rows differ in a few columns, each of which has few values.
void fill_at_random(const std::string& path, std::size_t points, std::mt19937& dice) {
  const auto columns = store_columns(StoreKind::layers);
  const auto column_index = [&](std::string_view name) {
    return std::ranges::find(columns, name, &StoreColumn::name) - columns.begin();
  };
  const auto one_of = [&](const std::vector<Value>& values) { return values[dice() % values.size()]; };
  const StoreRow row = row_with("batch", std::int64_t{1});
  StoreWriter store(path, identity(points));
  for (std::size_t point = 0; point < points; ++point) {
    std::vector<StoreRow> rows(1 + dice() % 4, row);
    for (StoreRow& values : rows) {
      values[static_cast<std::size_t>(column_index("makespan_us"))] = one_of({1.5, 2.0, 3.25, Value{}});
      values[static_cast<std::size_t>(column_index("win_probability"))] = one_of({0.0, 1.0, Value{}});
      values[static_cast<std::size_t>(column_index("seq"))] = one_of({std::int64_t{1024}, std::int64_t{2048}});
      values[static_cast<std::size_t>(column_index("strategy"))] =
          one_of({std::string("serial"), std::string("commfuse"), std::string("async_tp")});
    }
    store.add(point, rows);
  }
  store.commit();
}

std::vector<std::vector<Value>> rows_of(const auto& query, const StoreQuery& store) {
  std::vector<std::vector<Value>> rows;
  store.run(query, [&](std::span<const Value> row) { rows.emplace_back(row.begin(), row.end()); });
  return rows;
}

TEST(ResultStore, FindsTheSameBestOfEachGroupAsAFullScan) {
  std::mt19937 dice(20261126);
  for (int round = 0; round < 20; ++round) {
    const OwnFolder folder;
    fill_at_random("a.sqlite", round == 0 ? 700 : 12, dice);  // The larger store is queried in parts.
    const StoreQuery store("a.sqlite");
    const auto column_index = [&](std::string_view name) {
      return static_cast<std::size_t>(std::ranges::find(store.columns(), name) - store.columns().begin());
    };
    for (const std::string by : {"makespan_us", "win_probability", "strategy", "point", "warnings"}) {
      for (const std::vector<std::string>& per : {std::vector<std::string>{},
                                                  {"seq"},
                                                  {"strategy", "makespan_us"},
                                                  {"point"},
                                                  {"model", "win_probability"}}) {
        for (const bool descending : {false, true}) {
          std::map<std::vector<Value>, std::vector<Value>> best;
          for (const std::vector<Value>& row : rows_of(Query{}, store)) {
            std::vector<Value> group;
            for (const std::string& name : per) {
              group.push_back(row[column_index(name)]);
            }
            const Value& value = row[column_index(by)];
            if (std::holds_alternative<std::monostate>(value)) {
              continue;
            }
            const auto [entry, is_new] = best.try_emplace(group, row);
            const Value& best_value = entry->second[column_index(by)];
            if (!is_new && (descending ? best_value < value : value < best_value)) {
              entry->second = row;
            }
          }
          std::vector<std::vector<Value>> expected;
          for (const auto& [group, row] : best) {
            expected.push_back(row);
          }
          std::ranges::sort(expected);  // The first columns are the point and the place of the row.
          const BestQuery query{.by = (descending ? "-" : "") + by, .per = per};
          EXPECT_EQ(rows_of(query, store), expected) << by << " " << descending << " " << round;
          BestQuery sorted = query;
          sorted.query.sort_by = {"-makespan_us", "strategy"};
          sorted.query.limit = 3;
          std::ranges::stable_sort(expected, [&](const auto& a, const auto& b) {
            const auto& [time_a, time_b] = std::tie(a[column_index("makespan_us")], b[column_index("makespan_us")]);
            return time_a != time_b ? time_b < time_a : a[column_index("strategy")] < b[column_index("strategy")];
          });
          expected.resize(std::min<std::size_t>(expected.size(), 3));
          EXPECT_EQ(rows_of(sorted, store), expected) << by << " " << descending << " " << round;
        }
      }
    }
  }
}

TEST(ResultStore, RefusesAForeignSchemaAndKeepsItsRows) {
  const OwnFolder folder;
  const char* changes[] = {
      "CREATE TRIGGER t AFTER INSERT ON sessions BEGIN DELETE FROM rows; END",
      "DROP VIEW results; CREATE VIEW results AS SELECT id AS point, 0 AS place, 1.0 AS mfu FROM rows",
      "DROP TABLE meta; CREATE VIEW meta AS SELECT 'kind' AS name, hex(zeroblob(1000)) AS value",
      "DROP TABLE texts; CREATE VIEW texts AS SELECT 1 AS id, hex(zeroblob(1000)) AS text",
      "CREATE INDEX i ON rows(hex(model))",
      "CREATE TABLE recipes(name TEXT)",
      "DROP TABLE sessions",
      "DROP TABLE sessions; CREATE TABLE sessions(id INTEGER PRIMARY KEY, started, points, seconds)",
      "PRAGMA user_version = 1",
      "PRAGMA user_version = -1"};
  fill("sound.sqlite", {0});
  for (const char* change : changes) {
    fs::copy_file("sound.sqlite", "a.sqlite", fs::copy_options::overwrite_existing);
    {
      Database database("a.sqlite", Database::Access::write);
      database.run(fmt::format("PRAGMA synchronous = OFF; BEGIN; {}; COMMIT", change));
    }
    const std::string sentence =
        "a.sqlite has unexpected tables or views and was not written by this program; restore a copy, or remove the "
        "file and run the sweep again";
    EXPECT_EQ(refusal_of_reader("a.sqlite"), sentence) << change;
    EXPECT_EQ(refusal_of_writer("a.sqlite"), sentence) << change;
    Database database("a.sqlite", Database::Access::read);
    Statement rows(database, "SELECT count(*) FROM rows");
    EXPECT_TRUE(rows.step() && rows.whole(0) > 0) << change;
  }
}

/// Writes a store of one point as another version of the program would: without the column `lacks`, and with two
/// columns that this version does not know.
void fill_by_another_version(const std::string& path, std::string_view lacks, const std::vector<StoreRow>& rows) {
  std::vector<HeldColumn> columns = own_columns(StoreKind::layers);
  const auto missing_index = std::ranges::find(columns, lacks, &HeldColumn::name) - columns.begin();
  columns.erase(columns.begin() + missing_index);
  columns.insert(columns.begin() + 2, {"later", StoreType::word});
  columns.push_back({"latest_us", StoreType::number});
  Database database(path, Database::Access::write);
  database.run("BEGIN");
  migrate(database, columns, 0);
  database.run(
      "INSERT INTO meta VALUES('kind', 'layers'), ('settings', 'a sweep'), ('config_sha256', 'd1'), "
      "('model_version', '1'), ('points', '3'), ('shard', '1'), ('shards', '1')");
  std::map<std::string, std::int64_t> words;
  std::string marks;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    marks += ", ?";
  }
  for (std::size_t at = 0; at < rows.size(); ++at) {
    StoreRow row = rows[at];
    row.erase(row.begin() + missing_index);
    row.insert(row.begin() + 2, Value{std::string("later")});
    row.emplace_back(2.5);
    Statement insert(database, "INSERT INTO rows VALUES(?, ?" + marks + ")");
    insert.bind(1, static_cast<std::int64_t>(at));
    insert.bind(2, std::int64_t{checksum_of(static_cast<std::int64_t>(at), row)});
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto parameter = static_cast<int>(i) + 3;
      if (const auto* text = std::get_if<std::string>(&row[i]); text != nullptr && columns[i].type == StoreType::word) {
        insert.bind(parameter, words.try_emplace(*text, std::ssize(words) + 1).first->second);
      } else if (text != nullptr) {
        insert.bind(parameter, std::string_view(*text));
      } else if (const auto* count = std::get_if<std::int64_t>(&row[i])) {
        insert.bind(parameter, *count);
      } else if (const auto* number = std::get_if<double>(&row[i])) {
        insert.bind(parameter, *number);
      }
    }
    insert.finish();
  }
  for (const auto& [text, id] : words) {
    Statement insert(database, "INSERT INTO texts VALUES(?, ?)");
    insert.bind(1, id);
    insert.bind(2, std::string_view(text));
    insert.finish();
  }
  database.run("COMMIT");
}

TEST(ResultStore, ReadsTheKnownColumnsOfOtherVersions) {
  const OwnFolder folder;
  const std::vector<StoreRow> rows = stored_rows();
  const auto columns = store_columns(StoreKind::layers);
  for (const std::string_view lacks : {"warnings", "win_probability", "regather"}) {
    const std::string path = std::string(lacks) + ".sqlite";
    fill_by_another_version(path, lacks, rows);
    StoreReader reader(path);
    const std::optional<StoredPoint> point = reader.next();
    ASSERT_TRUE(point && point->rows.size() == rows.size());
    for (std::size_t at = 0; at < rows.size(); ++at) {
      for (std::size_t i = 0; i < columns.size(); ++i) {
        EXPECT_EQ(point->rows[at][i], columns[i].name == lacks ? Value{} : rows[at][i]) << columns[i].name;
      }
      EXPECT_EQ(layer_row(point->rows[at], path).strategy, layer_row(rows[at], path).strategy);
    }
    std::vector<std::string> names = StoreQuery(path).columns();
    EXPECT_EQ(names[4], "later");
    EXPECT_EQ(std::ranges::count(names, lacks), 0);
  }
}

// SQLite reads a quoted name that is not a column as text.
TEST(ResultStore, ComparesStoresOfTwoVersionsByTheirCommonColumns) {
  const OwnFolder folder;
  fill("a.sqlite", {0});
  fill_by_another_version("b.sqlite", "regather", stored_rows());
  fill_by_another_version("c.sqlite", "mfu", stored_rows());
  std::size_t differences = 0;
  const TakeRow take = [&](const auto&) { ++differences; };
  StoreQuery("a.sqlite").differences(StoreQuery("b.sqlite"), "makespan_us", take);
  EXPECT_EQ(differences, 0U);
  EXPECT_EQ(test::message_of([&] { StoreQuery("a.sqlite").differences(StoreQuery("c.sqlite"), "mfu", take); }),
            "--by: c.sqlite has no column 'mfu'; choose another column");
}

TEST(ResultStore, AddsNoRowsToColumnsOfAnotherVersion) {
  const OwnFolder folder;
  fill_by_another_version("a.sqlite", "warnings", stored_rows());
  EXPECT_EQ(refusal_of_writer("a.sqlite"),
            "a.sqlite has the columns of another version of commfuse; choose another folder, or add --force to replace "
            "its results");
}

TEST(ResultStore, RefusesRowsWithoutAColumnThatEveryVersionHas) {
  const OwnFolder folder;
  fill_by_another_version("a.sqlite", "strategy", stored_rows());
  EXPECT_NE(refusal_of_reader("a.sqlite").find("was not written by this program"), std::string::npos);
}

TEST(ResultStore, TablesOfAnotherKindThanStatedAreDamage) {
  const OwnFolder folder;
  fill("a.sqlite", {0});
  {
    Database database("a.sqlite", Database::Access::write);
    database.run("UPDATE meta SET value = 'models' WHERE name = 'kind'");
  }
  EXPECT_NE(refusal_of_reader<DamagedDatabase>("a.sqlite")
                .find("a.sqlite is damaged (its tables hold layers, which contradicts its metadata)"),
            std::string::npos);
}

TEST(ResultStore, ACellNameThatWouldBeSqlIsRefused) {
  const OwnFolder folder;
  StoreIdentity models = identity();
  models.kind = StoreKind::models;
  {
    StoreWriter store("a.sqlite", models);
    store.add(0, {{std::string("ok"), {}, std::string(R"({"model": "m", "a' || hex(zeroblob(9)) || '": 1})")}});
    store.commit();
  }
  EXPECT_EQ(test::message_of([] { const StoreQuery query("a.sqlite"); }),
            "a.sqlite: a row was not written by a sweep ('a' || hex(zeroblob(9)) || '' names no column); run the sweep "
            "again");
}

TEST(ResultStore, AJournalThatNamesAnotherFileToRemoveIsRefused) {
  const OwnFolder folder;
  fill("a.sqlite", {0});
  std::ofstream("precious.txt") << "kept";
  const std::string magic = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";
  const std::string name = "precious.txt";
  const auto number = [](std::size_t value) {
    std::string four;
    for (const int shift : {24, 16, 8, 0}) {
      four += static_cast<char>(value >> static_cast<unsigned>(shift) & 0xffU);
    }
    return four;
  };
  std::size_t sum = 0;
  for (const char c : name) {
    sum += static_cast<unsigned char>(c);
  }
  // This journal has no pages and belongs to a database of one page, with sectors of 512 and pages of 4096 bytes. It
  // names a super-journal.
  std::string journal = magic + number(0) + number(1) + number(1) + number(512) + number(4096);
  journal.resize(512, '\0');
  std::ofstream("a.sqlite-journal", std::ios::binary)
      << journal << number(0x40000000 / 4096 + 1) << name << number(name.size()) << number(sum) << magic;
  EXPECT_EQ(refusal_of_reader("a.sqlite"),
            "a.sqlite-journal belongs to several databases, so no sweep wrote it; remove it");
  EXPECT_TRUE(fs::exists("precious.txt"));
}

TEST(ResultStore, DoesNotWaitForAPipeInPlaceOfAJournal) {
  const OwnFolder folder;
  fill("a.sqlite", {0});
  for (const char* name : {"a.sqlite-journal", "a.sqlite-wal"}) {
    ASSERT_EQ(mkfifo(name, 0600), 0);
    EXPECT_EQ(refusal_of_reader("a.sqlite"),
              std::string(name) + " is not a regular file, so no sweep wrote it; remove it");
    fs::remove(name);
  }
}

TEST(ResultStore, ATriggerNeverRuns) {
  const OwnFolder folder;
  fill("a.sqlite", {0});
  Database database("a.sqlite", Database::Access::write);
  database.run("CREATE TRIGGER t AFTER INSERT ON sessions BEGIN DELETE FROM rows; END");
  database.run("INSERT INTO sessions(started, points) VALUES(0, 0)");
  Statement rows(database, "SELECT count(*) FROM rows");
  ASSERT_TRUE(rows.step());
  EXPECT_EQ(rows.whole(0), static_cast<std::int64_t>(some_rows().size()));
}

TEST(ResultStore, RefusesAnImpossibleShardOrNumberOfPoints) {
  const OwnFolder folder;
  const std::pair<const char*, const char*> changes[] = {
      {"shards", "0"}, {"shards", "100001"}, {"shard", "0"}, {"shard", "2"}, {"points", "9223372036854775807"}};
  for (const auto& [name, value] : changes) {
    fs::remove("a.sqlite");
    fill("a.sqlite", {0});
    {
      Database database("a.sqlite", Database::Access::write);
      database.run(fmt::format("UPDATE meta SET value = '{}' WHERE name = '{}'", value, name));
    }
    const std::string sentence = refusal_of_reader<DamagedDatabase>("a.sqlite");
    EXPECT_NE(sentence.find(fmt::format("a.sqlite is damaged (its {} is not a number from ", name)), std::string::npos)
        << value << sentence;
  }
}

TEST(ResultStore, IgnoresAClockThatGoesBack) {
  const OwnFolder folder;
  fill("a.sqlite", {0});
  {
    Database database("a.sqlite", Database::Access::write);  // The next session begins a century earlier.
    database.run("UPDATE sessions SET started = started + 3155760000");
  }
  fill("a.sqlite", {1, 2});
  StoreReader store("a.sqlite");
  for (std::size_t point = 0; point < 3; ++point) {
    const std::optional<StoredPoint> next = store.next();
    ASSERT_TRUE(next);
    EXPECT_EQ(next->point, point);
    EXPECT_EQ(next->rows, stored_rows());
  }
}

TEST(ResultStore, DetectsALostRow) {
  const OwnFolder folder;
  fill("a.sqlite", {0});
  {
    Database database("a.sqlite", Database::Access::write);
    database.run("DELETE FROM rows WHERE id = 0");
  }
  EXPECT_NE(refusal_of_reader<DamagedDatabase>("a.sqlite").find("a row of point 0 is missing"), std::string::npos);
}

TEST(ResultStore, RefusesATruncatedFile) {
  const OwnFolder folder;
  fill("a.sqlite", {0, 1, 2});
  fs::resize_file("a.sqlite", fs::file_size("a.sqlite") / 2);
  EXPECT_NE(refusal_of_writer<DamagedDatabase>("a.sqlite").find("a.sqlite is damaged"), std::string::npos);
  EXPECT_NE(refusal_of_reader<DamagedDatabase>("a.sqlite").find("a.sqlite is damaged"), std::string::npos);
}

/// During the lifetime of this object, limits every file of this process to `bytes` bytes: writes fail, as on a full
/// disk.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit before_{};
};

TEST(ResultStore, ReportsAFullDiskAndKeepsCommittedRows) {
  const OwnFolder folder;
  const std::vector<StoreRow> rows = stored_rows();
  std::size_t committed = 0;
  const std::string sentence = test::message_of<DatabaseError>([&] {
    StoreWriter store("a.sqlite", identity(10'000));
    const SmallDisk disk(200'000);
    for (std::size_t point = 0; point < 10'000; ++point) {
      store.add(point, rows);
      if (point % 10 == 9) {
        store.commit();
        committed = point + 1;
      }
    }
  });
  EXPECT_NE(sentence.find("a.sqlite could not be written: "), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("free some space and run the same command again"), std::string::npos) << sentence;
  EXPECT_GT(committed, 10U);
  StoreWriter reopened("a.sqlite", identity(10'000));
  const std::vector<bool> held = reopened.held();
  EXPECT_EQ(std::count(held.begin(), held.end(), true), static_cast<std::ptrdiff_t>(committed));
  reopened.add(committed, rows);
  reopened.commit();
}

}  // namespace
}  // namespace commfuse
