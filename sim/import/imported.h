// SPDX-License-Identifier: Apache-2.0
// The result of every reader of another program's settings.
#pragma once

#include <string>
#include <vector>

#include "sim/import/step_settings.h"

namespace commfuse::import {

/// A training step, with its model as a file or a name.
struct Imported {
  std::string model;       ///< YAML, commfuse.model/1; empty if `model_name` is set.
  std::string model_name;  ///< Name in the catalogue, or a path; empty if `model` is set.
  StepSettings step;
  std::string origin;              ///< "From a command line of Megatron-LM."
  std::vector<std::string> notes;  ///< Sentences about assumptions and about settings without a counterpart.
};

/// Returns YAML, commfuse.run/1, without `model`.
inline std::string run_text(const Imported& import) { return run_text(import.step, import.origin); }

}  // namespace commfuse::import
