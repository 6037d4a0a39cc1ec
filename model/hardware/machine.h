// SPDX-License-Identifier: Apache-2.0
// A node of equal accelerators on one link.
#pragma once

#include <string>

#include "model/hardware/accelerator.h"
#include "model/hardware/link.h"

namespace commfuse {

struct Machine {
  std::string name;
  Accelerator accelerator;
  Link link;
  int gpus_per_node = 0;
};

}  // namespace commfuse
