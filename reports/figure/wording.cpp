// SPDX-License-Identifier: Apache-2.0
#include "reports/figure/wording.h"

#include <fmt/format.h>

#include <string_view>

#include "model/text/decimals.h"
#include "model/text/quantity.h"
#include "reports/trace_label.h"

namespace commfuse::reports {

std::string TimeUnit::name() const { return scale_.name == std::string_view("us") ? "\u00b5s" : scale_.name; }

std::string TimeUnit::text(Duration duration) const { return fmt::format("{} {}", digits(duration), name()); }

std::string percent(double share) { return with_decimals(100.0 * share, 1) + "%"; }

std::string label_of(const ResultRow& row) { return strategy_label(row.strategy, row.parameters); }

std::string with_minus(std::string number) {
  if (number.size() > 1 && number[0] == '-' && number[1] >= '0' && number[1] <= '9') {
    number.replace(0, 1, "\u2212");
  }
  return number;
}

std::string for_page(std::string_view text) {
  constexpr std::string_view microseconds = " us";
  const auto is_digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  const auto is_letter = [&](std::size_t at) { return at < text.size() && text[at] >= 'a' && text[at] <= 'z'; };
  std::string set;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool follows_blank = at > 0 && text[at - 1] == ' ';
    if (text.substr(at).starts_with(microseconds) && at > 0 && is_digit(at - 1) && !is_letter(at + 3)) {
      set += " \u00b5s";
      at += microseconds.size() - 1;
    } else if (text[at] == '-' && follows_blank && is_digit(at + 1)) {
      set += "\u2212";
    } else {
      set += text[at];
    }
  }
  return set;
}

std::string point_of(const ResultRow& row) { return fmt::format("ranks {}, seq {}", row.ranks, format_count(row.seq)); }

bool has_result(const ResultRow& row) { return makespan_of(row) > Duration{}; }

double times_slower(const ResultRow& slower, const ResultRow& faster) {
  return to_seconds(makespan_of(slower)) / to_seconds(makespan_of(faster));
}

}  // namespace commfuse::reports
