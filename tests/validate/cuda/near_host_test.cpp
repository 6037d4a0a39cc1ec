// SPDX-License-Identifier: Apache-2.0
// Tests the search for processors near a GPU, and a thread that moves to them.
#include "validate/cuda/module/near_host.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/own_folder.h"

namespace commfuse::validate {
namespace {

TEST(NearHost, ListsOfProcessorsAreRead) {
  EXPECT_EQ(processors_in("0-2,8"), (std::vector{0, 1, 2, 8}));
  EXPECT_EQ(processors_in("5"), std::vector{5});
  for (const char* list : {"", "x", "3-1", "-1", "1;2", "1-", "0-99999"}) {
    EXPECT_TRUE(processors_in(list).empty()) << list;
  }
}

TEST(NearHost, TheBusNamesTheProcessorsOfADevice) {
  const OwnFolder folder;
  std::filesystem::create_directories("0000:1b:00.0");
  std::ofstream("0000:1b:00.0/local_cpulist") << "2-3\n";
  EXPECT_EQ(processors_near("0000:1B:00.0", "./"), (std::vector{2, 3}));
  EXPECT_TRUE(processors_near("0000:1C:00.0", "./").empty());
}

TEST(NearHost, AThreadMovesThereAndBack) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(static_cast<std::size_t>(first), &before)) {
    ++first;
  }
  {
    const OnProcessors on_first({first});
    cpu_set_t now;
    ASSERT_EQ(::sched_getaffinity(0, sizeof now, &now), 0);
    EXPECT_TRUE(on_first.moved());
    EXPECT_EQ(CPU_COUNT(&now), 1);
  }
  cpu_set_t after;
  ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
  EXPECT_FALSE(OnProcessors({}).moved());
}

}  // namespace
}  // namespace commfuse::validate
