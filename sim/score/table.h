// SPDX-License-Identifier: Apache-2.0
// A table of measurements in a CSV file. Lines that begin with `#` are comments; the first line that is neither blank
// nor a comment is the header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace commfuse::score {

/// A column, by name; its index is -1 if the table lacks the column.
struct Column {
  int index = -1;
  std::string_view name;
  [[nodiscard]] bool exists() const { return index >= 0; }
};

/// Cells are views into the table's own text, so a table cannot be copied. The quotes around a cell are removed;
/// doubled quotes inside a cell stay doubled. Blank lines are skipped.
class Table {
 public:
  explicit Table(std::string text);
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  Table(Table&&) = default;
  Table& operator=(Table&&) = default;
  ~Table() = default;

  [[nodiscard]] const std::vector<std::string_view>& header() const { return header_; }
  [[nodiscard]] std::int64_t header_line() const { return header_line_; }
  [[nodiscard]] std::size_t rows() const { return lines_.size(); }
  [[nodiscard]] std::int64_t line_of(std::size_t row) const { return lines_[row]; }
  [[nodiscard]] std::size_t cells_of(std::size_t row) const { return first_cell_[row + 1] - first_cell_[row]; }
  /// Returns the mistake in the row's quotes, because of which text would be lost; empty if there is none.
  [[nodiscard]] std::string_view quote_fault(std::size_t row) const { return quote_faults_[row]; }
  /// Requires `column` to exist and the row to have as many cells as the header.
  [[nodiscard]] std::string_view cell(std::size_t row, const Column& column) const {
    return cells_[first_cell_[row] + static_cast<std::size_t>(column.index)];
  }
  /// `name` must outlive the returned column.
  [[nodiscard]] Column column(std::string_view name) const;

  /// Returns the text of the comment `# key: text`; empty if there is no such comment.
  [[nodiscard]] std::string_view comment(std::string_view key) const;
  /// Returns whether any comment contains the word, ignoring case.
  [[nodiscard]] bool comments_say(std::string_view word) const;

 private:
  void read_line(std::string_view line, std::int64_t number);

  // A vector's memory stays in place when the table moves, so the views stay valid.
  std::vector<char> text_;
  std::vector<std::string_view> comments_;  // without '#'
  std::vector<std::string_view> header_;
  std::int64_t header_line_ = 1;
  std::vector<std::string_view> cells_;
  std::vector<std::size_t> first_cell_{0};
  std::vector<std::int64_t> lines_;
  std::vector<std::string_view> quote_faults_;
};

/// Throws ConfigError if the file cannot be read, is larger than 256 MiB or in UTF-16, has more than 1000 columns or 10
/// million cells, or has a mistake in the quotes of its header.
Table read_table(const std::filesystem::path& path);

/// Returns the text without the characters of `blanks` at its ends.
std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\r");

}  // namespace commfuse::score
