// SPDX-License-Identifier: Apache-2.0
// Calls a command of commfuse-sim from Python: words in, an answer out.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "sim/commands/answer.h"

namespace commfuse::python {

/// Result of a command.
struct Called {
  int code = 0;          ///< Exit code of the command.
  std::string sentence;  ///< Error message; empty without an error.
  std::string help;      ///< Text of --help, if it was requested.
  std::string notes;     ///< Remarks in addition to the answer, as whole lines.
  bool has_answer = false;
  sim::Answer answer{};
};

/// Runs `commfuse-sim NAME WORDS...` on a thread of its own, without the interpreter's lock. Passes each piece of
/// progress to `write` as a single string; draws a bar if `shows_bars`. The calling thread checks for signals 20 times
/// a second: if a handler raises an exception, as the handler of SIGINT does, the command is stopped in an orderly way
/// and the exception is thrown. Requires the interpreter's lock.
Called call(const std::string& name, const std::vector<std::string>& words, const pybind11::object& write,
            bool shows_bars);

}  // namespace commfuse::python
