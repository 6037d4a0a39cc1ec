// SPDX-License-Identifier: Apache-2.0
// Scales the rates that a file of a machine inherits from a file whose links have another nominal rate, as the settings
// link_bandwidth and network_bandwidth scale them (model/hardware/link_rates.h). Rates that the file states itself are
// those of its own links.
#pragma once

#include <string_view>
#include <vector>

#include "model/config/yaml_reader.h"
#include "model/hardware/link.h"

namespace commfuse {

/// Factors on the rates that a file inherits, by the level of the file that states them (YamlMap::level). The first is
/// that of the file's own rates, 1.
using RateFactors = std::vector<double>;

/// Returns the nominal rate of a link, "link" or "network", divided by its rate in each file that this file extends.
/// Notes a mistake if the rates differ by a factor above max_rate_factor.
RateFactors rate_factors(YamlFile& file, std::string_view link);

/// Returns the number of NICs per node, by level. A file that states none counts as having the number of this file.
std::vector<int> nics_by_level(YamlFile& file);

/// Scales the rate `key` of a map if another file states that rate. The scaled rate is a prior, like a rate that the
/// settings scale.
void scale_inherited(YamlMap map, std::string_view key, Parameter<BytesPerSecond>& rate, const RateFactors& factors);
/// Scales the inherited rates of exchanges, which were read from this map.
void scale_inherited(YamlMap map, PeerParameters& peer, const RateFactors& factors);
/// Scales the inherited rates of collectives, which were read from this map. Also scales NCCL's estimates, unless this
/// file states NCCL's channels or their rate. own_copy_rate and own_sum_rate stay the same.
void scale_inherited(YamlMap map, CollectiveParameters& collective, const RateFactors& factors);

}  // namespace commfuse
