// SPDX-License-Identifier: Apache-2.0
// Environment variables apply to every command of a shell, so a variable that a run cannot use is ignored with a note.
// A setting from a flag, --set or a file is refused if the run cannot use it; if the run would use it only under
// jitter, with another model or on more ranks, a note says so.
#pragma once

#include <string>
#include <string_view>

#include "model/config/settings.h"

namespace commfuse {

struct Grid;
class Library;

/// Resets settings from environment variables to their defaults if the scope does not use them, or if they are options
/// that no named strategy has. Returns a note for each, in whole lines.
std::string ignore_unused_variables(Settings& settings);
/// Overload for a grid. A variable must be usable at every point; axes are not changed.
std::string ignore_unused_variables(Grid& grid);
/// Overload for work without a scope; `work_in_words` is the subject of the notes, such as "tune".
std::string ignore_unused_variables(Settings& settings, Use work, std::string_view work_in_words);

/// Returns a note, in whole lines, for each of `samples` and `seed` that was chosen or varies although it changes no
/// time, because no point has jitter or the points are whole models. `work` is the work of settings without a scope: a
/// lab workload draws its tile lengths with the seed.
std::string notes_on_unused_draws(const Grid& grid);
std::string notes_on_unused_draws(const Settings& settings);
std::string notes_on_unused_draws(const Settings& settings, Use work);

/// Returns a note, in whole lines, for each chosen or varied method that changes no time: decoding of latent attention
/// if no model has it, and the kernel of all-reduces if no point has more than one rank to sum over. Requires the
/// library of the grid.
std::string notes_on_unused_methods(const Grid& grid, const Library& library);

}  // namespace commfuse
