// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

namespace commfuse::sim {

/// Takes a piece of a string or a file.
using Sink = std::function<void(std::string_view)>;

}  // namespace commfuse::sim
