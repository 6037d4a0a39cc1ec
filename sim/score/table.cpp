// SPDX-License-Identifier: Apache-2.0
#include "sim/score/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "model/config_error.h"
#include "model/text/files.h"

namespace commfuse::score {

namespace {

constexpr std::size_t largest_table = std::size_t{256} << 20;
constexpr std::size_t max_columns = 1000;
constexpr std::size_t max_cells = 10'000'000;  // 16 bytes each, and twice that while the vector grows

constexpr std::string_view text_after_quote =
    "text follows the closing quote of a cell; enclose the whole cell in quotes";
constexpr std::string_view unclosed_quote = "the quote of a cell is not closed on its line; close it";

/// Removes the first cell from `line` and returns it. `more` becomes true if another cell follows, otherwise false.
/// `fault` becomes the mistake in the cell's quotes if there is one, and otherwise does not change.
std::string_view next_cell(std::string_view& line, bool& more, std::string_view& fault) {
  const std::size_t begin = line.find_first_not_of(" \t");
  std::string_view cell;
  std::size_t end = 0;
  if (begin != std::string_view::npos && line[begin] == '"') {
    std::size_t close = line.find('"', begin + 1);
    while (close != std::string_view::npos && close + 1 < line.size() && line[close + 1] == '"') {
      close = line.find('"', close + 2);
    }
    fault = close == std::string_view::npos ? unclosed_quote : fault;
    close = std::min(close, line.size());
    cell = line.substr(begin + 1, close - begin - 1);
    end = line.find(',', close);
    const std::string_view rest = line.substr(close, std::min(end, line.size()) - close);
    const bool has_more = !trimmed(rest.substr(std::min<std::size_t>(1, rest.size()))).empty();
    fault = has_more ? text_after_quote : fault;
  } else {
    end = line.find(',');
    cell = trimmed(line.substr(0, end));
  }
  more = end != std::string_view::npos;
  line = more ? line.substr(end + 1) : std::string_view();
  return cell;
}

}  // namespace

std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const std::size_t first = text.find_first_not_of(blanks);
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

Table::Table(std::string text) : text_(text.begin(), text.end()) {
  std::string_view rest(text_.data(), text_.size());
  if (rest.substr(0, 3) == "\xef\xbb\xbf") {
    rest.remove_prefix(3);
  }
  for (std::int64_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = rest.find('\n');
    read_line(trimmed(rest.substr(0, end)), number);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
}

void Table::read_line(std::string_view line, std::int64_t number) {
  if (line.empty()) {
    return;
  }
  if (line.front() == '#') {
    comments_.push_back(trimmed(line.substr(1)));
    return;
  }
  const bool is_header = header_.empty();
  std::vector<std::string_view>& into = is_header ? header_ : cells_;
  std::string_view fault;
  for (bool more = true; more;) {
    into.push_back(next_cell(line, more, fault));
    if (into.size() > (is_header ? max_columns : max_cells)) {
      throw ConfigError(is_header
                            ? fmt::format("the header has more than {} columns; use a CSV file with fewer", max_columns)
                            : fmt::format("the table has more than {} cells; split it into several", max_cells));
    }
  }
  if (is_header) {
    if (!fault.empty()) {
      throw ConfigError(fmt::format("line {}: {}", number, fault));
    }
    header_line_ = number;
  } else {
    lines_.push_back(number);
    first_cell_.push_back(cells_.size());
    quote_faults_.push_back(fault);
  }
}

Column Table::column(std::string_view name) const {
  const auto match = std::find(header_.begin(), header_.end(), name);
  return {match == header_.end() ? -1 : static_cast<int>(match - header_.begin()), name};
}

std::string_view Table::comment(std::string_view key) const {
  for (const std::string_view comment : comments_) {
    if (comment.size() > key.size() && comment.substr(0, key.size()) == key && comment[key.size()] == ':') {
      return trimmed(comment.substr(key.size() + 1));
    }
  }
  return {};
}

bool Table::comments_say(std::string_view word) const {
  const auto equal_ignoring_case = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return std::any_of(comments_.begin(), comments_.end(), [&](std::string_view comment) {
    return std::search(comment.begin(), comment.end(), word.begin(), word.end(), equal_ignoring_case) != comment.end();
  });
}

Table read_table(const std::filesystem::path& path) {
  const auto refuse = [&](std::string_view why) { return ConfigError(fmt::format("{}: {}", path.string(), why)); };
  std::string text = read_file(path.string(), largest_table);
  if (text.size() > largest_table) {
    throw refuse("the table is larger than 256 MiB; split it into several");
  }
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    throw refuse("it is in UTF-16; save it in UTF-8");
  }
  try {
    return Table(std::move(text));
  } catch (const ConfigError& mistake) {
    throw refuse(mistake.what());
  }
}

}  // namespace commfuse::score
