// SPDX-License-Identifier: Apache-2.0
// What a user wants a link to be: "x2" of its own rates, or "450 GB/s".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/settings.h"
#include "model/hardware/machine.h"

namespace commfuse {

/// One of the two.
struct BandwidthChoice {
  std::optional<double> times;         ///< Of the machine's own rates, 0.001 to 1000.
  std::optional<BytesPerSecond> rate;  ///< Of one direction, as the data sheet's nominal rate; above 0.
};

/// Nothing for any other text.
std::optional<BandwidthChoice> parse_bandwidth_choice(std::string_view text);
/// "x0.5"; "450 GB/s".
std::string format_bandwidth_choice(const BandwidthChoice& choice);

/// The values that `first..last` means where each is so many times the one before; the last is included where the steps
/// meet it. Requires two factors or two rates, and times > 1.
std::vector<BandwidthChoice> bandwidth_range(const BandwidthChoice& first, const BandwidthChoice& last, double times);

/// The machine with the links that the settings want. Throws ConfigError for a network where there is none, and for
/// links a thousand times as fast, or as slow, as they are.
Machine with_chosen_links(Machine machine, const Settings& settings);

/// Settings name the machine by its file and what they want of its links. Throws ConfigError as load_machine, and as
/// above.
Machine machine_of(const Settings& settings);

}  // namespace commfuse
