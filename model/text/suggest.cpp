// SPDX-License-Identifier: Apache-2.0
#include "model/text/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "model/text/plain_text.h"

namespace commfuse {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool swapped(std::string_view a, std::string_view b, std::size_t i, std::size_t j) {
  return i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
}

constexpr std::size_t longest_word = 64;  // Longer words get no suggestion.
constexpr std::size_t longest_quotation = 60;

}  // namespace

std::string lowercase(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> cost((a.size() + 1) * width);
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      std::size_t& edits = cost[i * width + j];
      if (i == 0 || j == 0) {
        edits = i + j;
        continue;
      }
      const std::size_t replace = cost[(i - 1) * width + j - 1] + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      edits = std::min({cost[(i - 1) * width + j] + 1, cost[i * width + j - 1] + 1, replace});
      if (swapped(a, b, i, j)) {
        edits = std::min(edits, cost[(i - 2) * width + j - 2] + 1);
      }
    }
  }
  return cost.back();
}

std::optional<std::string> nearest(std::string_view wrong, std::span<const std::string_view> known) {
  if (wrong.size() > longest_word) {
    return std::nullopt;
  }
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (const std::string_view word : known) {
    const std::size_t distance = edit_distance(wrong, word);
    const std::size_t allowed = std::max<std::size_t>(1, std::max(wrong.size(), word.size()) / 3);
    const bool is_near = distance <= allowed && distance < std::max(wrong.size(), word.size());
    if (is_near && (!best || distance < best_distance)) {
      best = std::string(word);
      best_distance = distance;
    }
  }
  return best;
}

std::string remedy_for(std::string_view wrong, std::span<const std::string_view> known, std::string_view what) {
  if (const std::optional<std::string> suggestion = nearest(wrong, known)) {
    return fmt::format("did you mean '{}'?", *suggestion);
  }
  return known.empty() ? fmt::format("no {} are defined", what)
                       : fmt::format("known {}: {}", what, fmt::join(known, ", "));
}

std::string in_quotes(std::string_view text) {
  std::size_t end = std::min(text.size(), longest_quotation);
  const auto splits_letter = [&] {  // within its UTF-8 bytes, of which there are at most four
    return end < text.size() && end + 3 > longest_quotation && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U;
  };
  while (splits_letter()) {
    --end;
  }
  return fmt::format("'{}{}'", with_escapes(text.substr(0, end)), end < text.size() ? "..." : "");
}

}  // namespace commfuse
