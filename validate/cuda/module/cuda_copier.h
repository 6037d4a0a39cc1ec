// SPDX-License-Identifier: Apache-2.0
// The copier over the CUDA runtime.
#pragma once

#include <memory>

#include "validate/cuda/copier.h"

namespace commfuse::validate {

/// Of the first `gpus` GPUs. GPUs that may reach each other do so from then on, for the whole process.
std::unique_ptr<Copier> make_cuda_copier(int gpus, Duration patience);

}  // namespace commfuse::validate
