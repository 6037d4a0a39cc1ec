// SPDX-License-Identifier: Apache-2.0
// Reads the map `kernel_choice` next to `gemm`: the table itself, or `as: h100-sxm/bf16`, the table of another file.
#pragma once

#include <memory>

#include "model/config/yaml_reader.h"
#include "model/hardware/kernel_choice.h"

namespace commfuse {

/// Reads the optional field `kernel_choice` of `unit`, the map of one dtype in `file`; returns null when it is absent.
/// Mistakes are noted in the file.
std::shared_ptr<const KernelChoice> read_kernel_choice(const YamlFile& file, YamlMap unit);

}  // namespace commfuse
