// SPDX-License-Identifier: Apache-2.0
#include "tests/house/retired_phrases.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

namespace fs = std::filesystem;

namespace commfuse::house {

namespace {

struct Phrase {
  std::string_view retired;
  std::string_view instead;  ///< in quotes
};

// The list has whole phrases. No single word is retired, because most words also have a good use.
constexpr std::array phrases{
    Phrase{"is no dtype", "'unknown dtype'"},
    Phrase{"is no strategy", "'unknown strategy'"},
    Phrase{"is no whole number", "'is not a whole number'"},
    Phrase{"is no plain file", "'is not a plain file'"},
    Phrase{"is no multiple of", "'is not a multiple of'"},
    Phrase{"is no column", "'unknown column'"},
    Phrase{"leave it out", "'remove it'"},
    Phrase{"has no use for", "'does not use'"},
    Phrase{"has no such thing", "'is not available for'"},
    Phrase{"stands alone; write it alone", "'cannot be combined with other values'"},
    Phrase{"is played", "'is simulated' or 'runs'"},
    Phrase{"are played", "'are simulated' or 'run'"},
    Phrase{"cannot play", "'cannot simulate'"},
    Phrase{"plays events", "'processes events'"},
    Phrase{"that nobody has", "'hypothetical'"},
    Phrase{"links nobody has", "'hypothetical links'"},
    Phrase{"nothing strays", "'nothing varies'"},
    Phrase{"how it strays", "'its jitter'"},
    Phrase{"hangs on", "'depends on' or 'sensitivity'"},
    Phrase{"leans on", "'depends on'"},
    Phrase{"o many products", "'GEMMs'"},
    Phrase{"ways to spread", "'layouts'"},
    Phrase{"the page of a plan", "'plan report'"},
    Phrase{"is kept with", "'chance of meeting the deadline'"},
    Phrase{"how it feels", "'device health'"},
    Phrase{"reach a GPU", "'device health'"},
    Phrase{"sites that were compute alone", "'lower bound with free communication'"},
    Phrase{"which is what is written", "'writes'"},
    Phrase{"obody chose a batch", "'No --batch given'"},
    Phrase{"obody looked", "'not checked'"},
};

/// Lines that contain one of these strings are skipped: `leans_on` is the name of a column, and the other is the name
/// of a what-if change in the JSON of `plan`.
constexpr std::array<std::string_view, 2> allowed_lines{"`leans_on`", "price {:+g} %"};

/// Returns whether a space separates a number or a placeholder from its percent sign, as in "2 %". "17 % 5" is a
/// remainder.
bool has_lone_percent(std::string_view text) {
  for (std::size_t at = text.find(" %"); at != std::string_view::npos; at = text.find(" %", at + 1)) {
    const char before = at == 0 ? ' ' : text[at - 1];
    const char after = at + 2 < text.size() ? text[at + 2] : ' ';
    const char next = at + 3 < text.size() ? text[at + 3] : ' ';
    const bool is_number = (before >= '0' && before <= '9') || before == '}';
    const bool is_remainder = (after >= 'a' && after <= 'z') || (after == ' ' && next >= '0' && next <= '9');
    if (is_number && !is_remainder) {
      return true;
    }
  }
  return false;
}

/// Returns the text between double quotes, or in JavaScript between any quotes, in a line that is not a comment.
std::string literals_of(std::string_view line, bool is_script) {
  std::string text;
  if (line.substr(std::min(line.find_first_not_of(' '), line.size())).starts_with("//")) {
    return text;
  }
  const std::string_view quotes = is_script ? "\"'`" : "\"";
  char quote = 0;  // quote that ends the literal; 0 outside literals
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote == 0 ? quotes.find(line[i]) != std::string_view::npos : line[i] == quote) {
      quote = quote == 0 ? line[i] : '\0';
      text += '\n';
    } else if (quote != 0) {
      text += line[i];
      if (line[i] == '\\' && i + 1 < line.size()) {
        text += line[++i];
      }
    } else if (line.substr(i).starts_with("//")) {
      break;
    }
  }
  return text;
}

bool is_script(const fs::path& file) { return file.extension() == ".js" || file.extension() == ".mjs"; }

void read(const fs::path& root, const fs::path& file, bool is_page, std::vector<std::string>& breaches) {
  std::ifstream in(file);
  std::size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (std::any_of(allowed_lines.begin(), allowed_lines.end(),
                    [&](auto entry) { return line.find(entry) != std::string::npos; })) {
      continue;
    }
    const std::string text = is_page ? line : literals_of(line, is_script(file));
    const std::string place = file.lexically_relative(root).generic_string() + ":" + std::to_string(number);
    if (has_lone_percent(text)) {
      breaches.push_back(place + ": '2 %' is retired; write '2%'");
    }
    for (const auto& [retired, instead] : phrases) {
      if (text.find(retired) != std::string::npos) {
        breaches.push_back(place + ": '" + std::string(retired) + "' is retired; write " + std::string(instead));
      }
    }
  }
}

}  // namespace

std::vector<std::string> retired_phrases(const fs::path& root) {
  std::vector<fs::path> sources;
  for (const char* const folder : {"model", "sim", "validate", "reports", "page", "python"}) {
    if (!fs::is_directory(root / folder)) {
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".cpp" || extension == ".h" || is_script(entry.path())) {
        sources.push_back(entry.path());
      }
    }
  }
  std::vector<fs::path> pages{root / "README.md", root / "page" / "ui" / "index.html"};
  for (const char* const folder : {"docs", "docs/howto"}) {
    if (!fs::is_directory(root / folder)) {
      continue;
    }
    for (const auto& entry : fs::directory_iterator(root / folder)) {
      if (entry.path().extension() == ".md") {
        pages.push_back(entry.path());
      }
    }
  }
  std::sort(sources.begin(), sources.end());
  std::sort(pages.begin(), pages.end());
  std::vector<std::string> breaches;
  for (const fs::path& source : sources) {
    read(root, source, false, breaches);
  }
  for (const fs::path& page : pages) {
    read(root, page, true, breaches);
  }
  return breaches;
}

}  // namespace commfuse::house
