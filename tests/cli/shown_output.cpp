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

constexpr std::string_view left_out = "[...]";

/// Lines that also follow each other in the output.
struct Piece {
  Lines lines;  ///< Without blank lines at its edges.
  std::size_t blank_before = 0;
  std::size_t blank_after = 0;
  bool at_start = false;
  bool at_end = false;
};

std::string without_spaces_behind(const std::string& line) { return line.substr(0, line.find_last_not_of(' ') + 1); }

/// Returns a line with `#` for every number, and one space for many.
std::string masked(const std::string& line) {
  std::string made;
  for (const char c : line) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    const bool inside = !made.empty() && made.back() == '#' && (c == '.' || c == ',' || digit);
    if (!inside && !(c == ' ' && (made.empty() || made.back() == ' '))) {
      made += digit ? '#' : c;
    }
  }
  return without_spaces_behind(made);
}

bool same(const std::string& shown, const std::string& real, bool measured) {
  return measured ? masked(shown) == masked(real) : without_spaces_behind(shown) == without_spaces_behind(real);
}

Lines without_blank_end(Lines lines) {
  while (!lines.empty() && lines.back().empty()) {
    lines.pop_back();
  }
  return lines;
}

void trim(Piece& piece) {
  const std::size_t line_count = piece.lines.size();
  piece.lines = without_blank_end(piece.lines);
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
    if (line == left_out) {
      pieces.emplace_back();
    } else {
      pieces.back().lines.push_back(line);
    }
  }
  pieces.back().at_end = true;
  std::ranges::for_each(pieces, trim);
  return pieces;
}

/// Returns how many lines of a piece match `real` from `at` on.
std::size_t met(const Piece& piece, const Lines& real, std::size_t at, bool measured) {
  std::size_t lines = 0;
  while (lines < piece.lines.size() && at + lines < real.size() &&
         same(piece.lines[lines], real[at + lines], measured)) {
    ++lines;
  }
  return lines;
}

/// Place of a whole piece at or after `from`, or otherwise how far the best attempt matched.
struct PiecePlace {
  std::optional<std::size_t> at;
  std::size_t best = 0;
};

PiecePlace find(const Piece& piece, const Lines& real, std::size_t from, bool measured) {
  const std::size_t size = piece.lines.size();
  if (real.size() < from + size) {
    return {std::nullopt, met(piece, real, from, measured)};
  }
  PiecePlace place;
  const std::size_t latest = real.size() - size;
  const std::size_t last = piece.at_start ? from : latest;
  for (std::size_t at = from; at <= last && !place.at; ++at) {
    const std::size_t lines = met(piece, real, at, measured);
    place.best = std::max(place.best, lines);
    if (lines == size && (!piece.at_end || at == latest)) {
      place.at = at;
    }
  }
  return place;
}

/// Returns the first line at or after `at` that is equal, or equal except for its numbers; `real.size()` if there is
/// none.
std::size_t seek(const std::string& line, const Lines& real, std::size_t at) {
  for (const bool measured : {false, true}) {
    for (std::size_t i = at; i < real.size(); ++i) {
      if (same(line, real[i], measured)) {
        return i;
      }
    }
  }
  return real.size();
}

/// Returns the last line of as many paragraphs as the piece has.
std::size_t end_of_paragraphs(const Piece& piece, const Lines& real, std::size_t first) {
  auto blanks = std::ranges::count_if(piece.lines, [](const std::string& line) { return line.empty(); });
  std::size_t last = first;
  while (last + 1 < real.size() && (!real[last + 1].empty() || blanks-- > 0)) {
    ++last;
  }
  return last;
}

/// Returns the lines of `real` that a piece with changed numbers stands for: from its first line to its last, or to the
/// end of its paragraph if a blank line follows.
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
  const Lines real = without_blank_end(real_lines);
  std::size_t at = 0;
  for (const Piece& piece : pieces_of(shown)) {
    if (piece.lines.empty()) {
      continue;
    }
    const PiecePlace place = find(piece, real, at, measured);
    if (!place.at) {
      return place.best < piece.lines.size() ? piece.lines[place.best] : "nothing behind: " + piece.lines.back();
    }
    at = *place.at + piece.lines.size();
  }
  return "";
}

Lines renewed(const Lines& shown, const Lines& real_lines) {
  const Lines real = without_blank_end(real_lines);
  std::size_t at = 0;
  Lines made;
  for (const Piece& piece : pieces_of(shown)) {
    if (!piece.at_start) {
      made.emplace_back(left_out);
    }
    made.resize(made.size() + piece.blank_before);
    const auto now = piece.lines.empty() || real.empty() ? std::nullopt : place(piece, real, at);
    if (now) {
      const auto begin = real.begin();
      made.insert(made.end(), begin + static_cast<std::ptrdiff_t>(now->first),
                  begin + static_cast<std::ptrdiff_t>(now->second));
      at = now->second;
    } else {
      made.insert(made.end(), piece.lines.begin(), piece.lines.end());
    }
    made.resize(made.size() + piece.blank_after);
  }
  return made;
}

}  // namespace commfuse::test
