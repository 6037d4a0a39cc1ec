// SPDX-License-Identifier: Apache-2.0
// From a Megatron-LM command line or launch script, and its tp_comm_overlap_cfg, to a model and the settings of a step.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace commfuse::import {

struct MegatronImport {
  std::string model;               ///< YAML, commfuse.model/1
  std::string run;                 ///< YAML, commfuse.run/1, without its `model`
  std::vector<std::string> notes;  ///< Sentences: what was assumed, and what has no counterpart.
};

/// `text` is a command line, or a shell script that holds one: comments, quotes, arrays, NAME=value and ${NAME} or
/// ${NAME:-value} are understood, nothing else of the shell is. `path` names it in messages, `name` the model. Throws
/// ConfigError (`path:line: sentence; remedy`) for a size that is missing or no number, or a variable that is not set
/// in the text.
MegatronImport read_megatron(std::string_view text, const std::string& path, const std::string& name);

/// What Transformer Engine's userbuffers do with the products of the forward pass, as settings of a strategy:
/// ring_exchange and pipeline have one here, bulk has none. Adds to the run and to the notes. Throws ConfigError where
/// it is no such file.
void add_overlap(const std::string& path, MegatronImport& import);

}  // namespace commfuse::import
