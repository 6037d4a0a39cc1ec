// SPDX-License-Identifier: Apache-2.0
// A command of commfuse-sim, called from Python: words in, an answer out.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "sim/commands/answer.h"

namespace commfuse::python {

/// How a command ended.
struct Called {
  int code = 0;          ///< Exit code of the command.
  std::string sentence;  ///< What went wrong; empty where there is an answer.
  std::string help;      ///< Asked for with --help.
  std::string notes;     ///< Remarks beside the answer: whole lines.
  bool has_answer = false;
  sim::Answer answer{};
};

/// Runs `commfuse-sim NAME WORDS...` on a thread of its own without the interpreter's lock. Pieces of progress go to
/// `write`, which is called with one text; a bar is drawn where `shows_bars`. On the calling thread signals are looked
/// at 20 times a second: when a handler raises, as that of SIGINT does, the command is stopped in order and what was
/// raised comes out. Requires the lock.
Called call(const std::string& name, const std::vector<std::string>& words, const pybind11::object& write,
            bool shows_bars);

}  // namespace commfuse::python
