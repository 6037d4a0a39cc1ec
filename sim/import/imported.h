// SPDX-License-Identifier: Apache-2.0
// What every reader of another program's settings returns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace commfuse::import {

/// A training step: its model is either a file or a name.
struct Imported {
  std::string model;               ///< YAML, commfuse.model/1; empty where `model_name` says it.
  std::string model_name;          ///< Of the catalogue, or a path.
  std::string run;                 ///< YAML, commfuse.run/1, without its `model`.
  std::int64_t gpus = 1;           ///< GPUs that the run takes.
  std::vector<std::string> notes;  ///< Sentences: what was assumed, and what has no counterpart.
};

}  // namespace commfuse::import
