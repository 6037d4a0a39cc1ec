// SPDX-License-Identifier: Apache-2.0
#include "model/program/narrowed.h"

#include <variant>

namespace commfuse {

namespace {

/// Returns the dtype of a shape that may be narrowed; null for any other shape.
DType* narrowable(Shape& shape) {
  if (auto* exchange = std::get_if<ExchangeShape>(&shape)) {
    return is_credit(*exchange) ? nullptr : &exchange->wire;
  }
  auto* collective = std::get_if<CollectiveShape>(&shape);
  const bool moves = collective != nullptr &&
                     (collective->kind == CollectiveKind::all_gather || collective->kind == CollectiveKind::all_to_all);
  return moves ? &collective->wire : nullptr;
}

}  // namespace

Program narrowed(Program program, DType wire) {
  for (Shape& shape : program.shapes) {
    if (DType* shape_dtype = narrowable(shape); shape_dtype != nullptr && bytes_of(wire) < bytes_of(*shape_dtype)) {
      *shape_dtype = wire;
    }
  }
  return program;
}

}  // namespace commfuse
