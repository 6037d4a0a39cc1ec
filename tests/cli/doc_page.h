// SPDX-License-Identifier: Apache-2.0
// A page of the documentation as somebody follows it: files to write, commands to type, and what they print.
// docs/testing.md says how pages mark them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace commfuse::test {

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text);
std::string text_of(const Lines& lines);

/// A command to type, or a file to write.
struct DocStep {
  std::string command;  ///< empty: a file
  std::string file;
  Lines lines;            ///< what the command prints, as shown; the text of the file
  std::size_t begin = 0;  ///< where these lines begin in the page, from 0
  int exit = 0;
  std::string skip;   ///< why it cannot be run here; empty: it is run
  std::string needs;  ///< a program without which it is left out
  bool measured = false;
  bool gpu = false;  ///< ends with 69 where there is none
};

struct DocPage {
  Lines lines;
  std::vector<DocStep> steps;
  Lines mistakes;  ///< of the page, as `line 3: sentence`
};

/// The pages that people read, by their paths in the project: all but docs/decisions, which keeps what was true on its
/// day.
std::vector<std::string> doc_pages();

DocPage read_page(const std::string& text);

/// The page with what `steps` show now in place of what it showed.
std::string with_steps(const DocPage& page, const std::vector<DocStep>& steps);

/// The first line of `shown` that `real` lacks, in order; empty where it has all. `[...]` stands for any number of
/// lines. `measured`: numbers may differ. Blank lines beside `[...]` and at the end do not count.
std::string missing_line(const Lines& shown, const Lines& real, bool measured);

/// `shown` with the lines of `real` in place of those that differ in their numbers, or that lie between two such.
Lines renewed(const Lines& shown, const Lines& real);

}  // namespace commfuse::test
