// SPDX-License-Identifier: Apache-2.0
// Environment variables apply to every command of a shell, so a variable that a run cannot use is ignored with a note.
// A setting that a flag, --set or a file gives is refused if the run cannot use it.
#pragma once

#include <string>
#include <string_view>

#include "model/config/settings.h"

namespace commfuse {

struct Grid;

/// Returns settings of environment variables to their defaults if the scope does not use them, or if they are options
/// that no named strategy has. Returns a note for each, in whole lines.
std::string ignore_unused_variables(Settings& settings);
/// Does the same for a grid. A variable must be usable at every point; axes are not changed.
std::string ignore_unused_variables(Grid& grid);
/// Does the same for work without a scope; `work_in_words` is the subject of the notes, such as "tune".
std::string ignore_unused_variables(Settings& settings, Use work, std::string_view work_in_words);

}  // namespace commfuse
