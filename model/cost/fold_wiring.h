// SPDX-License-Identifier: Apache-2.0
// Less wiring that gives the same rates: of a few ranks that stand for all, and without links that do not matter.
#pragma once

#include <optional>

#include "model/cost/fluid.h"
#include "model/program/mesh.h"

namespace commfuse {

/// Wiring of the first ranks of the mesh. A transfer stands for those of the ranks that its sender stands for, and a
/// link for those that these cross in its place; Wiring::times says how many of the former are on one of the latter.
/// Where all ranks do the same at the same time, transfers get the same rates here as there, to the last bit.
///
/// Nothing when `ranks` do not fold the mesh, when the ranks that one stands for do not cross like links in the same
/// order, or when the transfers of a link have different caps: sums of these would depend on their order.
std::optional<Wiring> folded_wiring(const Wiring& wiring, const Mesh& mesh, Rank ranks);

/// The same without links that can never be full first: of links that exactly the same transfers cross, as a GPU's port
/// and the wire to its NIC, the narrowest stays. Rates do not change, to the last bit.
Wiring narrowest_links(const Wiring& wiring);

}  // namespace commfuse
