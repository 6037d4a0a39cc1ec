// SPDX-License-Identifier: Apache-2.0
// Identifies the work of a schedule independently of its generator and its order of ops.
#pragma once

#include <string>
#include <vector>

#include "model/program/program.h"

namespace commfuse {

/// Returns a string that describes the operation that computes the final contents, and the parts of its tensors that
/// each rank holds at the beginning and at the end. Two schedules may be compared if their texts are equal. The text
/// does not depend on names of tensors, order of declarations, dtypes or the slicing of dimensions, but it depends on
/// names of dimensions. Requires `program` to have passed check_program().
std::string work_of(const Program& program);

/// Returns the dtypes of the program's GEMMs and attention, in the order of all_dtypes.
std::vector<DType> product_dtypes(const Program& program);

/// Returns true if GEMMs compute partial sums over k, and every rank ends with the whole result.
bool reduces_all(const Program& program);

}  // namespace commfuse
