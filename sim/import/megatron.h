// SPDX-License-Identifier: Apache-2.0
// From a Megatron-LM command line or launch script, and its tp_comm_overlap_cfg, to a model and the settings of a step.
#pragma once

#include <string>
#include <string_view>

#include "sim/import/imported.h"
#include "sim/import/options.h"

namespace commfuse::import {

/// `text` is a command line, or a shell script that holds one: comments, quotes, arrays, NAME=value and ${NAME} or
/// ${NAME:-value} are understood, nothing else of the shell is. `path` names it in messages, `name` the model. Throws
/// ConfigError (`path:line: sentence; remedy`) for a size that is missing or no number, or a variable that is not set
/// in the text.
Imported read_megatron(std::string_view text, const std::string& path, const std::string& name);
/// The same of a file. Option: --overlap, the file of --tp-comm-overlap-cfg.
Imported read_megatron(const Source& source);

/// Whether the text is certainly such a command line.
bool is_megatron(std::string_view text);

/// What Transformer Engine's userbuffers do with the products of the forward pass, as settings of a strategy:
/// ring_exchange and pipeline have one here, bulk has none. Adds to the run and to the notes. Throws ConfigError where
/// it is no such file.
void add_overlap(const std::string& path, Imported& import);

}  // namespace commfuse::import
