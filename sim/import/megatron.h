// SPDX-License-Identifier: Apache-2.0
// Converts a Megatron-LM command line or launch script, and its tp_comm_overlap_cfg, to a model and the settings of a
// training step.
#pragma once

#include <string>
#include <string_view>

#include "sim/import/imported.h"
#include "sim/import/options.h"

namespace commfuse::import {

/// `text` is a command line, or a shell script that holds one: comments, quotes, arrays, NAME=value and ${NAME} or
/// ${NAME:-value} are understood, but no other part of the shell's grammar. `path` names the file in messages, `name`
/// the model. Throws ConfigError (`path:line: sentence; remedy`) for a size that is missing or not a number, or a
/// variable that is not set in the text.
Imported read_megatron(std::string_view text, const std::string& path, const std::string& name);
/// Reads the source's file in the same way. Option: --overlap, the file of --tp-comm-overlap-cfg.
Imported read_megatron(const Source& source);

/// Returns whether the text certainly is such a command line.
bool is_megatron(std::string_view text);

/// Converts Transformer Engine's userbuffers settings for the GEMMs of the forward pass to settings of a strategy:
/// ring_exchange and pipeline have a counterpart, bulk has none. Adds to the run and to the notes. Throws ConfigError
/// where the file has another format.
void add_overlap(const std::string& path, Imported& import);

}  // namespace commfuse::import
