// SPDX-License-Identifier: Apache-2.0
// Tests that shards divide the points of a sweep: each point once, evenly, for any period of a grid.
#include "sim/sweep/shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "model/config_error.h"
#include "tests/sim/message_of.h"

namespace commfuse {
namespace {

using Environment = std::map<std::string, std::string>;

Shard parsed(const std::string& text, const Environment& environment = {}) {
  return parse_shard(text, [&](const char* name) {
    const auto variable = environment.find(name);
    return variable == environment.end() ? nullptr : variable->second.c_str();
  });
}

std::string shard_refusal(const std::string& text, const Environment& environment = {}) {
  return test::message_of([&] { parsed(text, environment); });
}

TEST(Shard, IsWrittenAsAPartOfSeveral) {
  EXPECT_EQ(parsed("3/7"), (Shard{3, 7}));
  EXPECT_EQ(name_of(Shard{3, 7}), "3-of-7");
  EXPECT_EQ(shard_refusal("8/7"), "--shard: part 8 of 7 does not exist; choose 1/N to N/N with N at most 100000");
  EXPECT_EQ(shard_refusal("0/7"), "--shard: part 0 of 7 does not exist; choose 1/N to N/N with N at most 100000");
  EXPECT_EQ(shard_refusal("three"), "--shard: 'three' is not a part; write one, as in 3/7, or auto");
  EXPECT_EQ(shard_refusal("1/x"), "--shard: '1/x' is not a part; write one, as in 3/7, or auto");
}

TEST(Shard, AutoFollowsTheScheduler) {
  const Environment slurm{{"SLURM_ARRAY_TASK_ID", "14"},   {"SLURM_ARRAY_TASK_MIN", "10"},
                          {"SLURM_ARRAY_TASK_COUNT", "4"}, {"SLURM_ARRAY_TASK_STEP", "2"},
                          {"SLURM_PROCID", "0"},           {"SLURM_NTASKS", "1"}};
  EXPECT_EQ(parsed("auto", slurm), (Shard{3, 4}));
  EXPECT_EQ(parsed("auto", {{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "8"}}), (Shard{3, 8}));
  EXPECT_EQ(parsed("auto", {{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}}), (Shard{4, 4}));
  EXPECT_EQ(parsed("auto/5", {{"JOB_COMPLETION_INDEX", "0"}}), (Shard{1, 5}));
  EXPECT_EQ(parsed("auto/5", {{"PARALLEL_SEQ", "5"}}), (Shard{5, 5}));
  EXPECT_EQ(shard_refusal("auto", {{"JOB_COMPLETION_INDEX", "0"}}),
            "--shard: auto finds the number of this task but not the number of tasks; write the number of tasks, as in "
            "auto/7");
  EXPECT_EQ(shard_refusal("auto/5", slurm), "--shard: auto/5 was given, but the scheduler runs 4 tasks; write auto");
  EXPECT_EQ(
      shard_refusal("auto"),
      "--shard: auto finds no task of a scheduler in the environment (Slurm, PBS, Kubernetes, MPI, GNU parallel); "
      "write the part, as in 3/7");
}

TEST(Shard, AutoRefusesATaskThatIsNotCountedFromZero) {
  const std::string remedy = ", counted from 0; number the tasks from 0 without gaps, or write the part, as in 3/7";
  EXPECT_EQ(parsed("auto/7", {{"PBS_ARRAY_INDEX", "6"}}), (Shard{7, 7}));
  EXPECT_EQ(shard_refusal("auto/7", {{"PBS_ARRAY_INDEX", "7"}}), "--shard: auto finds task 7 of 7" + remedy);
  EXPECT_EQ(shard_refusal("auto/7", {{"PARALLEL_SEQ", "100001"}}), "--shard: auto finds task 100000 of 7" + remedy);
  EXPECT_EQ(shard_refusal("auto/7", {{"JOB_COMPLETION_INDEX", "100000"}}),
            "--shard: auto finds task 100000 of 7" + remedy);
  EXPECT_EQ(shard_refusal("auto/0", {{"PBS_ARRAY_INDEX", "0"}}),
            "--shard: part 1 of 0 does not exist; choose 1/N to N/N with N at most 100000");
  EXPECT_EQ(shard_refusal("auto/7", {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}),
            "--shard: auto/7 was given, but the scheduler runs 1 task; write auto");
}

TEST(Shard, EveryPointBelongsToOne) {
  for (const std::size_t points : {1U, 6U, 7U, 8U, 1000U, 12'345U}) {
    for (const int parts : {1, 2, 7, 16}) {
      std::vector<std::size_t> counts(static_cast<std::size_t>(parts), 0);
      for (std::size_t point = 0; point < points; ++point) {
        int owners = 0;
        for (int part = 1; part <= parts; ++part) {
          if (belongs_to({part, parts}, point, points)) {
            ++owners;
            ++counts[static_cast<std::size_t>(part - 1)];
          }
        }
        ASSERT_EQ(owners, 1) << points << " points, " << parts << " parts, point " << point;
      }
      for (int part = 1; part <= parts; ++part) {
        EXPECT_EQ(points_of({part, parts}, points), counts[static_cast<std::size_t>(part - 1)]);
      }
      const auto [least, largest] = std::minmax_element(counts.begin(), counts.end());
      EXPECT_LE(*largest - *least, std::max<std::size_t>(1, points / static_cast<std::size_t>(parts * 16)) + 1);
    }
  }
}

TEST(Shard, AnAxisWithAsManyValuesAsShardsIsDividedEvenly) {
  // Every fifth point costs the most; none of five shards may get all of them.
  std::vector<int> costly(5, 0);
  for (std::size_t point = 0; point < 10'000; point += 5) {
    for (int part = 1; part <= 5; ++part) {
      costly[static_cast<std::size_t>(part - 1)] += belongs_to({part, 5}, point, 10'000) ? 1 : 0;
    }
  }
  for (const int count : costly) {
    EXPECT_NEAR(count, 400, 80);
  }
}

}  // namespace
}  // namespace commfuse
