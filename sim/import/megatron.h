// SPDX-License-Identifier: Apache-2.0
// Converts a Megatron-LM command line or launch script, and its tp_comm_overlap_cfg, to a model and the settings of a
// training step.
#pragma once

#include <string>
#include <string_view>

#include "sim/import/imported.h"
#include "sim/import/options.h"

namespace commfuse::import {

/// `text` is a command line, or a shell script that contains one. Comments, quotes, joined lines, arrays, NAME=value,
/// NAME+=value, $NAME, ${NAME} and ${NAME:-value} are supported, but no other part of the shell's grammar. `path` names
/// the file in messages; `name` becomes the name of the model. Throws ConfigError (`path:line: sentence; remedy`) for a
/// size that is missing or not a number, and for a variable that the text does not set.
Imported read_megatron(std::string_view text, const std::string& path, const std::string& name);
/// Reads the source's file as the overload above reads a text. Option: --overlap, the file of --tp-comm-overlap-cfg.
Imported read_megatron(const Source& source);

/// Returns true only if the text unmistakably contains a Megatron-LM command line.
bool is_megatron(std::string_view text);

/// The collectives that a launch script lets Transformer Engine overlap with their own GEMM.
struct OverlapSwitches {
  bool gathers = true;   ///< False with --disable-tp-comm-overlap-ag: in forward and in backward passes.
  bool scatters = true;  ///< False with --disable-tp-comm-overlap-rs.
};

/// Reads Transformer Engine's userbuffers settings. Sets the framework of the step and the GEMMs that its
/// implementation runs. Adds notes with the methods that the step prices and does not price, with the GEMMs that the
/// switches turn off, and with the GEMMs that have Transformer Engine's default method because the file lacks them.
/// Throws ConfigError if the file has another format.
void add_overlap(const std::string& path, Imported& import, OverlapSwitches switches = {});
/// Does the same for --tp-comm-overlap without a file, which acts like a file without GEMMs.
void add_default_overlap(Imported& import, OverlapSwitches switches);

}  // namespace commfuse::import
