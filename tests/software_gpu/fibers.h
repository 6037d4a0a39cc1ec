// SPDX-License-Identifier: Apache-2.0
// Runs a kernel on one thread of the host: a fiber for each thread of a block (docs/decisions/0064-software-gpu.md).
#pragma once

#include <cstdint>
#include <functional>

#include "tests/software_gpu/include/software_gpu.h"

namespace software_gpu {

/// Runs `body` once for every thread of the grid; returns when all have returned. The seed determines the order in
/// which blocks begin, and in which threads continue after every barrier. A block begins once the blocks before it have
/// ended or are asleep. Ends the process with an error if threads of a block wait for each other forever.
void run_kernel(const char* name, const KernelShape& shape, const std::function<void()>& body, std::uint64_t seed);

}  // namespace software_gpu
