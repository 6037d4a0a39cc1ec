// SPDX-License-Identifier: Apache-2.0
#include "model/wrapped.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <system_error>

namespace commfuse {

std::optional<std::size_t> terminal_columns() {
  // Safe, because no thread sets environment variables.
  if (const char* const value = std::getenv("COLUMNS"); value != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    const std::string_view text(value);
    std::size_t columns = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
    if (error == std::errc{} && end == text.data() + text.size() && columns > 0) {
      return columns;
    }
  }
  winsize window{};
  const bool is_known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0;
  return is_known ? std::optional<std::size_t>(window.ws_col) : std::nullopt;
}

std::size_t terminal_width() {
  constexpr std::size_t least = 60;
  constexpr std::size_t largest = 120;  // Longer lines of prose are hard to read.
  return std::clamp(terminal_columns().value_or(page_width), least, largest);
}

std::string wrapped(std::string_view text, std::string_view first, std::string_view later, std::size_t width) {
  std::string lines;
  std::string line(first);
  bool has_word = false;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t space = std::min(text.find(' ', start), text.size());
    const std::string_view word = text.substr(start, space - start);
    if (has_word && line.size() + 1 + word.size() > width) {
      lines += line + "\n";
      line = later;
      has_word = false;
    }
    line += has_word ? " " : "";
    line += word;
    has_word = true;
    start = space + 1;
  }
  return lines + line + "\n";
}

}  // namespace commfuse
