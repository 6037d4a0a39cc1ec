// SPDX-License-Identifier: Apache-2.0
#include "model/program/names.h"

#include <fmt/format.h>

#include "model/program/words.h"

namespace commfuse {

namespace {

/// Returns one term: `tp`, `(tp+3)%4`, `8*node`, `2*((tp+1)%8)`, `-((-tp+2)%4)`.
std::string term_text(const Axis& axis, const IndexTerm& term) {
  std::string coordinate = axis.name;
  if (term.sign() < 0 || term.offset() != 0) {
    coordinate = fmt::format("({}{}{})%{}", term.sign() < 0 ? "-" : "", axis.name,
                             term.offset() == 0 ? "" : fmt::format("+{}", term.offset()), axis.extent);
    if (term.scale != 1) {
      coordinate = "(" + coordinate + ")";
    }
  }
  if (term.scale == 1) {
    return coordinate;
  }
  return term.scale == -1 ? "-" + coordinate : fmt::format("{}*{}", term.scale, coordinate);
}

/// Returns `3` or `3 +: 2`.
std::string span_text(const Mesh& mesh, const Index& first, std::int32_t count) {
  return text_of(mesh, first) + (count == 1 ? "" : fmt::format(" +: {}", count));
}

}  // namespace

std::string_view name_of(Function function) { return words::word(words::functions, function); }
std::string_view name_of(BufferRole role) { return words::word(words::roles, role); }
std::string_view name_of(LaneKind kind) { return words::word(words::lanes, kind); }
std::string_view name_of(Purpose purpose) { return words::word(words::purposes, purpose); }
std::string_view name_of(OpKind kind) { return words::word(words::ops, kind); }
std::string_view name_of(CollectiveKind kind) { return words::word(words::collectives, kind); }

std::string name_of(Lane lane) {
  return lane.number == 0 ? std::string{name_of(lane.kind)} : fmt::format("{}{}", name_of(lane.kind), lane.number);
}

std::string text_of(const Mesh& mesh, const Index& index) {
  std::string text;
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    if (index.terms[axis].scale != 0) {
      const std::string term = term_text(mesh.axes[axis], index.terms[axis]);
      text += fmt::format("{}{}", text.empty() || term.front() == '-' ? "" : "+", term);
    }
  }
  if (text.empty()) {
    return std::to_string(index.constant);
  }
  if (text.front() == '-' && index.constant > 0) {
    return std::to_string(index.constant) + text;
  }
  return index.constant == 0 ? text : fmt::format("{}{:+}", text, index.constant);
}

std::string text_of(const Program& program, const Region& region) {
  const Buffer& buffer = program.buffers[position(region.buffer)];
  const bool all_rows = region.row == Index{} && region.rows == buffer.rows.blocks;
  const bool all_columns = region.column == Index{} && region.columns == buffer.columns.blocks;
  if (all_rows && all_columns) {
    return buffer.name;
  }
  const std::string rows = span_text(program.mesh, region.row, region.rows);
  if (all_columns) {
    return fmt::format("{}[{}]", buffer.name, rows);
  }
  return fmt::format("{}[{}, {}]", buffer.name, rows, span_text(program.mesh, region.column, region.columns));
}

}  // namespace commfuse
