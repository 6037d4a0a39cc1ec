// SPDX-License-Identifier: Apache-2.0
#include "model/formats/tool_json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace commfuse {
namespace {

/// Adds `count` notes, and returns the last of those that take() returns.
std::string last_of(int count) {
  ReadingNotes notes;
  for (int i = 0; i < count; ++i) {
    notes.add("a note");
  }
  return notes.take().back();
}

TEST(ReadingNotes, KeepsOneHundredAndCountsTheRest) {
  EXPECT_EQ(last_of(100), "a note");
  EXPECT_EQ(last_of(101), "1 more note is not shown");
  EXPECT_EQ(last_of(102), "2 more notes are not shown");
}

}  // namespace
}  // namespace commfuse
