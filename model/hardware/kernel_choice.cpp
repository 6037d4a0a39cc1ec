// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/kernel_choice.h"

#include <fmt/format.h>

namespace commfuse {

std::string m_key(int log2_of_m) { return fmt::format("m_{}", 1 << log2_of_m); }

std::string n_key(int log2_of_n) { return fmt::format("n_{}", 1 << log2_of_n); }

std::string tiles_key(int log2_of_tiles) {
  return log2_of_tiles < 0 ? fmt::format("1/{}", 1 << -log2_of_tiles) : fmt::format("{}", 1 << log2_of_tiles);
}

}  // namespace commfuse
