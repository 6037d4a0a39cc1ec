// SPDX-License-Identifier: Apache-2.0
// PCIe link between a GPU and its host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/units.h"

namespace commfuse {

/// Both members are 0 if the link is unknown or is not PCIe.
struct HostLink {
  std::uint8_t generation = 0;
  std::uint8_t lanes = 0;
  friend bool operator==(const HostLink&, const HostLink&) = default;
};

/// Reads "PCIe 5 x16": generations 1 to 7; 1, 2, 4, 8, 16 or 32 lanes. Returns nullopt for any other string.
std::optional<HostLink> host_link_named(std::string_view text);

/// Returns "PCIe 5 x16"; empty if the link is unknown.
std::string name_of(const HostLink& link);

/// Returns the transfers of one lane, in GT/s: 32 for generation 5; 0 if the link is unknown.
double gigatransfers_of(const HostLink& link);

/// Returns the rate of one direction as data sheets state it: 63 GB/s for "PCIe 5 x16"; 0 if the link is unknown.
BytesPerSecond rate_of(const HostLink& link);

}  // namespace commfuse
