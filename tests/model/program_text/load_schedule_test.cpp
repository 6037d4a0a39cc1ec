// SPDX-License-Identifier: Apache-2.0
// Tests schedules from files. text_mistakes_test.cpp tests mistakes inside them.
#include "model/program_text/load_schedule.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "model/program_text/yaml_tree.h"
#include "tests/refusal.h"

namespace commfuse {
namespace {

std::string schedule_refusal(const std::string& name) {
  return test::refusal_of([&] { load_schedule(name); });
}

TEST(LoadSchedule, NamesAreLookedUpInTheConfigFolderAndPathsAreKept) {
  const ScheduleFile by_name = load_schedule("doubling");
  const ScheduleFile by_path = load_schedule(COMMFUSE_SOURCE_DIR "/configs/schedules/doubling.yaml");
  EXPECT_EQ(by_name.program, by_path.program);
  EXPECT_EQ(by_name.name(), "doubling.yaml");
  EXPECT_EQ(schedule_refusal("doublin").substr(0, 58), "unknown schedule 'doublin'; did you mean 'doubling'? known");
}

TEST(LoadSchedule, ReportsAnUnreadableFile) {
  const std::string remedy = ": this file cannot be read; give the path of a schedule in YAML";
  EXPECT_EQ(schedule_refusal("absent.yaml"), "absent.yaml" + remedy);
  EXPECT_EQ(schedule_refusal(COMMFUSE_SOURCE_DIR "/"), COMMFUSE_SOURCE_DIR "/" + remedy);
}

TEST(LoadSchedule, AFileOfMoreThanAMegabyteIsRefusedWithoutReadingItAll) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "commfuse-large.yaml";
  std::ofstream(path) << std::string(2 * text::max_bytes, '#');
  EXPECT_EQ(schedule_refusal(path.string()),
            path.string() + ":1:1: 1048577 bytes are too many; a schedule is at most 1 MiB (1048576)");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace commfuse
