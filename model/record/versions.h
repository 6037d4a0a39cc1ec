// SPDX-License-Identifier: Apache-2.0
// Versions of the program, of its predictions, and of every format of files and output.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace commfuse {

/// Returns the schemas that this build writes, such as "commfuse.capacity/1", in alphabetical order. The build also
/// reads those that are formats of input files. A test compares the list with the sources.
std::span<const std::string_view> written_schemas();
/// Returns the older schemas that this build can still read.
std::span<const std::string_view> read_schemas();

/// Returns "commfuse-sim 0.1.0 (0123456789ab), model version 15" and one line each for the compiler, the build, the
/// libraries and the schemas.
std::string versions_as_text(std::string_view program);
/// Returns {"schema": "commfuse.version/1", "program": ..., "version": ..., "model_version": ..., "schemas": [...],
/// ...}
std::string versions_as_json(std::string_view program);

}  // namespace commfuse
