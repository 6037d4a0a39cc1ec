// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/collective.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/validate/reference/matrices.h"

namespace commfuse::validate {
namespace {

using test::matrix;

TEST(Collective, AllGatherStacksAllInputs) {
  const std::array inputs{matrix({{1, 2}}), matrix({{3, 4}}), matrix({{5, 6}})};
  const Matrix<float> gathered = matrix({{1, 2}, {3, 4}, {5, 6}});
  EXPECT_EQ(collective(CollectiveKind::all_gather, inputs), (std::vector{gathered, gathered, gathered}));
}

TEST(Collective, ReduceScatterGivesEachItsBlockOfTheSum) {
  const std::array inputs{matrix({{1}, {2}}), matrix({{10}, {20}})};
  EXPECT_EQ(collective(CollectiveKind::reduce_scatter, inputs), (std::vector{matrix({{11}}), matrix({{22}})}));
}

TEST(Collective, AllReduceGivesAllTheSum) {
  const std::array inputs{matrix({{1, 2}}), matrix({{10, 20}})};
  const Matrix<float> sum = matrix({{11, 22}});
  EXPECT_EQ(collective(CollectiveKind::all_reduce, inputs), (std::vector{sum, sum}));
}

TEST(Collective, AllToAllSendsBlockIToMemberI) {
  const std::array inputs{matrix({{1}, {2}, {3}}), matrix({{11}, {12}, {13}}), matrix({{21}, {22}, {23}})};
  EXPECT_EQ(collective(CollectiveKind::all_to_all, inputs),
            (std::vector{matrix({{1}, {11}, {21}}), matrix({{2}, {12}, {22}}), matrix({{3}, {13}, {23}})}));
}

TEST(Collective, SumsGoInOrderOfCoordinate) {
  const std::array inputs{matrix({{1e8F}}), matrix({{1}}), matrix({{-1e8F}})};
  EXPECT_EQ(collective(CollectiveKind::all_reduce, inputs).front(), matrix({{0}}));
}

}  // namespace
}  // namespace commfuse::validate
