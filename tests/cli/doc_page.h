// SPDX-License-Identifier: Apache-2.0
// A page of the documentation as a user follows it: files to write, commands to type, and their output. docs/testing.md
// describes how pages mark them.
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
  std::string command;  ///< Empty for a file.
  std::string file;
  Lines lines;                   ///< Output of the command as shown, or the text of the file.
  std::size_t begin = 0;         ///< Index of the first of these lines in the page, from 0.
  std::vector<int> exits = {0};  ///< Exit codes that are accepted.
  std::string skip;              ///< Why the command cannot run here; empty if it runs.
  std::string needs;             ///< A program without which the command is skipped.
  bool measured = false;
  bool gpu = false;  ///< True if the command exits with 69 without a GPU.
};

struct DocPage {
  Lines lines;
  std::vector<DocStep> steps;
  Lines mistakes;  ///< Mistakes in the page, as `line 3: sentence`.
};

/// Returns the paths of the pages that people read: CHANGELOG.md, README.md, SECURITY.md and docs/ without
/// docs/decisions, which records the state at the date of each decision.
std::vector<std::string> doc_pages();

DocPage read_page(const std::string& text);

/// Returns the page with the new output of `steps`.
std::string with_steps(const DocPage& page, const std::vector<DocStep>& steps);

/// Returns the first line of `shown` that `real` lacks, in order; empty if `real` has them all. `[...]` matches any
/// number of lines. If `measured` is true, numbers may differ. Blank lines next to `[...]` and at the end are ignored;
/// any other blank line that is missing is "a blank line". If `real` goes on after the last line of `shown`, returns
/// "more lines follow: " and that line.
std::string missing_line(const Lines& shown, const Lines& real, bool measured);

/// Returns `shown` with each part between two `[...]` replaced by the lines of `real` from the part's first line to its
/// last, in which numbers may differ. Keeps a part whose first or last line `real` lacks.
Lines renewed(const Lines& shown, const Lines& real);

}  // namespace commfuse::test
