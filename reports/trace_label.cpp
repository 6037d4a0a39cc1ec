// SPDX-License-Identifier: Apache-2.0
#include "reports/trace_label.h"

#include <fmt/format.h>

#include "model/program/names.h"

namespace commfuse::reports {

namespace {

constexpr std::size_t max_regions = 3;  // regions of a stacked operand that are named; an ellipsis replaces the rest

/// Returns one word for what the op does.
std::string_view verb(const Program& program, const Op& op) {
  const Shape& shape = program.shapes[op.shape];
  if (const auto* elementwise = std::get_if<ElementwiseShape>(&shape)) {
    return name_of(elementwise->function);
  }
  if (const auto* collective = std::get_if<CollectiveShape>(&shape)) {
    return name_of(collective->kind);
  }
  return name_of(op.kind);
}

std::span<const Region> named_regions(const Program& program, const Op& op) {
  const std::span<const Slice> outputs = program.outputs_of(op);
  const std::span<const Slice> operands = outputs.empty() ? program.inputs_of(op) : outputs;
  return operands.empty() ? std::span<const Region>{} : program.regions_of(operands.front());
}

class Pieces {
 public:
  void text(std::string_view text) { text_ += text; }
  void index(const Index& index) { pieces_.push_back({std::move(text_), index}), text_.clear(); }
  void blocks(const Index& first, std::int32_t count) {
    index(first);
    text(count == 1 ? "" : fmt::format(" +: {}", count));
  }
  std::vector<LabelPiece> take() && {
    pieces_.push_back({std::move(text_), std::nullopt});
    return std::move(pieces_);
  }

 private:
  std::string text_;
  std::vector<LabelPiece> pieces_;
};

/// Adds "[3]" or "[3 +: 2, 0]"; nothing for a whole buffer.
void add_region(const Program& program, const Region& region, bool with_brackets, Pieces& pieces) {
  const Buffer& buffer = program.buffers[position(region.buffer)];
  const bool all_rows = region.row == Index{} && region.rows == buffer.rows.blocks;
  const bool all_columns = region.column == Index{} && region.columns == buffer.columns.blocks;
  if (all_rows && all_columns) {
    return;
  }
  pieces.text(with_brackets ? "[" : "");
  pieces.blocks(region.row, region.rows);
  if (!all_columns) {
    pieces.text(", ");
    pieces.blocks(region.column, region.columns);
  }
  pieces.text(with_brackets ? "]" : "");
}

}  // namespace

std::vector<LabelPiece> label_pieces(const Program& program, const Op& op) {
  Pieces pieces;
  pieces.text(verb(program, op));
  const std::span<const Region> regions = named_regions(program, op);
  if (regions.empty()) {
    return std::move(pieces).take();
  }
  pieces.text(" " + program.buffers[position(regions.front().buffer)].name);
  if (regions.size() == 1) {
    add_region(program, regions.front(), true, pieces);
    return std::move(pieces).take();
  }
  for (std::size_t i = 0; i < regions.size() && i < max_regions; ++i) {
    pieces.text(i == 0 ? "[" : "; ");
    add_region(program, regions[i], false, pieces);
  }
  pieces.text(regions.size() > max_regions ? "; \u2026]" : "]");
  return std::move(pieces).take();
}

std::string op_label(const Program& program, const Op& op, Rank rank) {
  const Coordinates coordinates = program.mesh.coordinates(rank);
  std::string text;
  for (const LabelPiece& piece : label_pieces(program, op)) {
    text += piece.text;
    if (piece.index) {
      text += fmt::format("{}", piece.index->at(program.mesh, coordinates));
    }
  }
  return text;
}

std::string strategy_label(const std::string& strategy, const std::string& parameters) {
  return parameters.empty() ? strategy : fmt::format("{} ({})", strategy, parameters);
}

std::string op_in_words(std::string name) {
  constexpr std::string_view gemm = "GEMM ";
  constexpr std::string_view memory = "memory-bound of ";
  if (name.starts_with(memory)) {
    return fmt::format("memory-bound op of {}", name.substr(memory.size()));
  }
  if (!name.starts_with(gemm)) {
    return name;
  }
  for (std::size_t at = name.find(" x "); at != std::string::npos; at = name.find(" x ", at)) {
    name.replace(at, 3, " \u00d7 ");
  }
  return name;
}

}  // namespace commfuse::reports
