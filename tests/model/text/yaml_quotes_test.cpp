// SPDX-License-Identifier: Apache-2.0
#include "model/text/yaml_quotes.h"

#include <gtest/gtest.h>

namespace commfuse {
namespace {

TEST(YamlQuotes, EscapeWhatWouldEndOrChangeTheText) {
  EXPECT_EQ(yaml_quoted(""), "\"\"");
  EXPECT_EQ(yaml_quoted("fitted: a b.csv"), "\"fitted: a b.csv\"");
  EXPECT_EQ(yaml_quoted("a\"b\\c.csv"), "\"a\\\"b\\\\c.csv\"");
  EXPECT_EQ(yaml_quoted("a\n\x7f"), "\"a\\x0a\\x7f\"");
}

}  // namespace
}  // namespace commfuse
