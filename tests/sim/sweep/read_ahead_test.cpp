// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/read_ahead.h"

#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/sweep/database.h"
#include "sim/sweep/store_row.h"
#include "tests/own_folder.h"

namespace commfuse {
namespace {

constexpr std::size_t points = 3000;  // several batches

/// Fills a store with points of one to three rows.
void fill(const char* path) {
  StoreWriter store(path, {.settings = "a sweep", .digest = "d1", .model_version = 1, .points = points});
  for (std::size_t point = 0; point < points; ++point) {
    std::vector<StoreRow> rows;
    for (std::size_t place = 0; place <= point % 3; ++place) {
      ResultRow row;
      row.model = point < points / 2 ? "first" : "second";
      row.seq = static_cast<std::int64_t>(10 * point + place);
      rows.push_back(stored(row));
    }
    store.add(point, rows);
  }
  store.commit();
}

std::vector<StoreRow> read_all(const char* path) {
  StoreReader store(path);
  std::vector<StoreRow> rows;
  read_ahead(store, [&](const StoreRow& row) { rows.push_back(row); });
  return rows;
}

TEST(ReadAhead, GivesAllRowsInTheirOrder) {
  const OwnFolder folder;
  fill("a.sqlite");
  std::vector<StoreRow> wanted;
  StoreReader store("a.sqlite");
  while (const auto point = store.next()) {
    wanted.insert(wanted.end(), point->rows.begin(), point->rows.end());
  }
  EXPECT_EQ(wanted.size(), 2 * points);
  EXPECT_EQ(read_all("a.sqlite"), wanted);
  read_ahead(store, [](const StoreRow&) { FAIL() << "no row is left"; });
}

TEST(ReadAhead, ReportsDamageAndErrorsOfItsCaller) {
  const OwnFolder folder;
  fill("a.sqlite");
  {
    StoreReader store("a.sqlite");
    const auto refuse = [](const StoreRow&) { throw std::runtime_error("enough"); };
    EXPECT_THROW(read_ahead(store, refuse), std::runtime_error);
  }
  Database("a.sqlite", Database::Access::write).run("UPDATE rows SET seq = 7 WHERE id = 2500 * 4096");
  std::string sentence;
  try {
    read_all("a.sqlite");
  } catch (const std::exception& error) {
    sentence = error.what();
  }
  EXPECT_NE(sentence.find("a.sqlite is damaged (the row of point 2500 "), std::string::npos) << sentence;
}

}  // namespace
}  // namespace commfuse
