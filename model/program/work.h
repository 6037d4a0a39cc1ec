// SPDX-License-Identifier: Apache-2.0
// Identifies the work of a schedule, whatever its author and its order of ops.
#pragma once

#include <string>
#include <vector>

#include "model/program/program.h"

namespace commfuse {

/// Returns one text for the operation behind the final contents and the share of its tensors that a rank begins and
/// ends with: two schedules that may be compared have equal texts. Names of tensors, order of declarations, dtypes and
/// the slicing of dimensions do not matter; names of dimensions do. Requires a program that passed check_program().
std::string work_of(const Program& program);

/// Returns the dtypes of its products and attention, in the order of all_dtypes.
std::vector<DType> product_dtypes(const Program& program);

}  // namespace commfuse
