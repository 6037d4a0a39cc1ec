// SPDX-License-Identifier: Apache-2.0
#include "model/text/plain_text.h"

#include <gtest/gtest.h>

namespace commfuse {
namespace {

TEST(PlainText, ControlCharactersIncludeLatin1AndDirections) {
  for (const std::string_view control :
       {"\x01", "\t", "\n", "\x1b", "\x7f", "\u0080", "\u009b", "\u009f", "\u202a", "\u202e", "\u2066", "\u2069"}) {
    EXPECT_EQ(control_character(control), control.size()) << with_escapes(control);
    EXPECT_TRUE(has_control_character("a" + std::string(control) + "b"));
  }
  EXPECT_EQ(control_character(std::string_view("\0", 1)), 1U);
}

TEST(PlainText, LettersOfAnyLanguageAreNotControlCharacters) {
  for (const std::string_view plain : {"", " ", "~", "\u00a0", "\u00e9", "\u2029x", "\u202f", "\u2065", "\u206a",
                                       "\u6a21\u578b", "\u05d0\u200f", "\xc2", "\xe2\x80", "\xe2"}) {
    EXPECT_EQ(control_character(plain), 0U) << with_escapes(plain);
    EXPECT_FALSE(has_control_character(plain));
    EXPECT_EQ(with_escapes(plain), plain);
  }
}

TEST(PlainText, SomeControlCharactersMayBeAllowed) {
  EXPECT_FALSE(has_control_character("a\tb\n", "\t\n"));
  EXPECT_TRUE(has_control_character("a\tb\x1b", "\t\n"));
  EXPECT_EQ(with_escapes("a\tb\nc\x1b", "\t"), "a\tb\\x0ac\\x1b");
}

TEST(PlainText, EscapesCoverEveryByte) { EXPECT_EQ(with_escapes("a\u009b\u202eb"), "a\\xc2\\x9b\\xe2\\x80\\xaeb"); }

TEST(PlainText, LettersAndSignsOfAnyLanguageAreUtf8) {
  for (const std::string_view text : {"", "a", "\x7f", "\u0080", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff",
                                      "\U00010000", "\U0010ffff", "\u6a21\u578b \u00e9"}) {
    EXPECT_TRUE(is_utf8(text)) << text;
  }
}

TEST(PlainText, BytesOfOtherEncodingsAreNotUtf8) {
  for (const std::string_view text :
       {"h\xff", "Jos\xe9", "\x80", "a\xc3", "\xe2\x82 ", "\xf0\x9f\x98", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\xaf",
        "\xf0\x80\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3("}) {
    EXPECT_FALSE(is_utf8(text)) << with_escapes(text);
  }
}

TEST(PlainText, BytesOfOtherEncodingsAreReplaced) {
  EXPECT_EQ(as_utf8("n\xf6rd\xff"), "n\ufffdrd\ufffd");
  EXPECT_EQ(as_utf8("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");  // a surrogate
  EXPECT_EQ(as_utf8("na\u00efve \u2013 \U0001f600"), "na\u00efve \u2013 \U0001f600");
  EXPECT_EQ(as_utf8(""), "");
}

}  // namespace
}  // namespace commfuse
