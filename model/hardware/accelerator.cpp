// SPDX-License-Identifier: Apache-2.0
#include "model/hardware/accelerator.h"

#include <fmt/format.h>

#include "model/check.h"
#include "model/config_error.h"

namespace commfuse {

const MatrixUnit& Accelerator::matrix_unit(DType dtype) const {
  const std::optional<MatrixUnit>& unit = matrix_units[index_of(dtype)];
  check(unit.has_value(), "the accelerator multiplies matrices of this dtype");
  return *unit;
}

void require_supported(const Accelerator& accelerator, DType dtype) {
  if (accelerator.supports(dtype)) {
    return;
  }
  std::string choices;
  for (const DType other : all_dtypes) {
    if (accelerator.supports(other)) {
      choices += fmt::format("{}{}", choices.empty() ? "" : ", ", name_of(other));
    }
  }
  throw ConfigError(
      fmt::format("{} does not support GEMMs in {}; choose one of {}", accelerator.name, name_of(dtype), choices));
}

}  // namespace commfuse
