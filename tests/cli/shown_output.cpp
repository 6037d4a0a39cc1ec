// SPDX-License-Identifier: Apache-2.0
// Compares the output on a page with the real output.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "tests/cli/doc_page.h"

namespace commfuse::test {
namespace {

constexpr std::string_view omission = "[...]";

/// Lines that are consecutive in the output.
struct Piece {
  Lines lines;  ///< Without blank lines at its edges.
  std::size_t blank_before = 0;
  std::size_t blank_after = 0;
  bool at_start = false;
  bool at_end = false;
};

std::string without_trailing_spaces(const std::string& line) { return line.substr(0, line.find_last_not_of(' ') + 1); }

/// Returns a line with `#` for every number, and with single spaces.
std::string masked(const std::string& line) {
  std::string text;
  for (const char c : line) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    const bool inside = !text.empty() && text.back() == '#' && (c == '.' || c == ',' || digit);
    if (!inside && !(c == ' ' && (text.empty() || text.back() == ' '))) {
      text += digit ? '#' : c;
    }
  }
  return without_trailing_spaces(text);
}

bool are_equal(const std::string& shown, const std::string& real, bool measured) {
  return measured ? masked(shown) == masked(real) : without_trailing_spaces(shown) == without_trailing_spaces(real);
}

Lines without_trailing_blank_lines(Lines lines) {
  while (!lines.empty() && lines.back().empty()) {
    lines.pop_back();
  }
  return lines;
}

void trim(Piece& piece) {
  const std::size_t line_count = piece.lines.size();
  piece.lines = without_trailing_blank_lines(piece.lines);
  piece.blank_after = line_count - piece.lines.size();
  while (!piece.at_start && !piece.lines.empty() && piece.lines.front().empty()) {
    piece.lines.erase(piece.lines.begin());
    ++piece.blank_before;
  }
}

std::vector<Piece> pieces_of(const Lines& shown) {
  std::vector<Piece> pieces(1);
  pieces.back().at_start = true;
  for (const std::string& line : shown) {
    if (line == omission) {
      pieces.emplace_back();
    } else {
      pieces.back().lines.push_back(line);
    }
  }
  pieces.back().at_end = true;
  std::ranges::for_each(pieces, trim);
  return pieces;
}

/// Returns how many lines of a piece match `real` starting at `at`.
std::size_t matching_lines(const Piece& piece, const Lines& real, std::size_t at, bool measured) {
  std::size_t lines = 0;
  while (lines < piece.lines.size() && at + lines < real.size() &&
         are_equal(piece.lines[lines], real[at + lines], measured)) {
    ++lines;
  }
  return lines;
}

/// Names a line that is missing; an empty text would mean that none is.
std::string in_words(const std::string& line) { return line.empty() ? "a blank line" : line; }

/// Place of a whole piece at or after `from`, or otherwise how far the best attempt matched.
struct PiecePlace {
  std::optional<std::size_t> at;
  std::size_t best = 0;
};

PiecePlace find(const Piece& piece, const Lines& real, std::size_t from, bool measured) {
  const std::size_t size = piece.lines.size();
  if (real.size() < from + size) {
    return {std::nullopt, matching_lines(piece, real, from, measured)};
  }
  PiecePlace place;
  const std::size_t latest = real.size() - size;
  const std::size_t last = piece.at_start ? from : latest;
  for (std::size_t at = from; at <= last && !place.at; ++at) {
    const std::size_t lines = matching_lines(piece, real, at, measured);
    place.best = std::max(place.best, lines);
    if (lines == size && (!piece.at_end || at == latest)) {
      place.at = at;
    }
  }
  return place;
}

/// Returns the index of the first line at or after `at` that equals `line`; if there is none, of the first that equals
/// `line` except for its numbers; `real.size()` if there is none either.
std::size_t seek(const std::string& line, const Lines& real, std::size_t at) {
  for (const bool measured : {false, true}) {
    for (std::size_t i = at; i < real.size(); ++i) {
      if (are_equal(line, real[i], measured)) {
        return i;
      }
    }
  }
  return real.size();
}

/// Counts as many paragraphs from line `first` on as the piece has; returns the index of their last line.
std::size_t end_of_paragraphs(const Piece& piece, const Lines& real, std::size_t first) {
  auto blanks = std::ranges::count_if(piece.lines, [](const std::string& line) { return line.empty(); });
  std::size_t last = first;
  while (last + 1 < real.size() && (!real[last + 1].empty() || blanks-- > 0)) {
    ++last;
  }
  return last;
}

/// Returns the lines of `real` that replace a piece with changed numbers: from its first line to its last, or to the
/// end of its paragraphs if a blank line follows.
std::optional<std::pair<std::size_t, std::size_t>> place(const Piece& piece, const Lines& real, std::size_t from) {
  const std::size_t first = piece.at_start ? 0 : seek(piece.lines.front(), real, from);
  if (first >= real.size()) {
    return std::nullopt;
  }
  const std::size_t last = piece.at_end            ? real.size() - 1
                           : piece.blank_after > 0 ? end_of_paragraphs(piece, real, first)
                                                   : seek(piece.lines.back(), real, first);
  if (first > last || last >= real.size()) {
    return std::nullopt;
  }
  return std::pair{first, last + 1};
}

}  // namespace

std::string missing_line(const Lines& shown, const Lines& real_lines, bool measured) {
  const Lines real = without_trailing_blank_lines(real_lines);
  std::size_t at = 0;
  for (const Piece& piece : pieces_of(shown)) {
    if (piece.lines.empty()) {
      continue;
    }
    const PiecePlace place = find(piece, real, at, measured);
    if (!place.at) {
      return place.best < piece.lines.size() ? in_words(piece.lines[place.best])
                                             : "more lines follow: " + piece.lines.back();
    }
    at = *place.at + piece.lines.size();
  }
  return "";
}

Lines renewed(const Lines& shown, const Lines& real_lines) {
  const Lines real = without_trailing_blank_lines(real_lines);
  std::size_t at = 0;
  Lines lines;
  for (const Piece& piece : pieces_of(shown)) {
    if (!piece.at_start) {
      lines.emplace_back(omission);
    }
    lines.resize(lines.size() + piece.blank_before);
    const auto range = piece.lines.empty() || real.empty() ? std::nullopt : place(piece, real, at);
    if (range) {
      const auto begin = real.begin();
      lines.insert(lines.end(), begin + static_cast<std::ptrdiff_t>(range->first),
                   begin + static_cast<std::ptrdiff_t>(range->second));
      at = range->second;
    } else {
      lines.insert(lines.end(), piece.lines.begin(), piece.lines.end());
    }
    lines.resize(lines.size() + piece.blank_after);
  }
  return lines;
}

}  // namespace commfuse::test
