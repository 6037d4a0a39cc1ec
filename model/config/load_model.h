// SPDX-License-Identifier: Apache-2.0
// Ranges for the sizes of models and machines, the same for every kind of file.
#pragma once

#include <cstdint>

#include "model/config/yaml_reader.h"

namespace commfuse {

inline constexpr Range<std::int64_t> model_size_range{1, std::int64_t{1} << 20};  // Keeps bytes and FLOPs in range.
inline constexpr Range<std::int64_t> vocab_range{1, std::int64_t{1} << 24};
inline constexpr Range<std::int64_t> layer_range{1, 10'000};
inline constexpr Range<std::int64_t> head_range{1, 4096};
inline constexpr Range<std::int64_t> expert_range{1, 65'536};
inline constexpr Range<std::int64_t> node_range{1, 4096};

}  // namespace commfuse
