// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/memory.h"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string_view>

namespace commfuse {
namespace {

std::string warning_of(double needed) {
  return memory_warning(
      {.needed_gb = needed, .capacity_gb = 80.0, .hardware = "h100-sxm", .remedy = "use more ranks or fewer tokens"});
}

TEST(MemoryWarning, HasBothNumbersAndARemedy) {
  EXPECT_EQ(
      warning_of(130.254),
      "out of memory: a GPU needs 130.25 GB, but h100-sxm has 80.00 GB per GPU, so use more ranks or fewer tokens");
  EXPECT_TRUE(is_memory_warning(warning_of(130.0)));
  EXPECT_FALSE(is_memory_warning("m is 131072, and the fit saw 1 to 65536"));
}

TEST(MemoryWarning, ItsRemediesAreOneSentence) {
  constexpr std::array<std::string_view, 3> names{"more GPUs", "ZeRO", "a smaller micro-batch"};
  EXPECT_EQ(remedy_in_words(std::span(names).first(1)), "use more GPUs");
  EXPECT_EQ(remedy_in_words(std::span(names).first(2)), "use more GPUs or ZeRO");
  EXPECT_EQ(remedy_in_words(names), "use more GPUs, ZeRO or a smaller micro-batch");
}

TEST(LargestNeed, IsTheNeedOfASingleRow) {
  LargestNeed need;
  need.add(130.254, warning_of(130.254));
  EXPECT_EQ(
      need.sentence(),
      "Out of memory: a GPU needs 130.25 GB, but h100-sxm has 80.00 GB per GPU, so use more ranks or fewer tokens.");
}

TEST(LargestNeed, CountsTheRowsThatDoNotFitAndTakesTheLargest) {
  LargestNeed need;
  need.add(70.0, std::nullopt);
  need.add(90.5, warning_of(90.5));
  need.add(101.0, warning_of(101.0));
  need.add(95.0, warning_of(95.0));
  EXPECT_EQ(need.sentence(),
            "Out of memory in 3 of 4 rows: a GPU needs up to 101.00 GB, but h100-sxm has 80.00 GB per GPU, so use more "
            "ranks or fewer tokens.");
}

TEST(LargestNeed, AcceptsAnyWarningOfAFile) {
  LargestNeed need;
  need.add(0.0, "out of memory: no");
  need.add(0.0, "out of memory: ");
  EXPECT_EQ(need.sentence(), "Out of memory in 2 of 2 rows: no.");
}

TEST(LargestNeed, IsAbsentWhereAllFit) {
  LargestNeed need;
  EXPECT_EQ(need.sentence(), "");
  need.add(79.0, std::nullopt);
  EXPECT_EQ(need.sentence(), "");
}

}  // namespace
}  // namespace commfuse
