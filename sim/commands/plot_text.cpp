// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/plot_text.h"

#include <langinfo.h>
#include <locale.h>  // NOLINT(modernize-deprecated-headers): newlocale is POSIX

#include <algorithm>
#include <string_view>

#include "model/wrapped.h"
#include "reports/figure/terminal.h"

namespace commfuse::sim {

namespace {

/// Returns whether the user's locale is UTF-8. Does not change this program's locale.
bool has_utf8_locale() {
  const locale_t user = ::newlocale(LC_CTYPE_MASK, "", nullptr);
  if (user == nullptr) {
    return false;
  }
  const bool utf8 = std::string_view(::nl_langinfo_l(CODESET, user)) == "UTF-8";
  ::freelocale(user);
  return utf8;
}

/// Returns the width of plots. They use more of a wide terminal than text does.
int plot_columns() {
  constexpr std::size_t min_columns = 40;
  constexpr std::size_t max_columns = 200;
  return static_cast<int>(std::clamp(terminal_columns().value_or(page_width), min_columns, max_columns));
}

}  // namespace

std::string plots_in_words(std::span<const reports::Figure> figures) {
  const reports::TerminalOptions options{.columns = plot_columns(), .unicode = has_utf8_locale()};
  std::string text;
  for (const reports::Figure& figure : figures) {
    text += "\n" + reports::terminal_plot(figure, options);
  }
  return text;
}

}  // namespace commfuse::sim
