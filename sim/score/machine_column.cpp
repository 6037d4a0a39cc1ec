// SPDX-License-Identifier: Apache-2.0
#include "sim/score/machine_column.h"

namespace commfuse::score {

FoundMachine machine_of_table(const Table& table, const Context& context) {
  FoundMachine found = context.machines.in_prose(table.comment("hardware"));
  if (found.machine == nullptr && table.comment("hardware").empty()) {
    found = context.machines.in_prose(context.file_name);
  }
  return found;
}

}  // namespace commfuse::score
