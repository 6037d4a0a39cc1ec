// SPDX-License-Identifier: Apache-2.0
// What `bench` and `calibrate` share: flags become a record of micro-benchmarks.
#pragma once

#include <string>

#include "model/record/run_record.h"
#include "validate/commands/pace_flags.h"

namespace CLI {
class App;
}

namespace commfuse::validate {

/// As written on the command line.
struct MicroArguments {
  std::string executor = "cpu";
  std::string ranks = "2";
  std::string dtypes = "bf16";
  PaceArguments pace;
  bool quick = false;
};

/// The arguments must outlive the parsing.
void add_micro_flags(CLI::App& command, MicroArguments& arguments);

/// Takes them now; progress goes to stderr where that is a terminal. Throws ConfigError for flags that make no sense.
RunRecord micro_measured(const MicroArguments& arguments);

}  // namespace commfuse::validate
