// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace commfuse::sim {

/// Lets this process's heap grow in large pages where the system has them, and keep what it freed. A schedule of 65,536
/// ranks is tens of megabytes in a few lists; asked for in small pages, a third of such a run went by in the kernel.
/// Changes no result. Call it first.
void use_large_pages();

}  // namespace commfuse::sim
