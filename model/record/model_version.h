// SPDX-License-Identifier: Apache-2.0
// The version of the model, in a header of its own, so that a new version recompiles only what prints it.
#pragma once

namespace commfuse {

/// Version of the model behind the results, which change only when this number does.
inline constexpr int model_version = 29;

}  // namespace commfuse
