// SPDX-License-Identifier: Apache-2.0
// Parameters of a link as lines of a hardware file.
#pragma once

#include <string>

#include "model/hardware/link.h"

namespace commfuse {

/// Returns the highest rate up to `limit` with four significant digits. Limit fitted rates to it, because a rate
/// limited to wires of 449.96 GB/s would be written as 450 GB/s, which the wires do not carry.
BytesPerSecond writable_up_to(BytesPerSecond limit);

/// Returns the lines of a `peer:` map, each indented by `indent` spaces.
std::string peer_yaml(const PeerParameters& peer, int indent);

/// Returns the lines of a `collective:` map with all the maps in it, each indented by `indent` spaces. Values have four
/// significant digits.
std::string collective_yaml(const CollectiveParameters& collective, int indent);

/// Returns the lines of one framework's map below `custom_all_reduce:`, each indented by `indent` spaces.
std::string custom_all_reduce_yaml(const CustomAllReduce& kernels, int indent);

}  // namespace commfuse
