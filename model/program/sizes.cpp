// SPDX-License-Identifier: Apache-2.0
#include "model/program/sizes.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/check.h"
#include "model/config_error.h"

namespace commfuse {

namespace {

/// Returns the nearest multiples of `blocks` on both sides, as a remedy.
std::string remedy(std::int64_t elements, std::int64_t blocks) {
  const std::int64_t below = elements / blocks * blocks;
  if (below <= 0) {
    return fmt::format("choose {} or a multiple of it", blocks);
  }
  return fmt::format("choose a multiple of {}, such as {} or {}", blocks, below, below + blocks);
}

/// Attention of all queries is one kernel over whole sequences; a slice of queries must contain the same positions of
/// every sequence. Returns the reason if a slice does not; empty if all do.
std::string refusal_of_slices(const Program& program, const Sizes& sizes) {
  for (const Shape& shape : program.shapes) {
    const auto* attention = std::get_if<AttentionShape>(&shape);
    if (attention == nullptr || attention->queries == attention->keys) {
      continue;
    }
    const std::int64_t batch = sizes.elements({attention->batch, 1});
    const std::int64_t slice_tokens = sizes.elements({attention->queries.dimension, 1});
    if (slice_tokens % batch != 0) {
      const std::int32_t blocks = program.dimensions[position(attention->queries.dimension)].blocks;
      return fmt::format("a sequence of {} cannot be cut into {} equal slices of queries, as {} requires; {}",
                         slice_tokens * blocks / batch, blocks, program.name,
                         remedy(slice_tokens * blocks / batch, blocks));
    }
  }
  return {};
}

/// Fills `sizes`, which must be empty. Returns the reason why the quantities cannot be bound; empty if they were.
std::string bind_into(Sizes& sizes, const Program& program, std::span<const Quantity> quantities) {
  for (const Dimension& dimension : program.dimensions) {
    const auto given = std::find_if(quantities.begin(), quantities.end(),
                                    [&](const Quantity& quantity) { return quantity.dimension == dimension.name; });
    check(given != quantities.end(), "every dimension of a program is given a size");
    if (given->elements <= 0 || given->elements % dimension.blocks != 0) {
      return fmt::format("{} {} cannot be cut into {} equal blocks, as {} requires; {}", given->elements,
                         dimension.name, dimension.blocks, program.name, remedy(given->elements, dimension.blocks));
    }
    sizes.block.push_back(given->elements / dimension.blocks);
  }
  return refusal_of_slices(program, sizes);
}

}  // namespace

Sizes bind_sizes(const Program& program, std::span<const Quantity> quantities) {
  Sizes sizes;
  if (const std::string refusal = bind_into(sizes, program, quantities); !refusal.empty()) {
    throw ConfigError(refusal);
  }
  return sizes;
}

std::string refusal_of(const Program& program, std::span<const Quantity> quantities) {
  Sizes unused;
  return bind_into(unused, program, quantities);
}

Bytes bytes_per_rank(const Program& program, const Sizes& sizes) {
  Bytes total;
  for (const Buffer& buffer : program.buffers) {
    total += Bytes{sizes.elements(buffer.rows) * sizes.elements(buffer.columns) * bytes_of(buffer.dtype)};
  }
  return total;
}

}  // namespace commfuse
