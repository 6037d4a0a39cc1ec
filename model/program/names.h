// SPDX-License-Identifier: Apache-2.0
// Names of the parts of a program, in its text and in sentences.
#pragma once

#include <string>
#include <string_view>

#include "model/program/program.h"

namespace commfuse {

std::string_view name_of(Function function);
std::string_view name_of(BufferRole role);
std::string_view name_of(LaneKind kind);
std::string_view name_of(Purpose purpose);
std::string_view name_of(OpKind kind);
std::string_view name_of(CollectiveKind kind);
/// Returns, for example, "comm" or "comm2".
std::string name_of(Lane lane);
/// Returns, for example, "(tp+3)%4".
std::string text_of(const Mesh& mesh, const Index& index);
/// Returns, for example, "y[(tp+3)%4 +: 2, 0]".
std::string text_of(const Program& program, const Region& region);

}  // namespace commfuse
