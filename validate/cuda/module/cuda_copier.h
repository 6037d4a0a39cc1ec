// SPDX-License-Identifier: Apache-2.0
// The copier over the CUDA runtime.
#pragma once

#include <memory>

#include "validate/cuda/copier.h"

namespace commfuse::validate {

/// Makes a copier of the first `gpus` GPUs. Enables peer access between all GPUs that support it, in the whole process.
std::unique_ptr<Copier> make_cuda_copier(int gpus, Duration patience);

}  // namespace commfuse::validate
