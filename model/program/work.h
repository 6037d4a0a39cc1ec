// SPDX-License-Identifier: Apache-2.0
// What a schedule gets done, whoever wrote it and however it goes about it.
#pragma once

#include <string>
#include <vector>

#include "model/program/program.h"

namespace commfuse {

/// The operation behind the final contents, and which share of its tensors a rank begins and ends with, as one text:
/// two schedules that may be compared have equal texts. Names of tensors, order of declarations, dtypes and how
/// dimensions are cut do not matter; names of dimensions do. Requires a program that passed check_program().
std::string work_of(const Program& program);

/// The dtypes of its products and attention, in the order of all_dtypes.
std::vector<DType> product_dtypes(const Program& program);

}  // namespace commfuse
