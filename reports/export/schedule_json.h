// SPDX-License-Identifier: Apache-2.0
// A schedule as JSON, for programs that prefer it to YAML.
#pragma once

#include <string>

#include "model/program/program.h"

namespace commfuse::reports {

/// Returns the tree of to_text(program), key by key in the same order: numbers and booleans as such, the rest as
/// strings. JSON is YAML, so parse_program reads it back into an equal program. Each op has one line.
std::string schedule_json(const Program& program);

}  // namespace commfuse::reports
