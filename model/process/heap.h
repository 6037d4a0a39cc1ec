// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace commfuse {

/// Lets the heap of this process grow in large pages, if the system has them, and keep freed memory. A schedule of
/// 65,536 ranks needs tens of megabytes in a few arrays, and every micro-benchmark allocates new buffers; with small
/// pages, both spend a third of their time in the kernel. Changes no result. Call it at the start of main().
void use_large_pages();

}  // namespace commfuse
