// SPDX-License-Identifier: Apache-2.0
// Reads the map `kernel_choice` next to `gemm`: the table itself, or `as: h100-sxm/bf16`, the table of another file.
#pragma once

#include <filesystem>
#include <memory>

#include "model/config/yaml_reader.h"
#include "model/hardware/kernel_choice.h"

namespace commfuse {

/// Reads the optional field `kernel_choice` of `unit`, the map of one dtype; returns null when it is absent. A relative
/// path in `as` starts at the folder of `naming_file`, the file that gives the field. Mistakes are noted in the map's
/// file.
std::shared_ptr<const KernelChoice> read_kernel_choice(const std::filesystem::path& naming_file, YamlMap unit);

}  // namespace commfuse
