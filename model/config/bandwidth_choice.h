// SPDX-License-Identifier: Apache-2.0
// A user's choice of a link's bandwidth: a multiple of the link's own rates, "x2", or a rate, "450 GB/s".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/settings.h"
#include "model/hardware/machine.h"

namespace commfuse {

/// Holds exactly one of the two members.
struct BandwidthChoice {
  std::optional<double> times;         ///< Multiple of the machine's own rates, 0.001 to 1000.
  std::optional<BytesPerSecond> rate;  ///< Nominal rate of one direction, as in a data sheet; above 0.
};

/// Returns nullopt when `text` is not a bandwidth choice.
std::optional<BandwidthChoice> parse_bandwidth_choice(std::string_view text);
/// Returns a string such as "x0.5" or "450 GB/s".
std::string format_bandwidth_choice(const BandwidthChoice& choice);

/// Returns the values of the range `first..last`, each `factor` times the previous one; `last` is included when the
/// steps meet it. Requires `first` and `last` to be both factors or both rates, and `factor` > 1.
std::vector<BandwidthChoice> bandwidth_range(const BandwidthChoice& first, const BandwidthChoice& last, double factor);

/// Returns the machine with the links and the all-reduce kernel that the settings choose. Throws ConfigError when they
/// choose a network bandwidth for a machine without a network, links more than a thousand times as fast or as slow as
/// the machine's own, or a kernel that was not measured on the machine.
Machine with_chosen_links(Machine machine, const Settings& settings);

/// Loads the machine that the settings name, with the links and the all-reduce kernel that they choose. Throws
/// ConfigError like load_machine and like with_chosen_links.
Machine machine_of(const Settings& settings);

}  // namespace commfuse
