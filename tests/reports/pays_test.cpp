// SPDX-License-Identifier: Apache-2.0
#include "reports/pays.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/texts.h"

namespace commfuse::reports {
namespace {

/// Returns a table with one error of serial and two of an overlapped kernel.
TableScore table_with(const PayScore& pays, bool brought_along = false) {
  TableScore score{.table = "x.csv", .kind = "overlap_pairs"};
  score.pays = pays;
  score.parts = {{.name = "serial", .errors = {0.04}}, {.name = "flux", .errors = {0.1, 0.1}}};
  score.brought_along = brought_along;
  return score;
}

constexpr PayScore both{
    .wins = 4, .wins_predicted = 3, .losses = 4, .losses_predicted = 1, .sure = 2, .sure_predicted = 1};

TEST(PaysReport, StatesBothKindsOfPairs) {
  const std::string text = test::in_one_line(pays_table(std::vector{table_with(both)}));
  EXPECT_NE(text.find("The prediction agrees for 3 of 4 wins and 1 of 4 losses: balanced accuracy 50%. Of predictions "
                      "that were at least 90% sure, 1 of 2 came true. Errors of overlapped kernels: median 10.0%, p90 "
                      "10.0% (2 measurements); of serial pairs: median 4.0%, p90 4.0% (1 measurement)."),
            std::string::npos)
      << text;
}

// A prediction that always says "wins" agrees with every measured win, so no balanced accuracy can be stated.
TEST(PaysReport, StatesNoBalancedAccuracyWithoutLosses) {
  const std::vector scores{table_with({.wins = 4, .wins_predicted = 4})};
  const std::string text = test::in_one_line(pays_table(scores));
  EXPECT_NE(text.find("The prediction agrees for 4 of 4 wins; there is no loss to balance it. No prediction was at "
                      "least 90% sure. Errors"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("of 0"), std::string::npos) << text;
  nlohmann::ordered_json object;
  add_pays(object, scores);
  EXPECT_TRUE(object.at("overlap_pays").at("balanced_accuracy").is_null());
}

TEST(PaysReport, NamesASinglePairInTheSingular) {
  const std::vector scores{table_with({.wins = 1, .wins_predicted = 1, .losses = 1})};
  const std::string text = test::in_one_line(pays_table(scores));
  EXPECT_NE(text.find("agrees for 1 of 1 win and 0 of 1 loss: balanced accuracy 50%."), std::string::npos) << text;
}

TEST(PaysReport, CountsTheProjectsTablesApartFromOthers) {
  const TableScore published = table_with({.wins = 9, .wins_predicted = 2, .losses = 1, .losses_predicted = 1}, true);
  const std::string text = test::in_one_line(pays_section(std::vector{table_with(both), published}));
  EXPECT_NE(text.find("Tables that are not part of this project: Pairs"), std::string::npos) << text;
  EXPECT_NE(text.find("agrees for 3 of 4 wins"), std::string::npos) << text;
  EXPECT_NE(text.find("agrees for 2 of 9 wins"), std::string::npos) << text;
  const std::string alone = pays_section(std::vector{published});
  EXPECT_EQ(alone.find("configs/published"), std::string::npos) << alone;
  EXPECT_NE(alone.find("2 of 9 wins"), std::string::npos) << alone;
}

}  // namespace
}  // namespace commfuse::reports
