// SPDX-License-Identifier: Apache-2.0
// A schedule as JSON, for programs that would rather not read YAML.
#pragma once

#include <string>

#include "model/program/program.h"

namespace commfuse::reports {

/// The tree of to_text(program), key by key and in the same order: numbers and booleans as such, all else as strings.
/// JSON is YAML, so parse_program reads it back into the same program. One line an op.
std::string schedule_json(const Program& program);

}  // namespace commfuse::reports
