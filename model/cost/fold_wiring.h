// SPDX-License-Identifier: Apache-2.0
// Reduces wiring without changing rates: a few ranks represent all ranks, and links that never limit a transfer are
// dropped.
#pragma once

#include <optional>

#include "model/cost/fluid.h"
#include "model/program/mesh.h"

namespace commfuse {

/// Returns the wiring of the first `ranks` ranks of the mesh. Each transfer represents the transfers of all ranks that
/// its sender represents, and each link the links that these transfers cross; Wiring::times is the number of these
/// transfers on one such link. If all ranks do the same at the same time, transfers get the same rates as in the full
/// wiring, bit for bit.
///
/// Returns nullopt when `ranks` do not fold the mesh, when the ranks that one rank represents do not cross equal links
/// in the same order, or when the transfers of a link have different caps, because the sum of the caps would depend on
/// the order of the transfers.
std::optional<Wiring> folded_wiring(const Wiring& wiring, const Mesh& mesh, Rank ranks);

/// Returns the wiring without links that never fill up before another link: if exactly the same transfers cross several
/// links, such as a GPU's port and the wire to its NIC, only the narrowest is kept. Rates stay the same, bit for bit.
Wiring narrowest_links(const Wiring& wiring);

}  // namespace commfuse
