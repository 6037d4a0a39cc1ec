// SPDX-License-Identifier: Apache-2.0
// The parameters of a link as lines of a hardware file.
#pragma once

#include <string>

#include "model/hardware/link.h"

namespace commfuse {

/// The lines of a `peer:` map, each behind `indent` spaces.
std::string peer_yaml(const PeerParameters& peer, int indent);

/// The lines of a `collective:` map with all the maps in it, each behind `indent` spaces. Values have four digits.
std::string collective_yaml(const CollectiveParameters& collective, int indent);

}  // namespace commfuse
