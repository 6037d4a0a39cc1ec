// SPDX-License-Identifier: Apache-2.0
// Tests how a page is parsed, and how its output is compared with the real output.
#include "tests/cli/doc_page.h"

#include <gtest/gtest.h>

namespace commfuse::test {
namespace {

TEST(DocPage, HasFilesToWriteAndCommandsWithTheirOutput) {
  const DocPage page = read_page(
      "Text.\n\n<!-- test: file a.yaml -->\n```yaml\nx: 1\n```\n\n"
      "<!-- test: exit 4 -->\n```console\n$ one \\\n    two\nprinted\n\n$ three\n```\n");
  EXPECT_EQ(page.mistakes, Lines{});
  ASSERT_EQ(page.steps.size(), 3U);
  EXPECT_EQ(page.steps[0].file, "a.yaml");
  EXPECT_EQ(page.steps[0].lines, Lines{"x: 1"});
  EXPECT_EQ(page.steps[1].command, "one \\\n    two");
  EXPECT_EQ(page.steps[1].lines, (Lines{"printed", ""}));
  EXPECT_EQ(page.steps[1].exits, std::vector<int>{4});
  EXPECT_EQ(page.steps[2].command, "three");
  EXPECT_EQ(page.steps[2].exits, std::vector<int>{4});
}

TEST(DocPage, ACommandWhoseAnswerIsMeasuredMayHaveSeveralExitCodes) {
  const DocPage page = read_page("<!-- test: exit 0 or 4 -->\n```console\n$ a\n```\n```console\n$ b\n```\n");
  ASSERT_EQ(page.steps.size(), 2U);
  EXPECT_EQ(page.steps[0].exits, (std::vector<int>{0, 4}));
  EXPECT_EQ(page.steps[1].exits, std::vector<int>{0});
  for (const std::string wrong : {"", "0 or", "0 or x", "0 4", "-1", "4 or "}) {
    EXPECT_EQ(read_page("<!-- test: exit " + wrong + " -->\n").mistakes,
              Lines{"line 1: unknown mark 'exit " + wrong + "'"});
  }
}

TEST(DocPage, ACommandOutsideAConsoleBlockIsAMistake) {
  EXPECT_EQ(read_page("    commfuse-sim run\n").mistakes, Lines{"line 1: a command outside a console block"});
  EXPECT_EQ(read_page("```\n./dev test\n```\n").mistakes, Lines{"line 2: a command outside a console block"});
  EXPECT_EQ(read_page("```yaml\nmodel: a  # commfuse-sim run\n```\n").mistakes, Lines{});
}

TEST(DocPage, AMarkThatIsUnknownOrAloneIsAMistake) {
  EXPECT_EQ(read_page("<!-- test: never -->\n").mistakes, Lines{"line 1: unknown mark 'never'"});
  EXPECT_EQ(read_page("<!-- test: exit 4 -->\n\n```console\n$ a\n```\n").mistakes,
            Lines{"line 2: a mark is not directly above its block"});
  EXPECT_EQ(read_page("```console\n$ a\n").mistakes, Lines{"line 3: the block of line 1 has no end"});
}

TEST(DocPage, KeepsEverythingButTheOutputsWhenRenewed) {
  const std::string text = "Text.\n```console\n$ a\none\n$ b\n```\nMore.\n";
  const DocPage page = read_page(text);
  EXPECT_EQ(with_steps(page, page.steps), text);
  std::vector<DocStep> steps = page.steps;
  steps[0].lines = {"two", "three"};
  EXPECT_EQ(with_steps(page, steps), "Text.\n```console\n$ a\ntwo\nthree\n$ b\n```\nMore.\n");
}

TEST(ShownOutput, IsTheWholeOutputUnlessLinesAreOmitted) {
  EXPECT_EQ(missing_line({"a", "b", ""}, {"a", "b"}, false), "");
  EXPECT_EQ(missing_line({"a"}, {"a", "b"}, false), "more lines follow: a");
  EXPECT_EQ(missing_line({"a", "b"}, {"a"}, false), "b");
  EXPECT_EQ(missing_line({"b"}, {"a", "b"}, false), "b");
}

TEST(ShownOutput, ReportsAMissingBlankLine) {
  EXPECT_EQ(missing_line({"head", "", "row 1"}, {"head", "new", "", "row 2"}, false), "a blank line");
  EXPECT_EQ(missing_line({"[...]", "head", "", "row 1"}, {"old", "head", "row 1", "row 2"}, false), "a blank line");
}

TEST(ShownOutput, OmitsLinesButKeepsTheirOrder) {
  const Lines real{"a", "", "b", "c", "d"};
  EXPECT_EQ(missing_line({"a", "", "[...]", "c", "[...]"}, real, false), "");
  EXPECT_EQ(missing_line({"[...]", "", "c", "d"}, real, false), "");
  EXPECT_EQ(missing_line({"[...]", "c", "[...]", "b", "[...]"}, real, false), "b");
  EXPECT_EQ(missing_line({"[...]", "b", "d"}, real, false), "d");
  EXPECT_EQ(missing_line({"[...]", "c"}, real, false), "more lines follow: c");
}

TEST(ShownOutput, MayHaveOtherNumbersWhereItWasMeasured) {
  EXPECT_EQ(missing_line({"took 1.25 s,  7 %"}, {"took 13.5 s, 12 %"}, true), "");
  EXPECT_EQ(missing_line({"took 1.25 s"}, {"took 13.5 s"}, false), "took 1.25 s");
  EXPECT_EQ(missing_line({"took 1.25 s"}, {"takes 1.25 s"}, true), "took 1.25 s");
}

TEST(ShownOutput, IsRenewedFromItsFirstLineToItsLast) {
  const Lines real{"head 2", "row 3", "row 4", "sum 7", "rest"};
  EXPECT_EQ(renewed({"head 1", "[...]", "", "row 1", "row 2", "sum 3", "[...]"}, real),
            (Lines{"head 2", "[...]", "", "row 3", "row 4", "sum 7", "[...]"}));
  EXPECT_EQ(renewed({"old"}, real), real);
  // The named table is renewed, including its whole paragraph, even if that ends differently now.
  const Lines tables{"ranks 2", "a 1", "wins", "", "ranks 8", "a 2", "no", "one wins", "", "rest"};
  EXPECT_EQ(renewed({"[...]", "ranks 8", "a 3", "all win", "", "[...]"}, tables),
            (Lines{"[...]", "ranks 8", "a 2", "no", "one wins", "", "[...]"}));
  EXPECT_EQ(renewed({"[...]", "gone", "[...]"}, real), (Lines{"[...]", "gone", "[...]"}));
}

}  // namespace
}  // namespace commfuse::test
