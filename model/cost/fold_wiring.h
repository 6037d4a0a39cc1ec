// SPDX-License-Identifier: Apache-2.0
// Reduces wiring without changing rates: a few ranks stand for all, and links that never limit a transfer are dropped.
#pragma once

#include <optional>

#include "model/cost/fluid.h"
#include "model/program/mesh.h"

namespace commfuse {

/// Returns the wiring of the first ranks of the mesh. A transfer stands for the transfers of the ranks that its sender
/// stands for, and a link for the links that these transfers cross; Wiring::times is the number of these transfers on
/// one of the links. If all ranks do the same at the same time, transfers get the same rates as in the full wiring, to
/// the last bit.
///
/// Returns nullopt when `ranks` do not fold the mesh, when the ranks behind one rank do not cross equal links in the
/// same order, or when the transfers of a link have different caps, because their sum would depend on their order.
std::optional<Wiring> folded_wiring(const Wiring& wiring, const Mesh& mesh, Rank ranks);

/// Returns the wiring without links that can never be full first: if exactly the same transfers cross several links,
/// such as a GPU's port and the wire to its NIC, only the narrowest is kept. Rates do not change, to the last bit.
Wiring narrowest_links(const Wiring& wiring);

}  // namespace commfuse
