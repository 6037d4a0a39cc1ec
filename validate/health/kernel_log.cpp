// SPDX-License-Identifier: Apache-2.0
#include "validate/health/kernel_log.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

namespace commfuse::validate {

namespace {

constexpr std::string_view mark = "Xid (PCI:";
constexpr std::size_t max_address = 16;

/// Parses "SXid (PCI:0000:05:00.0): 12028, Non-fatal, ...", starting at its "Xid".
std::optional<XidEvent> event_in(std::string_view rest) {
  rest.remove_prefix(mark.size());
  const std::size_t closed = rest.substr(0, max_address + 1).find(')');
  if (closed == std::string_view::npos || closed == 0 ||
      rest.substr(0, closed).find_first_not_of("0123456789abcdefABCDEF:.") != std::string_view::npos) {
    return std::nullopt;
  }
  XidEvent event{.address = std::string(rest.substr(0, closed))};
  rest.remove_prefix(closed + 1);
  rest.remove_prefix(std::min(rest.find_first_not_of(": "), rest.size()));
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), event.code);
  return error == std::errc() && event.code >= 0 ? std::optional(event) : std::nullopt;
}

}  // namespace

std::vector<XidEvent> xids_in(std::string_view log_text) {
  std::vector<XidEvent> events;
  std::set<XidEvent> seen;
  for (std::size_t at = log_text.find(mark); at != std::string_view::npos; at = log_text.find(mark, at + 1)) {
    std::optional<XidEvent> event = event_in(log_text.substr(at));
    if (!event) {
      continue;
    }
    event->of_switch = at > 0 && log_text[at - 1] == 'S';
    if (seen.insert(*event).second) {
      events.push_back(*std::move(event));
    }
  }
  return events;
}

}  // namespace commfuse::validate
