// SPDX-License-Identifier: Apache-2.0
// A schedule as JSON, for programs that prefer it to YAML.
#pragma once

#include <string>

#include "model/program/program.h"

namespace commfuse::reports {

/// Returns the tree of to_text(program), key by key in the same order: numbers and booleans keep their type, everything
/// else is a string. JSON is also YAML, so parse_program reads it back as an identical program. Each op has one line.
std::string schedule_json(const Program& program);

}  // namespace commfuse::reports
