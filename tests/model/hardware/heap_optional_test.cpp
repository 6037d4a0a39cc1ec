// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/heap_optional.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace commfuse {
namespace {

TEST(HeapOptional, AnEmptyOneIsAsSmallAsAPointer) {
  static_assert(sizeof(HeapOptional<std::string>) == sizeof(void*));
  HeapOptional<std::string> text;
  EXPECT_FALSE(text);
  EXPECT_FALSE(text.has_value());
  EXPECT_FALSE(HeapOptional<std::string>(text).has_value());
}

TEST(HeapOptional, CopiesDoNotShareTheirValue) {
  HeapOptional<std::string> text;
  text.emplace() = "first";
  HeapOptional<std::string> copy = text;
  *copy = "second";
  EXPECT_EQ(*text, "first");
  text = copy;
  copy->append(" and third");
  EXPECT_EQ(*text, "second");
  text = std::move(copy);
  EXPECT_EQ(*text, "second and third");
  text.reset();
  EXPECT_FALSE(text.has_value());
}

}  // namespace
}  // namespace commfuse
