// SPDX-License-Identifier: Apache-2.0
// What every reader of another program's settings returns.
#pragma once

#include <string>
#include <vector>

#include "sim/import/step_settings.h"

namespace commfuse::import {

/// A training step: its model is either a file or a name.
struct Imported {
  std::string model;       ///< YAML, commfuse.model/1; empty where `model_name` says it.
  std::string model_name;  ///< Of the catalogue, or a path.
  StepSettings step;
  std::string origin;              ///< "From a command line of Megatron-LM."
  std::vector<std::string> notes;  ///< Sentences: what was assumed, and what has no counterpart.
};

/// YAML, commfuse.run/1, without `model`.
inline std::string run_text(const Imported& import) { return run_text(import.step, import.origin); }

}  // namespace commfuse::import
