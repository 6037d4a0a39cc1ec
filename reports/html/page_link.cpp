// SPDX-License-Identifier: Apache-2.0
#include "reports/html/page_link.h"

#include <fmt/format.h>

namespace commfuse::reports {

namespace {

/// Percent-encodes `text` (RFC 3986), but keeps commas, slashes and colons, which are legal in a fragment and readable,
/// and writes a space as "+".
std::string encoded(std::string_view text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~,/:";
  std::string result;
  for (const char letter : text) {
    result += letter == ' ' ? std::string("+")
              : plain.find(letter) != std::string_view::npos
                  ? std::string(1, letter)
                  : fmt::format("%{:02X}", static_cast<unsigned char>(letter));
  }
  return result;
}

}  // namespace

std::string page_hash(const ResultRow& row, std::string_view implementations) {
  std::string hash = fmt::format("#model={}&hardware={}&scope={}&ranks={}&batch={}&seq={}&dtype={}", encoded(row.model),
                                 encoded(row.hardware), row.scope, row.ranks, row.batch, row.seq, row.dtype);
  const auto add = [&](std::string_view key, std::string_view text, std::string_view preset) {
    hash += text.empty() || text == preset ? "" : fmt::format("&{}={}", key, encoded(text));
  };
  add("as", implementations, "none");
  add("link_bandwidth", row.link_bandwidth, "x1");
  add("network_bandwidth", row.network_bandwidth, "x1");
  add("all_reduce_kernel", row.all_reduce_kernel, "nccl");
  for (const PriceSetting& setting : price_settings) {
    add(setting.key, row.*setting.member, setting.preset);
  }
  return hash;
}

}  // namespace commfuse::reports
