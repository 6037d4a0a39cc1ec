// SPDX-License-Identifier: Apache-2.0
// Tests that every SQL query of a user ends, and that a value of excessive length is not called a fault of the disk.
#include "sim/sweep/database.h"

#include <gtest/gtest.h>

#include <optional>
#include <string_view>

#include "tests/own_folder.h"

namespace commfuse::test {
namespace {

constexpr std::string_view endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c";

/// Runs a statement to its end and returns its failure; nothing if the statement succeeds.
std::optional<DatabaseError::Kind> failure_of(const Database& database, std::string_view sql) {
  try {
    Statement(database, sql).finish();
  } catch (const DatabaseError& error) {
    return error.kind();
  }
  return std::nullopt;
}

TEST(Database, AnEndlessStatementFailsAtItsStepLimit) {
  const OwnFolder folder;
  const Database database("a.sqlite", Database::Access::write);
  database.allow_steps(1'000'000);
  EXPECT_EQ(failure_of(database, "SELECT 1"), std::nullopt);
  EXPECT_EQ(failure_of(database, endless), DatabaseError::Kind::endless);
}

TEST(Database, ATooLongValueIsNotAFaultOfTheDisk) {
  const OwnFolder folder;
  const Database database("a.sqlite", Database::Access::write);
  EXPECT_EQ(failure_of(database, "SELECT zeroblob(2000000000)"), DatabaseError::Kind::endless);
}

}  // namespace
}  // namespace commfuse::test
