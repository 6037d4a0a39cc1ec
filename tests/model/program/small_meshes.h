// SPDX-License-Identifier: Apache-2.0
// Meshes of a few ranks.
#pragma once

#include "model/program/mesh.h"

namespace commfuse::test {

inline const Mesh four{{{"tp", 4}}};
inline const Mesh two_by_three{{{"node", 2}, {"tp", 3}}};

}  // namespace commfuse::test
