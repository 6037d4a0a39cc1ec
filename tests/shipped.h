// SPDX-License-Identifier: Apache-2.0
// Machines and models that this project ships.
#pragma once

#include <optional>
#include <string>

#include "model/config/catalogue.h"

namespace commfuse::test {

inline const std::string configs_folder = COMMFUSE_SOURCE_DIR "/configs";

/// Loads a file of configs/, for example "hardware/h100-sxm.yaml".
inline Machine shipped_machine(const std::string& file) { return load_machine(configs_folder + "/" + file); }

/// Returns the duration, rounded to whole picoseconds.
inline Duration in_microseconds(double value) { return from_seconds(1e-6 * value); }

inline Machine h100_machine() { return shipped_machine("hardware/h100-sxm.yaml"); }
inline Accelerator h100_accelerator() { return h100_machine().accelerator; }

/// Removes the tables of kernel choices, so that the formula alone prices GEMMs.
inline Accelerator by_formula_alone(Accelerator accelerator) {
  for (std::optional<MatrixUnit>& unit : accelerator.matrix_units) {
    if (unit) {
      unit->kernel_choice = nullptr;
    }
  }
  return accelerator;
}

inline Transformer shipped_llama_70b() { return load_model(configs_folder + "/models/llama-3.1-70b.yaml"); }

}  // namespace commfuse::test
