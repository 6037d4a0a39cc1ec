// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/host_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "model/text/quantity.h"

namespace commfuse {

namespace {

/// A generation of PCIe: GT/s per lane, and the usual rounded GB/s of 16 lanes in one direction after line coding.
struct Generation {
  double gigatransfers = 0.0;
  double gigabytes_of_16 = 0.0;
};
constexpr std::array<Generation, 8> generations{
    Generation{},           Generation{2.5, 4.0},   Generation{5.0, 8.0},    Generation{8.0, 15.75},
    Generation{16.0, 31.5}, Generation{32.0, 63.0}, Generation{64.0, 121.0}, Generation{128.0, 242.0}};
constexpr std::array<std::int64_t, 6> widths{1, 2, 4, 8, 16, 32};

}  // namespace

std::optional<HostLink> host_link_named(std::string_view text) {
  constexpr std::string_view begin = "PCIe ";
  const std::size_t cross = text.find(" x");
  if (!text.starts_with(begin) || cross == std::string_view::npos || cross < begin.size()) {
    return std::nullopt;
  }
  const auto generation = parse_integer(std::string(text.substr(begin.size(), cross - begin.size())));
  const auto lanes = parse_integer(std::string(text.substr(cross + 2)));
  const bool is_known = generation && *generation >= 1 && *generation < static_cast<std::int64_t>(generations.size()) &&
                        lanes && std::find(widths.begin(), widths.end(), *lanes) != widths.end();
  return is_known ? std::optional(HostLink{static_cast<std::uint8_t>(*generation), static_cast<std::uint8_t>(*lanes)})
                  : std::nullopt;
}

std::string name_of(const HostLink& link) {
  return link.generation == 0 ? "" : fmt::format("PCIe {} x{}", link.generation, link.lanes);
}

double gigatransfers_of(const HostLink& link) { return generations.at(link.generation).gigatransfers; }

BytesPerSecond rate_of(const HostLink& link) {
  constexpr double lanes_of_table = 16.0;
  return {1e9 * generations.at(link.generation).gigabytes_of_16 * link.lanes / lanes_of_table};
}

}  // namespace commfuse
